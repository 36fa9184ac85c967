extern "C" __global__ void gather(
    unsigned n, const unsigned* __restrict__ indices, const float* __restrict__ from, float* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[indices[i]];
}
