constexpr unsigned SIDE = 128, DEPTH = 8, EACH = 8, THREADS = 256;

extern "C" __global__ __launch_bounds__(THREADS) void sgemm(
    unsigned n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    __shared__ float left[DEPTH][SIDE], right[DEPTH][SIDE];
    unsigned t = threadIdx.x, row = blockIdx.y * SIDE, column = blockIdx.x * SIDE;
    unsigned y = t / 16 * EACH, x = t % 16 * EACH;
    float sums[EACH][EACH] = {};
    for (unsigned k = 0; k < n; k += DEPTH) {
#pragma unroll
        for (unsigned i = 0; i < SIDE * DEPTH; i += THREADS) {
            unsigned at = i + t;
            left[at % DEPTH][at / DEPTH] = a[(row + at / DEPTH) * n + k + at % DEPTH];
            right[at / SIDE][at % SIDE] = b[(k + at / SIDE) * n + column + at % SIDE];
        }
        __syncthreads();
#pragma unroll
        for (unsigned d = 0; d < DEPTH; ++d) {
            float of_a[EACH], of_b[EACH];
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i) {
                of_a[i] = left[d][y + i];
                of_b[i] = right[d][x + i];
            }
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i) {
#pragma unroll
                for (unsigned j = 0; j < EACH; ++j) sums[i][j] += of_a[i] * of_b[j];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
#pragma unroll
        for (unsigned j = 0; j < EACH; ++j) c[(row + y + i) * n + column + x + j] = sums[i][j];
    }
}
