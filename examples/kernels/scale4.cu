extern "C" __global__ void scale4(unsigned n, float a, const float4* __restrict__ from, float4* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = from[i];
    to[i] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
}
