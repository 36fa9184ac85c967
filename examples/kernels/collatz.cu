extern "C" __global__ void collatz(unsigned n, unsigned* __restrict__ steps) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = (unsigned long long)i + 1;
    unsigned count = 0;
    while (x != 1) {
        if (x % 2 == 0) {
            x /= 2;
        } else {
            x = 3 * x + 1;
        }
        count += 1;
    }
    steps[i] = count;
}
