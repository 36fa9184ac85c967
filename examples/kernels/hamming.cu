typedef unsigned long long u64;
constexpr unsigned CODES = 256;

extern "C" __global__ __launch_bounds__(CODES) void hamming(
    unsigned n, const u64* __restrict__ queries, const u64* __restrict__ codes, unsigned* __restrict__ least) {
    __shared__ u64 all[CODES];
    all[threadIdx.x] = codes[threadIdx.x];
    __syncthreads();
    unsigned i = blockIdx.x * CODES + threadIdx.x;
    if (i >= n) return;
    u64 query = queries[i];
    unsigned best = 64;
    for (unsigned c = 0; c < CODES; ++c) best = min(best, unsigned(__popcll(query ^ all[c])));
    least[i] = best;
}
