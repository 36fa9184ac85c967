// The program of bfs.grid in CUDA C++.
#include "../common/serve.h"
#include "search.h"

__global__ __launch_bounds__(THREADS) void expand_one(
    Graph graph, Search search, unsigned level, unsigned first, unsigned end) {
    expand_chunk(graph, search, level, first + blockIdx.x * CHUNK, end);
}

__global__ __launch_bounds__(THREADS) void expand(Graph graph, Search search, unsigned level, unsigned count) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x, first = 0, degree = 0;
    if (i < count) {
        unsigned vertex = search.queues[level % 2][i];
        first = graph.offsets[vertex];
        degree = graph.offsets[vertex + 1] - first;
        if (degree >= MANY) {
            expand_one<<<(degree + CHUNK - 1) / CHUNK, THREADS, 0, cudaStreamFireAndForget>>>(
                graph, search, level, first, first + degree);
            degree = 0;
        }
    }
    expand_block(graph, search, level, first, degree);
}

__global__ __launch_bounds__(THREADS) void visit(Graph graph, Search search, unsigned level) {
    if (threadIdx.x == 0) {
        unsigned count = search.counts[level % 3];
        search.counts[(level + 2) % 3] = 0;
        if (count > 0) {
            expand<<<(count + THREADS - 1) / THREADS, THREADS, 0, cudaStreamFireAndForget>>>(
                graph, search, level, count);
            visit<<<1, THREADS, 0, cudaStreamTailLaunch>>>(graph, search, level + 1);
        }
    }
}

struct Bfs : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override { visit<<<1, THREADS>>>(graph(), search(), 0); }
    std::vector<uint32_t> result() override { return levels.words(); }
};

int main(int argc, char** argv) {
    Bfs program;
    return serve(program, argc, argv);
}
