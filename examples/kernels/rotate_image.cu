extern "C" __global__ void rotate_image(
    unsigned side, float cosine, float sine, const float* __restrict__ from, float* __restrict__ to) {
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= side || row >= side) return;
    float half = float(side) * 0.5f, dx = float(column) - half, dy = float(row) - half, most = float(side - 2);
    float x = fminf(fmaxf(fmaf(cosine, dx, fmaf(-sine, dy, half)), 0.0f), most);
    float y = fminf(fmaxf(fmaf(sine, dx, fmaf(cosine, dy, half)), 0.0f), most);
    float left = floorf(x), top = floorf(y), u = x - left, v = y - top;
    unsigned at = unsigned(top) * side + unsigned(left);
    float above = from[at] + u * (from[at + 1] - from[at]);
    float below = from[at + side] + u * (from[at + side + 1] - from[at + side]);
    to[row * side + column] = above + v * (below - above);
}
