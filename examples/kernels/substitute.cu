constexpr unsigned THREADS = 256;

extern "C" __global__ __launch_bounds__(THREADS) void substitute(
    unsigned n, const unsigned char* __restrict__ table, const unsigned* __restrict__ from,
    unsigned* __restrict__ to) {
    __shared__ unsigned char bytes[256];
    bytes[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        unsigned word = from[i];
        to[i] = unsigned(bytes[word & 255]) | unsigned(bytes[word >> 8 & 255]) << 8 |
                unsigned(bytes[word >> 16 & 255]) << 16 | unsigned(bytes[word >> 24]) << 24;
    }
}
