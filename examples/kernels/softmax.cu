constexpr unsigned FULL = 0xffffffff, THREADS = 256, WARPS = THREADS / 32;

extern "C" __global__ __launch_bounds__(THREADS) void softmax(
    unsigned columns, const float* __restrict__ from, float* __restrict__ to) {
    __shared__ float parts[WARPS];
    const float* row = from + blockIdx.x * columns;
    float* out = to + blockIdx.x * columns;
    float most = -1e30f;
    for (unsigned i = threadIdx.x; i < columns; i += THREADS) most = fmaxf(most, row[i]);
    for (unsigned offset = 16; offset > 0; offset /= 2) most = fmaxf(most, __shfl_xor_sync(FULL, most, offset));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = most;
    __syncthreads();
    for (unsigned i = 0; i < WARPS; ++i) most = fmaxf(most, parts[i]);
    __syncthreads();
    float sum = 0;
    for (unsigned i = threadIdx.x; i < columns; i += THREADS) sum += expf(row[i] - most);
    for (unsigned offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(FULL, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned i = 0; i < WARPS; ++i) sum += parts[i];
    for (unsigned i = threadIdx.x; i < columns; i += THREADS) out[i] = expf(row[i] - most) / sum;
}
