constexpr unsigned FULL = 0xffffffff, COLUMNS = 512, EACH = COLUMNS / 32;

__device__ inline float warp_sum(float sum) {
    for (unsigned offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(FULL, sum, offset);
    return sum;
}

extern "C" __global__ void layer_norm(
    unsigned rows, const float* __restrict__ from, const float* __restrict__ gain, const float* __restrict__ bias,
    float* __restrict__ to) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float values[EACH], sum = 0;
#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
        values[i] = from[row * COLUMNS + i * 32 + lane];
        sum += values[i];
    }
    float mean = warp_sum(sum) / COLUMNS, squares = 0;
#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
        float d = values[i] - mean;
        squares += d * d;
    }
    float inverse = rsqrtf(warp_sum(squares) / COLUMNS + 1e-5f);
#pragma unroll
    for (unsigned i = 0; i < EACH; ++i) {
        unsigned column = i * 32 + lane;
        to[row * COLUMNS + column] = (values[i] - mean) * inverse * gain[column] + bias[column];
    }
}
