constexpr unsigned THREADS = 256, PIECE = 16384;

extern "C" __global__ __launch_bounds__(THREADS) void sieve(
    unsigned long long first, unsigned count, const unsigned* __restrict__ primes, unsigned* __restrict__ found) {
    __shared__ unsigned composite[PIECE / 32], total;
    unsigned t = threadIdx.x;
    if (t == 0) total = 0;
    for (unsigned k = t; k < PIECE / 32; k += THREADS) composite[k] = 0;
    __syncthreads();
    unsigned long long start = first + (unsigned long long)blockIdx.x * PIECE;
    for (unsigned i = t; i < count; i += THREADS) {
        unsigned prime = primes[i], rest = unsigned(start % prime), k = rest == 0 ? 0 : prime - rest;
        while (k < PIECE) {
            atomicOr(&composite[k / 32], 1u << k % 32);
            k += prime;
        }
    }
    __syncthreads();
    unsigned own = 0;
    for (unsigned k = t; k < PIECE / 32; k += THREADS) own += __popc(~composite[k]);
    atomicAdd(&total, own);
    __syncthreads();
    if (t == 0) found[blockIdx.x] = total;
}
