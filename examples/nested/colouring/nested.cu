// The program of colouring.grid in CUDA C++.
#include "../common/serve.h"
#include "colours.h"

__global__ void colour_small(Graph graph, State state, unsigned vertex);
__global__ void colour_large(Graph graph, State state, unsigned vertex);

static __device__ void launch_vertex(const Graph& graph, const State& state, unsigned vertex) {
    if (degree(graph, vertex) < MANY) {
        colour_small<<<1, 1, 0, cudaStreamFireAndForget>>>(graph, state, vertex);
    } else {
        colour_large<<<1, THREADS, 0, cudaStreamFireAndForget>>>(graph, state, vertex);
    }
}

static __device__ void notify(const Graph& graph, const State& state, unsigned vertex, unsigned neighbour) {
    if (releases(graph, state, vertex, neighbour)) {
        __threadfence();
        launch_vertex(graph, state, neighbour);
    }
}

__global__ __launch_bounds__(THREADS) void begin(Graph graph, State state) {
    unsigned vertex = blockIdx.x * THREADS + threadIdx.x;
    if (vertex < graph.vertices) {
        bool is_first = true;
        for (unsigned i = graph.offsets[vertex]; i < graph.offsets[vertex + 1]; ++i) {
            if (is_before(graph, graph.targets[i], vertex)) {
                is_first = false;
                break;
            }
        }
        if (is_first) launch_vertex(graph, state, vertex);
    }
}

__global__ __launch_bounds__(THREADS) void colour(Graph graph, State state) {
    unsigned vertex = blockIdx.x * THREADS + threadIdx.x;
    if (vertex == 0) {
        begin<<<(graph.vertices + THREADS - 1) / THREADS, THREADS, 0, cudaStreamTailLaunch>>>(graph, state);
    }
    if (vertex < graph.vertices) state.waits[vertex] = count_before(graph, vertex);
}

__global__ __launch_bounds__(THREADS) void colour_small(Graph graph, State state, unsigned vertex) {
    state.colours[vertex] = least_small(graph, state, vertex);
    __threadfence();
    for (unsigned i = graph.offsets[vertex]; i < graph.offsets[vertex + 1]; ++i) {
        notify(graph, state, vertex, graph.targets[i]);
    }
}

__global__ __launch_bounds__(THREADS) void colour_large(Graph graph, State state, unsigned vertex) {
    unsigned least = least_large(graph, state, vertex);
    if (threadIdx.x == 0) state.colours[vertex] = least;
    __threadfence();
    __syncthreads();
    for (unsigned i = graph.offsets[vertex] + threadIdx.x; i < graph.offsets[vertex + 1]; i += THREADS) {
        notify(graph, state, vertex, graph.targets[i]);
    }
}

struct Colouring : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override {
        colour<<<(graph().vertices + THREADS - 1) / THREADS, THREADS>>>(graph(), state());
    }
    std::vector<uint32_t> result() override { return colours.words(); }
};

int main(int argc, char** argv) {
    Colouring program;
    return serve(program, argc, argv);
}
