extern "C" __global__ void digits(
    unsigned n, const unsigned long long* __restrict__ numbers, unsigned* __restrict__ sums) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long rest = numbers[i];
    unsigned sum = 0;
    while (rest > 0) {
        sum += unsigned(rest % 10);
        rest /= 10;
    }
    sums[i] = sum;
}
