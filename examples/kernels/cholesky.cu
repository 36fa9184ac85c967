constexpr unsigned SIDE = 6;

extern "C" __global__ void cholesky(unsigned n, const float* __restrict__ from, float* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a[SIDE][SIDE];
#pragma unroll
    for (unsigned row = 0; row < SIDE; ++row) {
#pragma unroll
        for (unsigned column = 0; column < SIDE; ++column) a[row][column] = from[(row * SIDE + column) * n + i];
    }
#pragma unroll
    for (unsigned k = 0; k < SIDE; ++k) {
        a[k][k] = sqrtf(a[k][k]);
#pragma unroll
        for (unsigned row = k + 1; row < SIDE; ++row) a[row][k] /= a[k][k];
#pragma unroll
        for (unsigned column = k + 1; column < SIDE; ++column) {
#pragma unroll
            for (unsigned row = column; row < SIDE; ++row) a[row][column] -= a[row][k] * a[column][k];
        }
    }
#pragma unroll
    for (unsigned row = 0; row < SIDE; ++row) {
#pragma unroll
        for (unsigned column = 0; column < row + 1; ++column) to[(row * SIDE + column) * n + i] = a[row][column];
    }
}
