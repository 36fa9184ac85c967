extern "C" __global__ void stencil_points(
    unsigned nx, unsigned ny, unsigned nz, const float* __restrict__ from, float* __restrict__ to) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x == 0 || y == 0 || z == 0 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
    unsigned at = (z * ny + y) * nx + x;
    float around = from[at - 1] + from[at + 1] + from[at - nx] + from[at + nx] + from[at - nx * ny] +
                   from[at + nx * ny];
    to[at] = 0.4f * from[at] + 0.1f * around;
}
