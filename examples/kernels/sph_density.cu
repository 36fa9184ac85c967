struct Cells {
    int side;
    float width;
};

extern "C" __global__ void sph_density(
    unsigned n, int side, float h, const unsigned* __restrict__ starts, const float4* __restrict__ particles,
    float* __restrict__ densities, unsigned* __restrict__ neighbours) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = particles[i];
    Cells cells = {side, h};
    int column = int(p.x / cells.width), row = int(p.y / cells.width), plane = int(p.z / cells.width);
    float density = 0;
    unsigned count = 0;
    for (int z = max(plane - 1, 0); z < min(plane + 2, cells.side); ++z) {
        for (int y = max(row - 1, 0); y < min(row + 2, cells.side); ++y) {
            for (int x = max(column - 1, 0); x < min(column + 2, cells.side); ++x) {
                int cell = (z * cells.side + y) * cells.side + x;
                for (unsigned j = starts[cell]; j < starts[cell + 1]; ++j) {
                    float4 q = particles[j];
                    float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
                    float left = fmaf(h, h, -fmaf(dx, dx, fmaf(dy, dy, dz * dz)));
                    if (left > 0.0f && j != i) {
                        density += q.w * left * left * left;
                        ++count;
                    }
                }
            }
        }
    }
    float h3 = h * h * h;
    densities[i] = density * 1.5666815f / (h3 * h3 * h3);
    neighbours[i] = count;
}
