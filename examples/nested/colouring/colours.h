#pragma once

constexpr unsigned THREADS = 256;
constexpr unsigned MANY = 32;
constexpr unsigned NONE = 0xffffffff;
constexpr unsigned WORDS = 64;

struct Graph {
    const unsigned *offsets, *targets;
    unsigned vertices;
};

struct State {
    unsigned *colours, *waits;
};

__device__ inline unsigned degree(const Graph& graph, unsigned vertex) {
    return graph.offsets[vertex + 1] - graph.offsets[vertex];
}

__device__ inline bool is_before(const Graph& graph, unsigned a, unsigned b) {
    unsigned of_a = degree(graph, a), of_b = degree(graph, b);
    return of_a > of_b || (of_a == of_b && a * 0x9e3779b1 > b * 0x9e3779b1);
}

__device__ inline unsigned count_before(const Graph& graph, unsigned vertex) {
    unsigned count = 0;
    for (unsigned i = graph.offsets[vertex]; i < graph.offsets[vertex + 1]; ++i) {
        if (is_before(graph, graph.targets[i], vertex)) count += 1;
    }
    return count;
}

// Whether `neighbour` waits for nothing but had waited for `vertex`.
__device__ inline bool releases(const Graph& graph, const State& state, unsigned vertex, unsigned neighbour) {
    return is_before(graph, vertex, neighbour) && atomicSub(&state.waits[neighbour], 1) == 1;
}

// Colours written by other blocks of the same grid are read past the L1 cache.
__device__ inline unsigned colour_of(const State& state, unsigned vertex) { return __ldcg(&state.colours[vertex]); }

// The least free colour of a vertex with few neighbours.
__device__ inline unsigned least_small(const Graph& graph, const State& state, unsigned vertex) {
    unsigned used = 0;
    for (unsigned i = graph.offsets[vertex]; i < graph.offsets[vertex + 1]; ++i) {
        unsigned target = graph.targets[i];
        if (is_before(graph, target, vertex)) {
            unsigned colour = colour_of(state, target);
            if (colour < 32) used |= 1u << colour;
        }
    }
    return __ffs(~used) - 1;
}

// The least free colour of a vertex, for a block.
__device__ inline unsigned least_large(const Graph& graph, const State& state, unsigned vertex) {
    __shared__ unsigned used[WORDS];
    __shared__ unsigned least;
    if (threadIdx.x == 0) least = NONE;
    for (unsigned base = 0;; base += 32 * WORDS) {
        if (threadIdx.x < WORDS) used[threadIdx.x] = 0;
        __syncthreads();
        for (unsigned i = graph.offsets[vertex] + threadIdx.x; i < graph.offsets[vertex + 1]; i += THREADS) {
            unsigned target = graph.targets[i];
            if (is_before(graph, target, vertex)) {
                unsigned colour = colour_of(state, target) - base;
                if (colour < 32 * WORDS) atomicOr(&used[colour / 32], 1u << (colour % 32));
            }
        }
        __syncthreads();
        if (threadIdx.x < WORDS) {
            unsigned free = ~used[threadIdx.x];
            if (free != 0) atomicMin(&least, base + threadIdx.x * 32 + __ffs(free) - 1);
        }
        __syncthreads();
        if (least != NONE) return least;
    }
}

// The arrays of an input are offsets and targets.
struct Problem {
    Array<unsigned> offsets, targets, colours, waits;

    void load(const Input& input) {
        offsets.assign(input.arrays[0]);
        targets.assign(input.arrays[1]);
        colours.resize(offsets.count - 1);
        waits.resize(offsets.count - 1);
    }
    void reset() {
        colours.fill_bytes(0xff);
        waits.fill_bytes(0);
    }
    Graph graph() const { return Graph{offsets.data, targets.data, unsigned(colours.count)}; }
    State state() const { return State{colours.data, waits.data}; }
};
