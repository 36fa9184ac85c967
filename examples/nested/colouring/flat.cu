// Greedy graph colouring in rounds: the vertices that wait for none are in two queues, for a thread and for a block each; those
// that they release are the next round's.
#include "../common/serve.h"
#include "colours.h"

constexpr unsigned FIRST_ROUNDS = 16;
constexpr unsigned MOST_ROUNDS = 64;

// For vertices with few (0) and with many neighbours (1): those of this round and of the next one, and the counts of three
// rounds: this one, the next, and one that is cleared.
struct Queues {
    unsigned* vertices[2][2];
    unsigned* counts;
};

static __device__ unsigned* count_of(const Queues& queues, unsigned kind, unsigned round) {
    return &queues.counts[kind * 3 + round % 3];
}

static __device__ void append(const Graph& graph, const Queues& queues, unsigned round, unsigned vertex) {
    unsigned kind = degree(graph, vertex) < MANY ? 0 : 1;
    queues.vertices[kind][round % 2][atomicAdd(count_of(queues, kind, round), 1)] = vertex;
}

__global__ __launch_bounds__(THREADS) void begin(Graph graph, State state, Queues queues) {
    unsigned vertex = blockIdx.x * THREADS + threadIdx.x;
    if (vertex < graph.vertices) {
        unsigned waits = count_before(graph, vertex);
        state.waits[vertex] = waits;
        if (waits == 0) append(graph, queues, 0, vertex);
    }
}

// The first blocks colour vertices with many neighbours, a block each, then all take those with few.
__global__ __launch_bounds__(THREADS) void colour(Graph graph, State state, Queues queues, unsigned round) {
    unsigned small = *count_of(queues, 0, round), large = *count_of(queues, 1, round);
    if (blockIdx.x == 0 && threadIdx.x < 2) *count_of(queues, threadIdx.x, round + 2) = 0;
    for (unsigned i = blockIdx.x; i < large; i += gridDim.x) {
        unsigned vertex = queues.vertices[1][round % 2][i];
        unsigned least = least_large(graph, state, vertex);
        if (threadIdx.x == 0) state.colours[vertex] = least;
        for (unsigned e = graph.offsets[vertex] + threadIdx.x; e < graph.offsets[vertex + 1]; e += THREADS) {
            unsigned target = graph.targets[e];
            if (releases(graph, state, vertex, target)) append(graph, queues, round + 1, target);
        }
        __syncthreads();
    }
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < small; i += gridDim.x * THREADS) {
        unsigned vertex = queues.vertices[0][round % 2][i];
        state.colours[vertex] = least_small(graph, state, vertex);
        for (unsigned e = graph.offsets[vertex]; e < graph.offsets[vertex + 1]; ++e) {
            unsigned target = graph.targets[e];
            if (releases(graph, state, vertex, target)) append(graph, queues, round + 1, target);
        }
    }
}

struct Colouring : Program, Problem {
    Array<unsigned> queues[2][2], counts;
    unsigned *left = nullptr, blocks = 0;

    void load(const Input& input) override {
        Problem::load(input);
        for (auto& kind : queues) {
            for (auto& queue : kind) queue.resize(colours.count);
        }
        counts.resize(6);
        if (!left) CHECK(cudaMallocHost(&left, 6 * sizeof(unsigned)));
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, colour, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        Problem::reset();
        counts.fill_bytes(0);
    }
    void run() override {
        Queues all{{{queues[0][0].data, queues[0][1].data}, {queues[1][0].data, queues[1][1].data}}, counts.data};
        begin<<<(graph().vertices + THREADS - 1) / THREADS, THREADS>>>(graph(), state(), all);
        unsigned rounds_ahead = FIRST_ROUNDS;
        for (unsigned round = 0;;) {
            for (unsigned end = round + rounds_ahead; round < end; ++round) {
                colour<<<blocks, THREADS>>>(graph(), state(), all, round);
            }
            CHECK(cudaMemcpyAsync(left, counts.data, 6 * sizeof(unsigned), cudaMemcpyDeviceToHost, 0));
            CHECK(cudaStreamSynchronize(0));
            if (left[round % 3] == 0 && left[3 + round % 3] == 0) break;
            rounds_ahead = rounds_ahead < MOST_ROUNDS ? rounds_ahead * 2 : MOST_ROUNDS;
        }
    }
    std::vector<uint32_t> result() override { return colours.words(); }
};

int main(int argc, char** argv) {
    Colouring program;
    return serve(program, argc, argv);
}
