constexpr unsigned STEPS = 32;

struct Sphere {
    float3 centre;
    float radius;
};

__device__ inline float distance(float3 p, Sphere sphere) {
    float x = p.x - sphere.centre.x, y = p.y - sphere.centre.y, z = p.z - sphere.centre.z;
    return sqrtf(x * x + y * y + z * z) - sphere.radius;
}

extern "C" __global__ void march(
    unsigned side, unsigned count, const Sphere* __restrict__ spheres, float* __restrict__ depths) {
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= side || row >= side) return;
    float u = float(column) / float(side) - 0.5f, v = float(row) / float(side) - 0.5f;
    float inverse = 1.0f / sqrtf(u * u + v * v + 1.0f), t = 0;
    for (unsigned step = 0; step < STEPS; ++step) {
        float3 p = make_float3(u * inverse * t, v * inverse * t, inverse * t);
        float least = 1;
        for (unsigned i = 0; i < count; ++i) least = fminf(least, distance(p, spheres[i]));
        t += fmaxf(least, 0.02f);
    }
    depths[row * side + column] = t;
}
