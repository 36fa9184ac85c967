typedef unsigned long long u64;

extern "C" __global__ void permute4d(
    u64 a, u64 b, u64 c, u64 d, const float* __restrict__ from, float* __restrict__ to) {
    u64 n = a * b * c * d, stride = (u64)blockDim.x * gridDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        u64 z = i % b, rest = i / b, w = rest % d, outer = rest / d, x = outer % a, y = outer / a;
        to[i] = from[((x * b + z) * c + y) * d + w];
    }
}
