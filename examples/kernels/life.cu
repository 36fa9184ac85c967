extern "C" __global__ void life(
    unsigned width, unsigned height, const unsigned char* __restrict__ from, unsigned char* __restrict__ to) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= width - 1 || y >= height - 1) return;
    unsigned around = 0;
    for (unsigned j = y - 1; j < y + 2; ++j) {
        for (unsigned i = x - 1; i < x + 2; ++i) around += from[j * width + i];
    }
    unsigned char cell = from[y * width + x];
    bool lives = around == 3 || (around == 4 && cell == 1);
    to[y * width + x] = lives;
}
