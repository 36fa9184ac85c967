typedef unsigned long long u64;

__device__ inline const unsigned char* number_at(const unsigned char* at, u64* value) {
    u64 result = 0;
    unsigned shift = 0;
    while (true) {
        unsigned char byte = *at++;
        result |= u64(byte & 127) << shift;
        if (byte < 128) break;
        shift += 7;
    }
    *value = result;
    return at;
}

extern "C" __global__ void varint(
    unsigned lists, const u64* __restrict__ starts, const unsigned short* __restrict__ counts,
    const unsigned char* __restrict__ bytes, long long* __restrict__ last) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= lists) return;
    const unsigned char* p = bytes + starts[i];
    long long value = 0;
    for (unsigned short k = 0; k < counts[i]; ++k) {
        u64 word = 0;
        p = number_at(p, &word);
        value += (long long)(word >> 1) ^ -(long long)(word & 1);
    }
    last[i] = value;
}
