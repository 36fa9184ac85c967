constexpr unsigned MOST = 256;

extern "C" __global__ void mandelbrot(unsigned side, float step, unsigned* __restrict__ counts) {
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= side || row >= side) return;
    float cx = fmaf(float(column), step, -2.0f), cy = fmaf(float(row), step, -1.5f), x = 0, y = 0;
    unsigned count = 0;
    while (count < MOST && fmaf(x, x, y * y) <= 4.0f) {
        float next = fmaf(x, x, fmaf(-y, y, cx));
        y = fmaf(x + x, y, cy);
        x = next;
        count += 1;
    }
    counts[row * side + column] = count;
}
