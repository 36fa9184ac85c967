extern "C" __global__ void reverse(const unsigned* __restrict__ from, unsigned* __restrict__ to) {
    extern __shared__ unsigned chunk[];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    chunk[threadIdx.x] = from[i];
    __syncthreads();
    to[i] = chunk[blockDim.x - 1 - threadIdx.x];
}
