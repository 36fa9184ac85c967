__device__ unsigned ackermann_of(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann_of(m - 1, 1);
    return ackermann_of(m - 1, ackermann_of(m, n - 1));
}

extern "C" __global__ void ackermann(
    unsigned count, const unsigned* __restrict__ m, const unsigned* __restrict__ n,
    unsigned* __restrict__ values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = ackermann_of(m[i], n[i]);
}
