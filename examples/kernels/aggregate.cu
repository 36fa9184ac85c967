constexpr unsigned FULL = 0xffffffff;

extern "C" __global__ void aggregate(
    unsigned n, const unsigned* __restrict__ keys, unsigned* __restrict__ counts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane;
    if (i >= n) return;
    unsigned key = keys[i], same = __match_any_sync(FULL, key);
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    if (same >> lane == 1) atomicAdd(&counts[key], __popc(same));
}
