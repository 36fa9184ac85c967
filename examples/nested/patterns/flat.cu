// The grids that patterns.grid launches from a kernel, launched by the host: a kernel launch for each.
#include "../common/serve.h"

constexpr unsigned SLOTS = 1024;
constexpr unsigned STRIDE = 8;
constexpr unsigned STEP_BLOCKS = 2048;

__device__ void count(unsigned* done, unsigned slot) { atomicAdd(&done[slot % SLOTS * STRIDE], 1); }

__global__ __launch_bounds__(1) void child(unsigned* done, unsigned slot) { count(done, slot); }

__global__ __launch_bounds__(128) void stream_block(const unsigned* from, unsigned* to) {
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    to[i] = from[i] + 1;
}

__global__ __launch_bounds__(128) void step_block(unsigned* words) { words[blockIdx.x * 128 + threadIdx.x] += 1; }

__global__ __launch_bounds__(128) void wide_child(unsigned* done) {
    if (threadIdx.x == 0) count(done, blockIdx.x);
}

__global__ __launch_bounds__(1) void empty(unsigned, unsigned*) {}

struct Patterns : Program {
    unsigned pattern = 0, size = 0;
    Array<unsigned> done, from, to;

    bool writes_words() const { return pattern == 10 || pattern > 11; }
    void load(const Input& input) override {
        pattern = input.numbers[0];
        size = input.numbers[1];
        done.resize(SLOTS * STRIDE);
        size_t words = pattern == 10 ? size_t(size) * 128 : pattern > 11 ? STEP_BLOCKS * 128 : 1;
        from.resize(words);
        to.resize(words);
        from.fill_bytes(1);
    }
    void reset() override {
        done.fill_bytes(0);
        if (writes_words()) to.fill_bytes(0);
    }
    void run() override {
        if (pattern == 10) {
            stream_block<<<size, 128>>>(from.data, to.data);
        } else if (pattern == 11) {
            if (size > 0) wide_child<<<size, 128>>>(done.data);
            else empty<<<1, 1>>>(0, done.data);
        } else if (pattern > 11) {
            unsigned blocks = pattern == 14 ? 132 : STEP_BLOCKS;
            for (unsigned i = 0; i < size; ++i) step_block<<<blocks, 128>>>(to.data);
        } else {
            for (unsigned i = 0; i < size; ++i) child<<<1, 1>>>(done.data, i);
        }
    }
    std::vector<uint32_t> result() override { return writes_words() ? to.words() : done.words(); }
};

int main(int argc, char** argv) {
    Patterns program;
    return serve(program, argc, argv);
}
