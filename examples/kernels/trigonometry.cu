extern "C" __global__ void trigonometry(unsigned n, const float* __restrict__ x, float* __restrict__ y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    y[i] = sinf(a) * cosf(2.0f * a) + atan2f(a, 3.0f) + powf(fabsf(a) + 1.0f, 0.3f);
}
