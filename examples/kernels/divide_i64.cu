typedef long long T;
constexpr T ROUNDS = 64;

extern "C" __global__ void divide_i64(
    unsigned n, const T* __restrict__ values, const T* __restrict__ divisors, T* __restrict__ sums) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T value = values[i], divisor = divisors[i], sum = 0;
    for (T k = 0; k < ROUNDS; ++k) sum += value / (divisor + k) + (sum ^ value) % (divisor - k);
    sums[i] = sum;
}
