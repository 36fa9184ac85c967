extern "C" __global__ void stencil(
    unsigned nx, unsigned ny, unsigned nz, const float* __restrict__ from, float* __restrict__ to) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= nx - 1 || y >= ny - 1) return;
    unsigned plane = nx * ny, at = y * nx + x;
    for (unsigned z = 1; z < nz - 1; ++z) {
        at += plane;
        float around = from[at - 1] + from[at + 1] + from[at - nx] + from[at + nx] + from[at - plane] +
                       from[at + plane];
        to[at] = 0.4f * from[at] + 0.1f * around;
    }
}
