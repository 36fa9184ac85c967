struct Complex {
    float re, im;
};

__device__ inline Complex times(Complex a, Complex b) {
    return Complex{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

__device__ inline Complex plus(Complex a, Complex b) { return Complex{a.re + b.re, a.im + b.im}; }

extern "C" __global__ void complex(
    unsigned n, unsigned degree, const Complex* __restrict__ factors, const Complex* __restrict__ x,
    Complex* __restrict__ y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Complex at = x[i], sum = Complex{0, 0};
    for (unsigned k = 0; k < degree + 1; ++k) sum = plus(times(sum, at), factors[k]);
    y[i] = sum;
}
