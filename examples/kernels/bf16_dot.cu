#include <cuda_bf16.h>

constexpr unsigned FULL = 0xffffffff;

extern "C" __global__ void bf16_dot(
    unsigned rows, unsigned pairs, const __nv_bfloat162* __restrict__ matrix,
    const __nv_bfloat162* __restrict__ vector, float* __restrict__ to) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const __nv_bfloat162* own = matrix + (unsigned long long)row * pairs;
    float sum = 0;
    for (unsigned i = lane; i < pairs; i += 32) {
        float2 a = __bfloat1622float2(own[i]), b = __bfloat1622float2(vector[i]);
        sum += a.x * b.x;
        sum += a.y * b.y;
    }
    for (unsigned k = 0; k < 5; ++k) sum += __shfl_xor_sync(FULL, sum, 16 >> k);
    if (lane == 0) to[row] = sum;
}
