extern "C" __global__ void quotient(
    unsigned n, unsigned rounds, const unsigned* __restrict__ values, const unsigned* __restrict__ divisors,
    unsigned* __restrict__ sums) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned value = values[i], divisor = divisors[i], sum = 0;
    for (unsigned k = 0; k < rounds; ++k) sum += (value + k) / divisor;
    sums[i] = sum;
}
