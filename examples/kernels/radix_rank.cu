constexpr unsigned FULL = 0xffffffff;

extern "C" __global__ void radix_rank(
    unsigned n, const unsigned* __restrict__ numbers, unsigned* __restrict__ ranks) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned digit = numbers[i], same = FULL, lane;
#pragma unroll
    for (unsigned bit = 0; bit < 4; ++bit) {
        bool is_set = digit >> bit & 1;
        unsigned lanes = __ballot_sync(FULL, is_set);
        same &= is_set ? lanes : ~lanes;
    }
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    unsigned below = (1u << lane) - 1;
    ranks[i] = __popc(same & below);
}
