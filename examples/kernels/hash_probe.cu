__device__ inline unsigned slot_of(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    return x * 0x846ca68b;
}

extern "C" __global__ void hash_probe(
    unsigned n, unsigned mask, const unsigned* __restrict__ keys, const uint2* __restrict__ table,
    unsigned* __restrict__ found) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], slot = slot_of(key) & mask, value = 0xffffffff;
        while (true) {
            uint2 entry = table[slot];
            if (entry.x == key) {
                value = entry.y;
                break;
            }
            if (entry.x == 0) break;
            slot = (slot + 1) & mask;
        }
        found[i] = value;
    }
}
