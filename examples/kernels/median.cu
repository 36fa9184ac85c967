__device__ inline void order(float* v, unsigned i, unsigned j) {
    float low = fminf(v[i], v[j]);
    v[j] = fmaxf(v[i], v[j]);
    v[i] = low;
}

extern "C" __global__ void median(
    unsigned width, unsigned height, const float* __restrict__ from, float* __restrict__ to) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x + 2 >= width || y + 2 >= height) return;
    float v[9];
#pragma unroll
    for (unsigned j = 0; j < 3; ++j) {
#pragma unroll
        for (unsigned i = 0; i < 3; ++i) v[j * 3 + i] = from[(y + j) * width + x + i];
    }
    order(v, 1, 2);
    order(v, 4, 5);
    order(v, 7, 8);
    order(v, 0, 1);
    order(v, 3, 4);
    order(v, 6, 7);
    order(v, 1, 2);
    order(v, 4, 5);
    order(v, 7, 8);
    order(v, 0, 3);
    order(v, 5, 8);
    order(v, 4, 7);
    order(v, 3, 6);
    order(v, 1, 4);
    order(v, 2, 5);
    order(v, 4, 7);
    order(v, 4, 2);
    order(v, 6, 4);
    order(v, 4, 2);
    to[y * width + x] = v[4];
}
