#include <cuda_fp16.h>

constexpr unsigned INPUTS = 16, OUTPUTS = 16, THREADS = 256;

extern "C" __global__ __launch_bounds__(THREADS) void half_layer(
    unsigned n, const __half2* __restrict__ weights, const __half* __restrict__ biases,
    const __half2* __restrict__ from, __half* __restrict__ to) {
    __shared__ __half2 all[INPUTS * OUTPUTS];
    all[threadIdx.x] = weights[threadIdx.x];
    __syncthreads();
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    __half2 x[INPUTS];
    for (unsigned k = 0; k < INPUTS; ++k) x[k] = from[k * n + i];
    for (unsigned j = 0; j < OUTPUTS; ++j) {
        __half2 sum = __halves2half2(biases[j], __float2half(0.0f));
        for (unsigned k = 0; k < INPUTS; ++k) sum = __hfma2(all[j * INPUTS + k], x[k], sum);
        to[j * n + i] = __hmax(__hadd(__low2half(sum), __high2half(sum)), __float2half(0.0f));
    }
}
