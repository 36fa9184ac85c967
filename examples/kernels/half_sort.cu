#include <cuda_fp16.h>

constexpr unsigned ROWS = 16;

__device__ inline void order(__half2* v, unsigned i, unsigned j) {
    __half2 a = v[i], b = v[j];
    v[i] = __hmin2(a, b);
    v[j] = __hmax2(a, b);
}

extern "C" __global__ void half_sort(
    unsigned n, const __half2* __restrict__ from, __half2* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 v[ROWS];
#pragma unroll
    for (unsigned k = 0; k < ROWS; ++k) v[k] = from[k * n + i];
#pragma unroll
    for (unsigned stage = 1; stage < 5; ++stage) {
#pragma unroll
        for (unsigned step = 0; step < stage; ++step) {
#pragma unroll
            for (unsigned k = 0; k < ROWS; ++k) {
                unsigned other = k ^ 1 << (stage - 1 - step);
                if (other > k) {
                    if ((k >> stage & 1) == 0) {
                        order(v, k, other);
                    } else {
                        order(v, other, k);
                    }
                }
            }
        }
    }
#pragma unroll
    for (unsigned k = 0; k < ROWS; ++k) to[k * n + i] = v[k];
}
