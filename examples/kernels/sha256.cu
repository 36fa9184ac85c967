__device__ inline unsigned rotate(unsigned x, unsigned n) { return x >> n | x << (32 - n); }

extern "C" __global__ void sha256(
    unsigned n, const unsigned* __restrict__ constants, const unsigned* __restrict__ start,
    const unsigned* __restrict__ blocks, unsigned* __restrict__ hashes) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned w[16];
#pragma unroll
    for (unsigned j = 0; j < 16; ++j) w[j] = blocks[j * n + i];
    unsigned a = start[0], b = start[1], c = start[2], d = start[3];
    unsigned e = start[4], f = start[5], g = start[6], h = start[7];
#pragma unroll
    for (unsigned j = 0; j < 64; ++j) {
        if (j >= 16) {
            unsigned x = w[(j + 1) % 16], y = w[(j + 14) % 16];
            w[j % 16] += (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) + w[(j + 9) % 16] +
                         (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
        }
        unsigned first =
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + constants[j] + w[j % 16];
        unsigned second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    hashes[i] = start[0] + a;
    hashes[n + i] = start[1] + b;
    hashes[2 * n + i] = start[2] + c;
    hashes[3 * n + i] = start[3] + d;
    hashes[4 * n + i] = start[4] + e;
    hashes[5 * n + i] = start[5] + f;
    hashes[6 * n + i] = start[6] + g;
    hashes[7 * n + i] = start[7] + h;
}
