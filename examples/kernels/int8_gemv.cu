constexpr unsigned FULL = 0xffffffff;

__device__ inline int dot(char4 a, char4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

extern "C" __global__ void int8_gemv(
    unsigned rows, unsigned words, const char4* __restrict__ matrix, const char4* __restrict__ vector,
    const float* __restrict__ scales, float* __restrict__ to) {
    unsigned row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    int sum = 0;
    for (unsigned i = threadIdx.x; i < words; i += 32) sum += dot(matrix[row * words + i], vector[i]);
    sum = __reduce_add_sync(FULL, sum);
    if (threadIdx.x == 0) to[row] = scales[row] * float(sum);
}
