extern "C" __global__ void quantize(
    unsigned n, float scale, const float* __restrict__ x, const double* __restrict__ d, int* __restrict__ signed_,
    unsigned* __restrict__ unsigned_, long long* __restrict__ wide) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float scaled = x[i] * scale;
    signed_[i] = int(scaled);
    unsigned_[i] = unsigned(fabsf(scaled));
    wide[i] = (long long)d[i];
}
