// The program of segments.grid in CUDA C++.
#include "../common/serve.h"
#include "sums.h"

__global__ __launch_bounds__(THREADS) void sum_long(
    const unsigned* values, unsigned first, unsigned end, unsigned* out) {
    sum_chunk(values, first + blockIdx.x * CHUNK, end, out);
}

__global__ __launch_bounds__(THREADS) void sum_segments(Segments segments, unsigned* sums, unsigned long long* total) {
    unsigned thread = blockIdx.x * THREADS + threadIdx.x, first = 0, end = 0;
    if (thread == 0) {
        add_up<<<(segments.count + SUMS - 1) / SUMS, THREADS, 0, cudaStreamTailLaunch>>>(
            sums, segments.count, total);
    }
    if (thread < segments.count) {
        first = segments.offsets[thread];
        end = segments.offsets[thread + 1];
        if (end - first >= LONG) {
            sum_long<<<(end - first + CHUNK - 1) / CHUNK, THREADS, 0, cudaStreamFireAndForget>>>(
                segments.values, first, end, sums + thread);
            end = first;
        }
    }
    unsigned mine = sum_short(segments, first, end);
    if (first < end) sums[thread] = mine;
}

struct Sums : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override {
        sum_segments<<<(count + THREADS - 1) / THREADS, THREADS>>>(segments(), sums.data, total.data);
    }
    std::vector<uint32_t> result() override { return Problem::result(); }
};

int main(int argc, char** argv) {
    Sums program;
    return serve(program, argc, argv);
}
