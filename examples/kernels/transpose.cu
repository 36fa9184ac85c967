constexpr unsigned TILE = 32, ROWS = 8;

extern "C" __global__ void transpose(unsigned n, const float* __restrict__ from, float* __restrict__ to) {
    __shared__ float tile[TILE][TILE + 1];
    unsigned x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (unsigned j = 0; j < TILE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * n + x];
    __syncthreads();
    unsigned column = blockIdx.y * TILE + threadIdx.x, row = blockIdx.x * TILE + threadIdx.y;
    for (unsigned j = 0; j < TILE; j += ROWS) to[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];
}
