constexpr unsigned FULL = 0xffffffff, THREADS = 256, WARPS = THREADS / 32;

struct Part {
    long long sum;
    bool starts;
};

__device__ inline Part scan_warp(Part part) {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    for (unsigned offset = 1; offset < 32; offset *= 2) {
        long long sum = __shfl_up_sync(FULL, part.sum, offset);
        unsigned starts = __shfl_up_sync(FULL, unsigned(part.starts), offset);
        if (lane >= offset) {
            if (!part.starts) part.sum += sum;
            part.starts = part.starts || starts;
        }
    }
    return part;
}

extern "C" __global__ __launch_bounds__(THREADS) void segmented_scan(
    unsigned n, const unsigned char* __restrict__ flags, const int* __restrict__ values,
    long long* __restrict__ sums) {
    __shared__ Part parts[WARPS];
    unsigned warp = threadIdx.x / 32;
    for (unsigned first = blockIdx.x * THREADS; first < n; first += gridDim.x * THREADS) {
        unsigned i = first + threadIdx.x;
        Part own = {values[i], flags[i] != 0};
        Part part = scan_warp(own);
        if (threadIdx.x % 32 == 31) parts[warp] = part;
        __syncthreads();
        for (unsigned k = 0; k < warp; ++k) {
            Part before = parts[warp - 1 - k];
            if (part.starts) break;
            part.sum += before.sum;
            part.starts = before.starts;
        }
        sums[i] = part.sum;
        __syncthreads();
    }
}
