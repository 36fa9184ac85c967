constexpr unsigned FULL = 0xffffffff;

extern "C" __global__ void warp_sums(unsigned n, const int* __restrict__ numbers, int* __restrict__ results) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = __reduce_add_sync(FULL, numbers[i]);
    int least = __reduce_min_sync(FULL, numbers[i]);
    int greatest = __reduce_max_sync(FULL, numbers[i]);
    if (threadIdx.x % 32 == 0) {
        results[i / 32 * 3] = sum;
        results[i / 32 * 3 + 1] = least;
        results[i / 32 * 3 + 2] = greatest;
    }
}
