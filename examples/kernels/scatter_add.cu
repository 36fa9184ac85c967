extern "C" __global__ void scatter_add(
    unsigned n, unsigned mask, const unsigned* __restrict__ indices, unsigned* __restrict__ sums) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sums[indices[i] & mask], i);
}
