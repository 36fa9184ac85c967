#pragma once

constexpr unsigned FULL = 0xffffffff;
constexpr unsigned THREADS = 256;
constexpr unsigned WARPS = THREADS / 32;
constexpr unsigned MANY = 4096;
constexpr unsigned CHUNK = 1024;

struct Graph {
    const unsigned *offsets, *targets, *weights;
};

struct Search {
    unsigned *distances, *rounds, *queues[2], *counts;
};

__device__ inline void append(const Search& search, unsigned next, bool found, unsigned vertex) {
    unsigned lanes = __ballot_sync(FULL, found);
    if (lanes == 0) return;
    unsigned lane = threadIdx.x % 32, leader = __ffs(lanes) - 1, at = 0;
    if (lane == leader) at = atomicAdd(&search.counts[next % 3], __popc(lanes));
    at = __shfl_sync(FULL, at, leader) + __popc(lanes & ((1u << lane) - 1));
    if (found) search.queues[next % 2][at] = vertex;
}

__device__ inline bool relax(const Search& search, unsigned vertex, unsigned distance, unsigned next) {
    return distance < search.distances[vertex] && distance < atomicMin(&search.distances[vertex], distance) &&
           atomicExch(&search.rounds[vertex], next) != next;
}

// Relaxes the edges `first` to `first + degree - 1` of each thread; the block shares them.
__device__ inline void expand_block(
    const Graph& graph, const Search& search, unsigned round, unsigned distance, unsigned first, unsigned degree) {
    __shared__ unsigned firsts[THREADS];
    __shared__ unsigned ends[THREADS];
    __shared__ unsigned distances[THREADS];
    __shared__ unsigned sums[WARPS];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = degree;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        unsigned lower = __shfl_up_sync(FULL, sum, step);
        if (lane >= step) sum += lower;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    for (unsigned w = 0; w < warp; ++w) sum += sums[w];
    distances[threadIdx.x] = distance;
    firsts[threadIdx.x] = first - (sum - degree);
    ends[threadIdx.x] = sum;
    __syncthreads();

    unsigned total = ends[THREADS - 1];
    for (unsigned base = 0; base < total; base += THREADS) {
        unsigned at = base + threadIdx.x, vertex = 0;
        bool found = false;
        if (at < total) {
            unsigned owner = 0;
#pragma unroll
            for (unsigned step = THREADS / 2; step > 0; step /= 2) {
                if (ends[owner + step - 1] <= at) owner += step;
            }
            unsigned edge = firsts[owner] + at;
            vertex = graph.targets[edge];
            found = relax(search, vertex, distances[owner] + graph.weights[edge], round + 1);
        }
        append(search, round + 1, found, vertex);
    }
}

// Relaxes CHUNK edges.
__device__ inline void expand_chunk(
    const Graph& graph, const Search& search, unsigned round, unsigned distance, unsigned base, unsigned end) {
#pragma unroll
    for (unsigned i = 0; i < CHUNK / THREADS; ++i) {
        unsigned at = base + i * THREADS + threadIdx.x, vertex = 0;
        bool found = false;
        if (at < end) {
            vertex = graph.targets[at];
            found = relax(search, vertex, distance + graph.weights[at], round + 1);
        }
        append(search, round + 1, found, vertex);
    }
}

// The arrays of an input are offsets, targets and weights, its number is the first vertex.
struct Problem {
    Array<unsigned> offsets, targets, weights, distances, rounds, first_queue, second_queue, counts;
    unsigned source = 0;
    size_t vertices = 0;

    void load(const Input& input) {
        offsets.assign(input.arrays[0]);
        targets.assign(input.arrays[1]);
        weights.assign(input.arrays[2]);
        source = input.numbers[0];
        vertices = offsets.count - 1;
        distances.resize(vertices);
        rounds.resize(vertices);
        first_queue.resize(vertices);
        second_queue.resize(vertices);
        counts.resize(3);
    }
    void reset() {
        distances.fill_bytes(0xff);
        rounds.fill_bytes(0);
        unsigned zero = 0, start[3] = {1, 0, 0};
        CHECK(cudaMemcpy(distances.data + source, &zero, sizeof zero, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(first_queue.data, &source, sizeof source, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(counts.data, start, sizeof start, cudaMemcpyHostToDevice));
    }
    Graph graph() const { return Graph{offsets.data, targets.data, weights.data}; }
    Search search() const { return Search{distances.data, rounds.data, {first_queue.data, second_queue.data}, counts.data}; }
};
