constexpr unsigned POINTS = 1024, STAGES = 10, THREADS = POINTS / 2;

extern "C" __global__ __launch_bounds__(THREADS) void fft(
    const float2* __restrict__ roots, const float2* __restrict__ from, float2* __restrict__ to) {
    __shared__ float2 data[POINTS];
    unsigned t = threadIdx.x, first = blockIdx.x * POINTS;
    data[__brev(t) >> (32 - STAGES)] = from[first + t];
    data[__brev(t + THREADS) >> (32 - STAGES)] = from[first + t + THREADS];
    __syncthreads();
    for (unsigned stage = 0; stage < STAGES; ++stage) {
        unsigned half = 1u << stage, place = t & (half - 1), i = (t >> stage << (stage + 1)) + place;
        float2 root = roots[place << (STAGES - 1 - stage)], a = data[i], b = data[i + half];
        float x = b.x * root.x - b.y * root.y, y = b.x * root.y + b.y * root.x;
        data[i] = make_float2(a.x + x, a.y + y);
        data[i + half] = make_float2(a.x - x, a.y - y);
        __syncthreads();
    }
    to[first + t] = data[t];
    to[first + t + THREADS] = data[t + THREADS];
}
