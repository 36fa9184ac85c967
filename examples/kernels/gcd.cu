extern "C" __global__ void gcd(
    unsigned n, const unsigned* __restrict__ x, const unsigned* __restrict__ y, unsigned* __restrict__ divisors) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = x[i], b = y[i];
    while (b != 0) {
        unsigned rest = a % b;
        a = b;
        b = rest;
    }
    divisors[i] = a;
}
