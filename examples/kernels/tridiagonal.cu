extern "C" __global__ void tridiagonal(
    unsigned n, unsigned rows, const float* __restrict__ below, const float* __restrict__ diagonal,
    const float* __restrict__ above, const float* __restrict__ right, float* __restrict__ upper,
    float* __restrict__ x) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    upper[i] = above[i] / diagonal[i];
    x[i] = right[i] / diagonal[i];
    for (unsigned row = 1; row < rows; ++row) {
        unsigned at = row * n + i;
        float pivot = 1.0f / (diagonal[at] - below[at] * upper[at - n]);
        upper[at] = above[at] * pivot;
        x[at] = (right[at] - below[at] * x[at - n]) * pivot;
    }
    for (unsigned back = 1; back < rows; ++back) {
        unsigned at = (rows - 1 - back) * n + i;
        x[at] -= upper[at] * x[at + n];
    }
}
