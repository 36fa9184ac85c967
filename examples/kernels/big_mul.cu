constexpr unsigned WORDS = 8;

struct Wide {
    unsigned words[WORDS];
};

extern "C" __global__ void big_mul(
    unsigned n, const Wide* __restrict__ left, const Wide* __restrict__ right, unsigned* __restrict__ products) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Wide a = left[i], b = right[i];
    unsigned product[2 * WORDS] = {};
    for (unsigned j = 0; j < WORDS; ++j) {
        unsigned long long carry = 0;
        for (unsigned k = 0; k < WORDS; ++k) {
            carry += (unsigned long long)a.words[j] * b.words[k] + product[j + k];
            product[j + k] = unsigned(carry);
            carry >>= 32;
        }
        product[j + WORDS] = unsigned(carry);
    }
    for (unsigned k = 0; k < 2 * WORDS; ++k) products[k * n + i] = product[k];
}
