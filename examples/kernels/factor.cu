extern "C" __global__ void factor(unsigned n, const unsigned* __restrict__ numbers, unsigned* __restrict__ factors) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned number = numbers[i], d = 3;
    while (d * d <= number && number % d != 0) d += 2;
    factors[i] = d * d <= number ? d : number;
}
