// Definitions in CUDA C++ for the declarations in `device.grid`.
struct Pair { float a; bool flag; double b; };

extern "C" __device__ float weighted(float x, bool take, signed char c, unsigned short h, Pair pair, float2 v,
                                     const float4* p) {
    return x + (take ? c : h) + pair.a + (pair.flag ? pair.b : 0) + v.x + v.y + p->w;
}
extern "C" __device__ bool above(signed char x) { return x > 3; }
extern "C" __device__ signed char narrow(int x) { return (signed char)x; }
extern "C" __device__ void nothing() {}

// Structs of each alignment and of several sizes, to see how LLVM passes them.
struct Bytes { unsigned char b[3]; };
struct Halfs { short a, b, c; };
struct Large { double d[20]; float f; };

extern "C" __device__ Pair swapped(Pair pair) { return Pair{(float)pair.b, !pair.flag, pair.a}; }
extern "C" __device__ float2 turned(float2 v) { return make_float2(v.y, v.x); }
extern "C" __device__ float3 moved(float3 v) { return make_float3(v.y, v.z, v.x); }
extern "C" __device__ int4 counted(int4 v) { return make_int4(v.w, v.z, v.y, v.x); }
extern "C" __device__ uchar2 small(uchar2 v) { return make_uchar2(v.y, v.x); }
extern "C" __device__ Bytes bytes(unsigned char b) { return Bytes{{b, b, b}}; }
extern "C" __device__ Halfs halfs(short a) { return Halfs{a, a, a}; }
extern "C" __device__ Large large(Large l) { l.f = l.d[3]; return l; }
