__device__ inline float relaxed(float f, float weight, float density, float along, float still) {
    float balance = weight * density * (1.0f + 3.0f * along + 4.5f * along * along - still);
    return f + 0.6f * (balance - f);
}

extern "C" __global__ void lattice(
    unsigned width, unsigned height, const float* __restrict__ from, float* __restrict__ to) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    unsigned n = width * height;
    unsigned west = x == 0 ? width - 1 : x - 1, east = x == width - 1 ? 0 : x + 1;
    unsigned south = (y == 0 ? height - 1 : y - 1) * width, north = (y == height - 1 ? 0 : y + 1) * width;
    unsigned here = y * width;
    float f0 = from[here + x];
    float f1 = from[n + here + west];
    float f2 = from[2 * n + south + x];
    float f3 = from[3 * n + here + east];
    float f4 = from[4 * n + north + x];
    float f5 = from[5 * n + south + west];
    float f6 = from[6 * n + south + east];
    float f7 = from[7 * n + north + east];
    float f8 = from[8 * n + north + west];
    float density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8;
    float u = (f1 + f5 + f8 - f3 - f6 - f7) / density;
    float v = (f2 + f5 + f6 - f4 - f7 - f8) / density;
    float still = 1.5f * (u * u + v * v);
    unsigned at = here + x;
    to[at] = relaxed(f0, 4.0f / 9.0f, density, 0.0f, still);
    to[n + at] = relaxed(f1, 1.0f / 9.0f, density, u, still);
    to[2 * n + at] = relaxed(f2, 1.0f / 9.0f, density, v, still);
    to[3 * n + at] = relaxed(f3, 1.0f / 9.0f, density, -u, still);
    to[4 * n + at] = relaxed(f4, 1.0f / 9.0f, density, -v, still);
    to[5 * n + at] = relaxed(f5, 1.0f / 36.0f, density, u + v, still);
    to[6 * n + at] = relaxed(f6, 1.0f / 36.0f, density, v - u, still);
    to[7 * n + at] = relaxed(f7, 1.0f / 36.0f, density, -u - v, still);
    to[8 * n + at] = relaxed(f8, 1.0f / 36.0f, density, u - v, still);
}
