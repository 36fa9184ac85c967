constexpr unsigned POLYNOMIAL = 0xedb88320;

extern "C" __global__ void crc32(
    unsigned n, unsigned words, const unsigned* __restrict__ messages, unsigned* __restrict__ sums) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned crc = 0xffffffff;
    for (unsigned w = 0; w < words; ++w) {
        crc ^= messages[w * n + i];
        for (unsigned bit = 0; bit < 32; ++bit) {
            if (crc & 1) {
                crc = crc >> 1 ^ POLYNOMIAL;
            } else {
                crc >>= 1;
            }
        }
    }
    sums[i] = ~crc;
}
