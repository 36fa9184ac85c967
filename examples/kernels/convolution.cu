constexpr unsigned SIDE = 5;

extern "C" __global__ void convolution(
    unsigned width, unsigned height, const float* __restrict__ weights, const float* __restrict__ from,
    float* __restrict__ to) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width - SIDE + 1 || y >= height - SIDE + 1) return;
    float sum = 0;
    for (unsigned j = 0; j < SIDE; ++j) {
        for (unsigned i = 0; i < SIDE; ++i) sum += weights[j * SIDE + i] * from[(y + j) * width + x + i];
    }
    to[y * width + x] = sum;
}
