__device__ inline unsigned next(unsigned x) {
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}

extern "C" __global__ void pi(
    unsigned n, unsigned rounds, const unsigned* __restrict__ seeds, unsigned* __restrict__ counts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned state = seeds[i], count = 0;
    for (unsigned k = 0; k < rounds; ++k) {
        state = next(state);
        unsigned x = state >> 17;
        state = next(state);
        unsigned y = state >> 17;
        if (x * x + y * y < 1u << 30) count += 1;
    }
    counts[i] = count;
}
