typedef unsigned long long u64;

extern "C" __global__ void power(
    unsigned n, const u64* __restrict__ bases, const u64* __restrict__ exponents, const u64* __restrict__ moduli,
    u64* __restrict__ powers) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 modulus = moduli[i], base = bases[i] % modulus, exponent = exponents[i], result = 1;
    while (exponent > 0) {
        if (exponent & 1) result = result * base % modulus;
        base = base * base % modulus;
        exponent >>= 1;
    }
    powers[i] = result;
}
