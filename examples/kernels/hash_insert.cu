constexpr unsigned THREADS = 256;

__device__ inline unsigned slot_of(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    return x * 0x846ca68b;
}

extern "C" __global__ __launch_bounds__(THREADS) void hash_insert(
    unsigned n, unsigned mask, const unsigned* __restrict__ keys, unsigned* __restrict__ table,
    unsigned* __restrict__ inserted) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    bool is_new = false;
    if (i < n) {
        unsigned key = keys[i], slot = slot_of(key) & mask;
        while (true) {
            unsigned old = atomicCAS(&table[slot], 0, key);
            if (old == 0) is_new = true;
            if (old == 0 || old == key) break;
            slot = (slot + 1) & mask;
        }
    }
    unsigned count = __syncthreads_count(is_new);
    if (threadIdx.x == 0) atomicAdd(inserted, count);
}
