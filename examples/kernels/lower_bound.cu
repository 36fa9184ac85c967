extern "C" __global__ void lower_bound(
    unsigned queries, unsigned n, const unsigned* __restrict__ wanted, const unsigned* __restrict__ sorted,
    unsigned* __restrict__ found) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= queries) return;
    unsigned value = wanted[i], low = 0, size = n;
    while (size > 0) {
        unsigned half = size / 2;
        if (sorted[low + half] < value) {
            low += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    found[i] = low;
}
