extern "C" __global__ void jacobi(
    int width, int height, const float* __restrict__ from, const float* __restrict__ right,
    float* __restrict__ to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    float around = 0;
    for (int d = -1; d < 2; ++d) {
        if (d != 0) around += from[y * width + x + d] + from[(y + d) * width + x];
    }
    to[y * width + x] = 0.25f * (around - right[y * width + x]);
}
