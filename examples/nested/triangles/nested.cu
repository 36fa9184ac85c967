// The program of triangles.grid in CUDA C++.
#include "../common/serve.h"
#include "common.h"

__global__ __launch_bounds__(THREADS) void count_one(Graph graph, unsigned first, unsigned length, u64* totals) {
    count_chunk(graph, first, length, blockIdx.x, totals);
}

__global__ __launch_bounds__(THREADS) void count(Graph graph, u64* totals) {
    unsigned vertex = blockIdx.x * WARPS + threadIdx.x / 32;
    if (vertex >= graph.vertices) return;
    unsigned first = graph.offsets[vertex], length = graph.offsets[vertex + 1] - first;
    if (length < MANY) {
        count_few(graph, vertex, first, length, totals);
    } else if (threadIdx.x % 32 == 0) {
        count_one<<<(length + CHUNK - 1) / CHUNK, THREADS, 0, cudaStreamFireAndForget>>>(
            graph, first, length, totals);
    }
}

struct Triangles : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { totals.fill_bytes(0); }
    void run() override { count<<<(graph().vertices + WARPS - 1) / WARPS, THREADS>>>(graph(), totals.data); }
    std::vector<uint32_t> result() override { return totals.words(); }
};

int main(int argc, char** argv) {
    Triangles program;
    return serve(program, argc, argv);
}
