constexpr unsigned FULL = 0xffffffff;

extern "C" __global__ void spmv(
    unsigned rows, const unsigned* __restrict__ offsets, const unsigned* __restrict__ columns,
    const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (unsigned i = offsets[row] + lane, end = offsets[row + 1]; i < end; i += 32) {
        sum += values[i] * x[columns[i]];
    }
    for (unsigned offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(FULL, sum, offset);
    if (lane == 0) y[row] = sum;
}
