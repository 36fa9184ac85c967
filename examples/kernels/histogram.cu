constexpr unsigned BINS = 256;

extern "C" __global__ __launch_bounds__(BINS) void histogram(
    unsigned n, const unsigned* __restrict__ words, unsigned* __restrict__ counts) {
    __shared__ unsigned bins[BINS];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * BINS + threadIdx.x; i < n; i += gridDim.x * BINS) {
        unsigned word = words[i];
        atomicAdd(&bins[word & 255], 1);
        atomicAdd(&bins[word >> 8 & 255], 1);
        atomicAdd(&bins[word >> 16 & 255], 1);
        atomicAdd(&bins[word >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}
