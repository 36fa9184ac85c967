struct Particle {
    float3 position, velocity;
    float mass, bounces;
};

extern "C" __global__ void particles(unsigned n, float dt, Particle* __restrict__ all) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = all[i];
    p.velocity.y = fmaf(-9.81f, dt, p.velocity.y);
    p.position.x = fmaf(p.velocity.x, dt, p.position.x);
    p.position.y = fmaf(p.velocity.y, dt, p.position.y);
    p.position.z = fmaf(p.velocity.z, dt, p.position.z);
    if (fabsf(p.position.x) > 2.0f) {
        p.velocity.x = -p.velocity.x;
        p.bounces += 1.0f;
    }
    if (fabsf(p.position.y) > 2.0f) {
        p.velocity.y = -p.velocity.y * 0.9f;
        p.bounces += 1.0f;
    }
    if (fabsf(p.position.z) > 2.0f) {
        p.velocity.z = -p.velocity.z;
        p.bounces += 1.0f;
    }
    all[i] = p;
}
