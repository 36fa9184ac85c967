// The program of sssp.grid in CUDA C++.
#include "../common/serve.h"
#include "search.h"

__global__ __launch_bounds__(THREADS) void expand_one(
    Graph graph, Search search, unsigned round, unsigned distance, unsigned first, unsigned end) {
    expand_chunk(graph, search, round, distance, first + blockIdx.x * CHUNK, end);
}

__global__ __launch_bounds__(THREADS) void expand(Graph graph, Search search, unsigned round, unsigned count) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x, first = 0, degree = 0, distance = 0;
    if (i < count) {
        unsigned vertex = search.queues[round % 2][i];
        distance = search.distances[vertex];
        first = graph.offsets[vertex];
        degree = graph.offsets[vertex + 1] - first;
        if (degree >= MANY) {
            expand_one<<<(degree + CHUNK - 1) / CHUNK, THREADS, 0, cudaStreamFireAndForget>>>(
                graph, search, round, distance, first, first + degree);
            degree = 0;
        }
    }
    expand_block(graph, search, round, distance, first, degree);
}

__global__ __launch_bounds__(THREADS) void run_round(Graph graph, Search search, unsigned round) {
    if (threadIdx.x == 0) {
        unsigned count = search.counts[round % 3];
        search.counts[(round + 2) % 3] = 0;
        if (count > 0) {
            expand<<<(count + THREADS - 1) / THREADS, THREADS, 0, cudaStreamFireAndForget>>>(
                graph, search, round, count);
            run_round<<<1, THREADS, 0, cudaStreamTailLaunch>>>(graph, search, round + 1);
        }
    }
}

struct Sssp : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override { run_round<<<1, THREADS>>>(graph(), search(), 0); }
    std::vector<uint32_t> result() override { return distances.words(); }
};

int main(int argc, char** argv) {
    Sssp program;
    return serve(program, argc, argv);
}
