extern "C" __global__ void fnv_strings(
    unsigned n, const unsigned* __restrict__ offsets, const unsigned char* __restrict__ text,
    unsigned long long* __restrict__ hashes) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned char *p = text + offsets[i], *end = text + offsets[i + 1];
    unsigned long long hash = 0xcbf29ce484222325;
    while (p < end) {
        hash = (hash ^ *p) * 0x100000001b3;
        p = p + 1;
    }
    hashes[i] = hash;
}
