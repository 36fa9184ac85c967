constexpr unsigned FULL = 0xffffffff, THREADS = 256;

extern "C" __global__ __launch_bounds__(THREADS) void scan(
    const uint4* __restrict__ from, uint4* __restrict__ to) {
    __shared__ unsigned warps[THREADS / 32];
    unsigned i = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint4 v = from[i];
    unsigned own = v.x + v.y + v.z + v.w, sum = own;
    for (unsigned offset = 1; offset < 32; offset *= 2) {
        unsigned other = __shfl_up_sync(FULL, sum, offset);
        if (lane >= offset) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    unsigned before = sum - own;
    for (unsigned w = 0; w < warp; ++w) before += warps[w];
    unsigned x = before + v.x, y = x + v.y, z = y + v.z;
    to[i] = make_uint4(x, y, z, z + v.w);
}
