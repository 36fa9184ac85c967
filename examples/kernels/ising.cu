__device__ inline unsigned random(unsigned x, unsigned seed) {
    unsigned h = x * 0x9e3779b1 ^ seed;
    h ^= h >> 15;
    h *= 0x85ebca77;
    h ^= h >> 13;
    h *= 0xc2b2ae3d;
    return h ^ h >> 16;
}

extern "C" __global__ void ising(
    int width, int height, int colour, unsigned seed, const unsigned* __restrict__ chances,
    signed char* __restrict__ spins) {
    int half = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int x = 2 * half + ((y + colour) & 1);
    if (x >= width || y >= height) return;
    int west = x == 0 ? width - 1 : x - 1, east = x == width - 1 ? 0 : x + 1;
    int north = y == 0 ? height - 1 : y - 1, south = y == height - 1 ? 0 : y + 1;
    signed char spin = spins[y * width + x];
    signed char around = spins[y * width + west] + spins[y * width + east] + spins[north * width + x] +
                         spins[south * width + x];
    unsigned chance = chances[(around * spin + 4) / 2];
    if (random(y * width + x, seed) < chance) spins[y * width + x] = -spin;
}
