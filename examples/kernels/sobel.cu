__device__ inline int pixel(const unsigned char* from, unsigned at) { return from[at]; }

extern "C" __global__ void sobel(
    unsigned width, unsigned height, const unsigned char* __restrict__ from, unsigned char* __restrict__ to) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= width - 1 || y >= height - 1) return;
    unsigned at = y * width + x, above = at - width, below = at + width;
    int across = pixel(from, above + 1) + 2 * pixel(from, at + 1) + pixel(from, below + 1) -
                 pixel(from, above - 1) - 2 * pixel(from, at - 1) - pixel(from, below - 1);
    int down = pixel(from, below - 1) + 2 * pixel(from, below) + pixel(from, below + 1) - pixel(from, above - 1) -
               2 * pixel(from, above) - pixel(from, above + 1);
    to[at] = (unsigned char)min(abs(across) + abs(down), 255);
}
