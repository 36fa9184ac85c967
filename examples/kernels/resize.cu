__device__ inline unsigned char weighted(
    unsigned char a, unsigned char b, unsigned char c, unsigned char d, float u, float v) {
    float upper = fmaf(float(b), u, float(a) * (1.0f - u)), lower = fmaf(float(d), u, float(c) * (1.0f - u));
    return (unsigned char)fmaf(lower, v, upper * (1.0f - v));
}

extern "C" __global__ void resize(
    int width, int height, int new_width, int new_height, const uchar4* __restrict__ from, uchar4* __restrict__ to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= new_width || y >= new_height) return;
    float across = (float(x) + 0.5f) * float(width) / float(new_width) - 0.5f;
    float down = (float(y) + 0.5f) * float(height) / float(new_height) - 0.5f;
    float left = floorf(across), top = floorf(down), u = across - left, v = down - top;
    int x0 = min(max(int(left), 0), width - 1), x1 = min(max(int(left) + 1, 0), width - 1);
    int y0 = min(max(int(top), 0), height - 1), y1 = min(max(int(top) + 1, 0), height - 1);
    uchar4 a = from[y0 * width + x0], b = from[y0 * width + x1];
    uchar4 c = from[y1 * width + x0], d = from[y1 * width + x1];
    to[y * new_width + x] = make_uchar4(
        weighted(a.x, b.x, c.x, d.x, u, v), weighted(a.y, b.y, c.y, d.y, u, v), weighted(a.z, b.z, c.z, d.z, u, v),
        weighted(a.w, b.w, c.w, d.w, u, v));
}
