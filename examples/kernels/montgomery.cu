typedef unsigned long long u64;

__device__ inline unsigned reduced(u64 x, unsigned modulus, unsigned inverse) {
    unsigned m = unsigned(x) * inverse, high = __umulhi(m, modulus), top = unsigned(x >> 32);
    return top < high ? top - high + modulus : top - high;
}

__device__ inline bool passes(unsigned base, unsigned modulus, unsigned inverse, unsigned one, unsigned square) {
    unsigned shift = __ffs(modulus - 1) - 1, exponent = (modulus - 1) >> shift;
    unsigned factor = reduced((u64)(base % modulus) * square, modulus, inverse);
    if (factor == 0) return true;
    unsigned power = one;
    while (exponent > 0) {
        if (exponent & 1) power = reduced((u64)power * factor, modulus, inverse);
        factor = reduced((u64)factor * factor, modulus, inverse);
        exponent >>= 1;
    }
    if (power == one || power == modulus - one) return true;
    for (unsigned k = 1; k < shift; ++k) {
        power = reduced((u64)power * power, modulus, inverse);
        if (power == modulus - one) return true;
    }
    return false;
}

extern "C" __global__ void montgomery(
    unsigned n, const unsigned* __restrict__ numbers, unsigned char* __restrict__ prime) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned modulus = numbers[i], inverse = modulus;
    for (unsigned k = 0; k < 4; ++k) inverse *= 2 - modulus * inverse;
    unsigned one = (0 - modulus) % modulus, square = unsigned((u64)one * one % modulus);
    prime[i] = passes(2, modulus, inverse, one, square) && passes(7, modulus, inverse, one, square) &&
               passes(61, modulus, inverse, one, square);
}
