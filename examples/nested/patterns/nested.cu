// The kernels of patterns.grid in CUDA C++.
#include "../common/serve.h"

constexpr unsigned SLOTS = 1024;
constexpr unsigned STRIDE = 8;
constexpr unsigned STEP_BLOCKS = 2048;

__device__ void count(unsigned* done, unsigned slot) { atomicAdd(&done[slot % SLOTS * STRIDE], 1); }

__global__ __launch_bounds__(1) void child(unsigned* done, unsigned slot) { count(done, slot); }

__global__ __launch_bounds__(1) void one_thread_fire_and_forget(unsigned children, unsigned* done) {
    for (unsigned i = 0; i < children; ++i) child<<<1, 1, 0, cudaStreamFireAndForget>>>(done, i);
}

__global__ __launch_bounds__(1) void one_thread_default(unsigned children, unsigned* done) {
    for (unsigned i = 0; i < children; ++i) child<<<1, 1>>>(done, i);
}

__global__ __launch_bounds__(1) void one_thread_tail(unsigned children, unsigned* done) {
    for (unsigned i = 0; i < children; ++i) child<<<1, 1, 0, cudaStreamTailLaunch>>>(done, i);
}

__global__ __launch_bounds__(128) void every_thread(unsigned children, unsigned* done) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned i = 0; i < children; ++i) {
        child<<<1, 1, 0, cudaStreamFireAndForget>>>(done, thread * children + i);
    }
}

__global__ __launch_bounds__(128) void every_thread_default(unsigned children, unsigned* done) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned i = 0; i < children; ++i) child<<<1, 1>>>(done, thread * children + i);
}

__global__ __launch_bounds__(1) void tree(unsigned depth, unsigned* done, unsigned node) {
    if (node != 1) count(done, node);
    if (depth > 0) {
        tree<<<1, 1, 0, cudaStreamFireAndForget>>>(depth - 1, done, 2 * node);
        tree<<<1, 1, 0, cudaStreamFireAndForget>>>(depth - 1, done, 2 * node + 1);
    }
}

__global__ __launch_bounds__(1) void chain_fire_and_forget(unsigned length, unsigned* done, unsigned link) {
    if (link > 0) count(done, link);
    if (link < length) chain_fire_and_forget<<<1, 1, 0, cudaStreamFireAndForget>>>(length, done, link + 1);
}

__global__ __launch_bounds__(1) void chain_default(unsigned length, unsigned* done, unsigned link) {
    if (link > 0) count(done, link);
    if (link < length) chain_default<<<1, 1>>>(length, done, link + 1);
}

__global__ __launch_bounds__(1) void chain_tail(unsigned length, unsigned* done, unsigned link) {
    if (link > 0) count(done, link);
    if (link < length) chain_tail<<<1, 1, 0, cudaStreamTailLaunch>>>(length, done, link + 1);
}

__global__ __launch_bounds__(128) void stream_block(const unsigned* from, unsigned* to) {
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    to[i] = from[i] + 1;
}

__global__ __launch_bounds__(1) void stream_root(unsigned blocks, const unsigned* from, unsigned* to) {
    if (blocks > 0) stream_block<<<blocks, 128, 0, cudaStreamFireAndForget>>>(from, to);
}

__global__ __launch_bounds__(128) void step_block(unsigned* words) { words[blockIdx.x * 128 + threadIdx.x] += 1; }

__global__ __launch_bounds__(1) void steps_default(unsigned steps, unsigned* words) {
    for (unsigned i = 0; i < steps; ++i) step_block<<<STEP_BLOCKS, 128>>>(words);
}

__global__ __launch_bounds__(1) void few_default(unsigned steps, unsigned* words) {
    for (unsigned i = 0; i < steps; ++i) step_block<<<132, 128>>>(words);
}

__global__ __launch_bounds__(1) void steps_tail(unsigned steps, unsigned* words) {
    if (steps > 0) {
        step_block<<<STEP_BLOCKS, 128, 0, cudaStreamFireAndForget>>>(words);
        steps_tail<<<1, 1, 0, cudaStreamTailLaunch>>>(steps - 1, words);
    }
}

__global__ __launch_bounds__(128) void wide_child(unsigned* done) {
    if (threadIdx.x == 0) count(done, blockIdx.x);
}

__global__ __launch_bounds__(1) void wide_root(unsigned blocks, unsigned* done) {
    if (blocks > 0) wide_child<<<blocks, 128, 0, cudaStreamFireAndForget>>>(done);
}

// The numbers of an input: the pattern, then its size.
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
        unsigned* d = done.data;
        switch (pattern) {
            case 0: one_thread_fire_and_forget<<<1, 1>>>(size, d); break;
            case 1: one_thread_default<<<1, 1>>>(size, d); break;
            case 2: one_thread_tail<<<1, 1>>>(size, d); break;
            case 3: every_thread<<<132, 32>>>(size, d); break;
            case 4: every_thread<<<132, 128>>>(size, d); break;
            case 5: every_thread_default<<<132, 32>>>(size, d); break;
            case 6: tree<<<1, 1>>>(size, d, 1); break;
            case 7: chain_fire_and_forget<<<1, 1>>>(size, d, 0); break;
            case 8: chain_default<<<1, 1>>>(size, d, 0); break;
            case 9: chain_tail<<<1, 1>>>(size, d, 0); break;
            case 10: stream_root<<<1, 1>>>(size, from.data, to.data); break;
            case 11: wide_root<<<1, 1>>>(size, d); break;
            case 12: steps_default<<<1, 1>>>(size, to.data); break;
            case 13: steps_tail<<<1, 1>>>(size, to.data); break;
            case 14: few_default<<<1, 1>>>(size, to.data); break;
            default: fail("pattern", "unknown");
        }
    }
    std::vector<uint32_t> result() override { return writes_words() ? to.words() : done.words(); }
};

int main(int argc, char** argv) {
    Patterns program;
    return serve(program, argc, argv);
}
