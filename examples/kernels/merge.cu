constexpr unsigned EACH = 8;

extern "C" __global__ void merge(
    unsigned n, const unsigned* __restrict__ a, const unsigned* __restrict__ b, unsigned* __restrict__ to) {
    unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * EACH;
    if (first >= 2 * n) return;
    unsigned low = first > n ? first - n : 0, high = min(first, n);
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (a[middle] <= b[first - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    unsigned i = low, j = first - low;
    for (unsigned k = 0; k < EACH; ++k) {
        if (j >= n || (i < n && a[i] <= b[j])) {
            to[first + k] = a[i];
            i += 1;
        } else {
            to[first + k] = b[j];
            j += 1;
        }
    }
}
