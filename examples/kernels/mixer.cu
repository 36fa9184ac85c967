extern "C" __global__ void mixer(
    unsigned n, int gain, const short* __restrict__ a, const short* __restrict__ b, short* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = a[i] + (b[i] * gain >> 8);
    to[i] = short(min(max(sum, -32768), 32767));
}
