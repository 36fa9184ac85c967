extern "C" __global__ void short_ratio(
    unsigned n, unsigned count, const short* __restrict__ divisors, const short* __restrict__ from,
    short* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    short value = from[i], sum = 0;
    for (unsigned k = 0; k < count; ++k) {
        short divisor = divisors[k];
        sum += value / divisor ^ value % divisor;
    }
    to[i] = sum;
}
