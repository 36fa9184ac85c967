constexpr unsigned FULL = 0xffffffff, THREADS = 256;

extern "C" __global__ __launch_bounds__(THREADS) void reduction(
    unsigned n, const float* __restrict__ from, float* __restrict__ sums) {
    __shared__ float warps[THREADS / 32];
    float sum = 0;
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) sum += from[i];
    for (unsigned offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(FULL, sum, offset);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0;
        for (unsigned i = 0; i < THREADS / 32; ++i) total += warps[i];
        sums[blockIdx.x] = total;
    }
}
