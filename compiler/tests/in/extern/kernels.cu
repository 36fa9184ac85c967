// A kernel that kernels.grid launches.
struct Part { float scale; unsigned short count; bool flag; };

extern "C" __global__ void scaled(float *p, unsigned n, Part part, float3 v, signed char last) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        p[i] = i * part.scale + part.count + v.y + v.z + last + (part.flag ? 0.5f : 0.0f);
    }
}
