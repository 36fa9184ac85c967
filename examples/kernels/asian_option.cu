constexpr unsigned ROUNDS = 10;

struct Key {
    unsigned low, high;
};

__device__ inline uint4 one_round(uint4 c, Key key) {
    unsigned first = __umulhi(0xd2511f53, c.x), second = __umulhi(0xcd9e8d57, c.z);
    return make_uint4(second ^ c.y ^ key.low, 0xcd9e8d57 * c.z, first ^ c.w ^ key.high, 0xd2511f53 * c.x);
}

__device__ inline uint4 philox(uint4 c, Key key) {
    for (unsigned round = 0; round < ROUNDS; ++round) {
        c = one_round(c, key);
        key.low += 0x9e3779b9;
        key.high += 0xbb67ae85;
    }
    return c;
}

__device__ inline float unit(unsigned word) { return (float(word >> 8) + 1.0f) * 5.9604645e-8f; }

__device__ inline float2 normals(unsigned a, unsigned b) {
    float radius = sqrtf(-2.0f * logf(unit(a))), angle = 6.2831853f * unit(b);
    return make_float2(radius * cosf(angle), radius * sinf(angle));
}

extern "C" __global__ void asian_option(
    unsigned n, unsigned rounds, unsigned seed, float spot, float strike, float drift, float volatility,
    float* __restrict__ payoffs) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Key key = {seed, 0x12345678};
    float growth = 0, sum = 0;
    for (unsigned step = 0; step < rounds; ++step) {
        uint4 words = philox(make_uint4(i, step, 0, 0), key);
        float2 first = normals(words.x, words.y), second = normals(words.z, words.w);
        growth += drift + volatility * first.x;
        sum += expf(growth);
        growth += drift + volatility * first.y;
        sum += expf(growth);
        growth += drift + volatility * second.x;
        sum += expf(growth);
        growth += drift + volatility * second.y;
        sum += expf(growth);
    }
    payoffs[i] = fmaxf(spot * sum / float(4 * rounds) - strike, 0.0f);
}
