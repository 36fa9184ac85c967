__device__ inline float activated(float x) {
    return 0.5f * x * (1.0f + tanhf(0.7978846f * (x + 0.044715f * x * x * x)));
}

extern "C" __global__ void gelu(unsigned n, const float4* __restrict__ from, float4* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = from[i];
    to[i] = make_float4(activated(v.x), activated(v.y), activated(v.z), activated(v.w));
}
