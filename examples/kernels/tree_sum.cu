constexpr unsigned THREADS = 256;

extern "C" __global__ __launch_bounds__(THREADS) void tree_sum(
    const float* __restrict__ from, float* __restrict__ sums) {
    __shared__ float parts[THREADS];
    unsigned t = threadIdx.x, first = blockIdx.x * THREADS * 4 + t;
    parts[t] = from[first] + from[first + THREADS] + from[first + 2 * THREADS] + from[first + 3 * THREADS];
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) parts[t] += parts[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = parts[0];
}
