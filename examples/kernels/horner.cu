extern "C" __global__ void horner(
    unsigned n, unsigned degree, const double* __restrict__ factors, const double* __restrict__ x,
    double* __restrict__ y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double at = x[i], sum = 0;
    for (unsigned k = 0; k < degree + 1; ++k) sum = sum * at + factors[k];
    y[i] = sum;
}
