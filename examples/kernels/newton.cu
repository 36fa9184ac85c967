constexpr unsigned STEPS = 8;

extern "C" __global__ void newton(unsigned n, const double* __restrict__ x, double* __restrict__ roots) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double cube = x[i], root = sqrt(cube);
    for (unsigned k = 0; k < STEPS; ++k) root = (2.0 * root + cube / (root * root)) / 3.0;
    roots[i] = root;
}
