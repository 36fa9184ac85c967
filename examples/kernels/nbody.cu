constexpr unsigned TILE = 256;
constexpr float SOFTENING = 0.01f;

extern "C" __global__ __launch_bounds__(TILE) void nbody(
    unsigned n, const float4* __restrict__ bodies, float3* __restrict__ accelerations) {
    __shared__ float4 tile[TILE];
    unsigned i = blockIdx.x * TILE + threadIdx.x;
    float4 own = bodies[i];
    float3 sum = make_float3(0, 0, 0);
    for (unsigned first = 0; first < n; first += TILE) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (unsigned j = 0; j < TILE; ++j) {
            float4 other = tile[j];
            float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
            float inverse = rsqrtf(x * x + y * y + z * z + SOFTENING);
            float strength = other.w * inverse * inverse * inverse;
            sum.x += x * strength;
            sum.y += y * strength;
            sum.z += z * strength;
        }
        __syncthreads();
    }
    accelerations[i] = sum;
}
