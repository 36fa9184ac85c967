// What `device.grid` declares, as CUDA C++ defines it.
struct Pair { float a; bool flag; double b; };

extern "C" __device__ float weighted(float x, bool take, signed char c, unsigned short h, Pair pair, float2 v,
                                     const float4* p) {
    return x + (take ? c : h) + pair.a + (pair.flag ? pair.b : 0) + v.x + v.y + p->w;
}
extern "C" __device__ bool above(signed char x) { return x > 3; }
extern "C" __device__ signed char narrow(int x) { return (signed char)x; }
extern "C" __device__ void nothing() {}
