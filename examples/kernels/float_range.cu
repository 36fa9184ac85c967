#include <cuda/atomic>

constexpr unsigned MOST = 64;

__device__ inline unsigned ordered(float x) {
    unsigned bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

__device__ inline unsigned loaded(unsigned& word) {
    return cuda::atomic_ref<unsigned, cuda::thread_scope_device>(word).load(cuda::memory_order_relaxed);
}

extern "C" __global__ void float_range(
    unsigned n, unsigned groups, const unsigned char* __restrict__ keys, const float* __restrict__ values,
    unsigned* __restrict__ least, unsigned* __restrict__ greatest) {
    __shared__ unsigned low[MOST], high[MOST];
    for (unsigned g = threadIdx.x; g < groups; g += blockDim.x) {
        low[g] = 0xffffffff;
        high[g] = 0;
    }
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned group = keys[i] % groups, bits = ordered(values[i]);
        if (bits < loaded(low[group])) atomicMin(&low[group], bits);
        if (bits > loaded(high[group])) atomicMax(&high[group], bits);
    }
    __syncthreads();
    for (unsigned g = threadIdx.x; g < groups; g += blockDim.x) {
        atomicMin(&least[g], low[g]);
        atomicMax(&greatest[g], high[g]);
    }
}
