constexpr unsigned AXES = 8, CENTRES = 32, THREADS = 256;

extern "C" __global__ __launch_bounds__(THREADS) void nearest(
    unsigned n, const float* __restrict__ points, const float* __restrict__ centres,
    float* __restrict__ distances) {
    __shared__ float all[CENTRES * AXES];
    all[threadIdx.x] = centres[threadIdx.x];
    __syncthreads();
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float own[AXES];
#pragma unroll
    for (unsigned axis = 0; axis < AXES; ++axis) own[axis] = points[axis * n + i];
    float least = 1e30f;
    for (unsigned c = 0; c < CENTRES; ++c) {
        float distance = 0;
#pragma unroll
        for (unsigned axis = 0; axis < AXES; ++axis) {
            float d = own[axis] - all[c * AXES + axis];
            distance += d * d;
        }
        if (distance < least) least = distance;
    }
    distances[i] = least;
}
