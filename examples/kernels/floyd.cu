extern "C" __global__ void floyd(unsigned n, unsigned k, unsigned* __restrict__ distances) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    unsigned through = distances[y * n + k] + distances[k * n + x];
    if (through < distances[y * n + x]) distances[y * n + x] = through;
}
