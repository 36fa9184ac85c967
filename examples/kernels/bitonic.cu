constexpr unsigned CHUNK = 1024, THREADS = CHUNK / 2;

extern "C" __global__ __launch_bounds__(THREADS) void bitonic(
    const unsigned* __restrict__ from, unsigned* __restrict__ to) {
    __shared__ unsigned data[CHUNK];
    unsigned t = threadIdx.x, first = blockIdx.x * CHUNK;
    data[t] = from[first + t];
    data[t + THREADS] = from[first + t + THREADS];
    for (unsigned size = 2; size <= CHUNK; size *= 2) {
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            unsigned i = 2 * t - (t & (stride - 1)), a = data[i], b = data[i + stride];
            if ((a > b) == ((i & size) == 0)) {
                data[i] = b;
                data[i + stride] = a;
            }
        }
    }
    __syncthreads();
    to[first + t] = data[t];
    to[first + t + THREADS] = data[t + THREADS];
}
