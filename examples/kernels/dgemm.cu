constexpr unsigned TILE = 16;

extern "C" __global__ void dgemm(
    unsigned n, const double* __restrict__ a, const double* __restrict__ b, double* __restrict__ c) {
    __shared__ double left[TILE][TILE], right[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    double sum = 0;
    for (unsigned k = 0; k < n; k += TILE) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (unsigned i = 0; i < TILE; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
