#pragma once

constexpr unsigned FULL = 0xffffffff;
constexpr unsigned THREADS = 256;
constexpr unsigned WARPS = THREADS / 32;
constexpr unsigned MANY = 64;
constexpr unsigned CHUNK = 32;
constexpr unsigned SHARED = 2048;
constexpr unsigned SLOTS = 1024;
constexpr unsigned STRIDE = 4;

typedef unsigned long long u64;

struct Graph {
    const unsigned *offsets, *targets;
    unsigned vertices;
};

__device__ inline bool contains(const unsigned* list, unsigned length, unsigned value) {
    unsigned low = 0;
    for (unsigned size = length; size > 0;) {
        unsigned half = size / 2;
        if (list[low + half] < value) {
            low += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return low < length && list[low] == value;
}

__device__ inline unsigned common(const Graph& graph, const unsigned* list, unsigned length, unsigned vertex) {
    unsigned count = 0;
    for (unsigned i = graph.offsets[vertex] + threadIdx.x % 32; i < graph.offsets[vertex + 1]; i += 32) {
        if (contains(list, length, graph.targets[i])) count += 1;
    }
    return count;
}

__device__ inline void add(u64* totals, unsigned slot, unsigned count) {
    unsigned of_warp = __reduce_add_sync(FULL, count);
    if (threadIdx.x % 32 == 0 && of_warp > 0) atomicAdd(&totals[slot % SLOTS * STRIDE], u64(of_warp));
}

// The triangles at a vertex with few neighbours, for a warp.
__device__ inline void count_few(const Graph& graph, unsigned vertex, unsigned first, unsigned length, u64* totals) {
    const unsigned* list = graph.targets + first;
    unsigned found = 0;
    for (unsigned i = 0; i < length; ++i) found += common(graph, list, length, list[i]);
    add(totals, vertex, found);
}

// Those at a vertex with many, as far as one block counts them.
__device__ inline void count_chunk(
    const Graph& graph, unsigned first, unsigned length, unsigned chunk, u64* totals) {
    __shared__ unsigned copy[SHARED];
    const unsigned* list = graph.targets + first;
    bool fits = length <= SHARED;
    if (fits) {
        for (unsigned i = threadIdx.x; i < length; i += THREADS) copy[i] = list[i];
    }
    __syncthreads();
    unsigned warp = threadIdx.x / 32, end = min(length, (chunk + 1) * CHUNK), found = 0;
    for (unsigned i = chunk * CHUNK + warp; i < end; i += WARPS) {
        found += fits ? common(graph, copy, length, list[i]) : common(graph, list, length, list[i]);
    }
    add(totals, first + chunk * WARPS + warp, found);
}

// The arrays of an input are offsets and targets.
struct Problem {
    Array<unsigned> offsets, targets;
    Array<u64> totals;

    void load(const Input& input) {
        offsets.assign(input.arrays[0]);
        targets.assign(input.arrays[1]);
        totals.resize(SLOTS * STRIDE);
    }
    Graph graph() const { return Graph{offsets.data, targets.data, unsigned(offsets.count - 1)}; }
};
