__device__ inline unsigned rotate(unsigned x, unsigned n) { return x << n | x >> (32 - n); }

__device__ inline void quarter(unsigned* s, unsigned a, unsigned b, unsigned c, unsigned d) {
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 7);
}

extern "C" __global__ void chacha20(
    unsigned blocks, const unsigned* __restrict__ state, unsigned* __restrict__ stream) {
    unsigned block = blockIdx.x * blockDim.x + threadIdx.x;
    if (block >= blocks) return;
    unsigned first[16], s[16];
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) first[i] = state[i];
    first[12] += block;
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) s[i] = first[i];
    for (unsigned i = 0; i < 10; ++i) {
        quarter(s, 0, 4, 8, 12);
        quarter(s, 1, 5, 9, 13);
        quarter(s, 2, 6, 10, 14);
        quarter(s, 3, 7, 11, 15);
        quarter(s, 0, 5, 10, 15);
        quarter(s, 1, 6, 11, 12);
        quarter(s, 2, 7, 8, 13);
        quarter(s, 3, 4, 9, 14);
    }
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) stream[block * 16 + i] = s[i] + first[i];
}
