#pragma once

constexpr unsigned FULL = 0xffffffff;
constexpr unsigned THREADS = 256;
constexpr unsigned WARPS = THREADS / 32;
constexpr unsigned ITEMS = 8;
constexpr unsigned TILE = THREADS * ITEMS;
constexpr unsigned RUNS = ITEMS * WARPS;
constexpr unsigned LEAF = 64;
constexpr unsigned MAX_DEPTH = 16;

struct Work {
    unsigned counts[4], moved[4], counted, done;
};

struct Node {
    unsigned begin, end, x, y, depth;
    bool in_scratch;
};

struct Points {
    float2 *points, *scratch;
    unsigned* leaves;
};

__device__ inline bool is_leaf(const Node& node) { return node.end - node.begin <= LEAF || node.depth >= MAX_DEPTH; }

__device__ inline float2* points_of(const Points& tree, bool in_scratch) {
    return in_scratch ? tree.scratch : tree.points;
}

__device__ inline unsigned quarter(const Node& node, float2 point) {
    float side = 1.0f / float(1u << node.depth);
    unsigned right = point.x < (float(node.x) + 0.5f) * side ? 0 : 1;
    unsigned up = point.y < (float(node.y) + 0.5f) * side ? 0 : 2;
    return right + up;
}

__device__ inline Node child(const Node& node, unsigned q, const unsigned* counts) {
    unsigned begin = node.begin;
    for (unsigned i = 0; i < q; ++i) begin += counts[i];
    return Node{begin, begin + counts[q], 2 * node.x + q % 2, 2 * node.y + q / 2, node.depth + 1, !node.in_scratch};
}

__device__ inline void reserve(unsigned* runs, unsigned* counter) {
    unsigned lane = threadIdx.x % 32;
    unsigned first = runs[2 * lane], both = first + runs[2 * lane + 1], sum = both;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        unsigned lower = __shfl_up_sync(FULL, sum, step);
        if (lane >= step) sum += lower;
    }
    unsigned base = 0;
    if (lane == 31) base = atomicAdd(counter, sum);
    base = __shfl_sync(FULL, base, 31) + sum - both;
    runs[2 * lane] = base;
    runs[2 * lane + 1] = base + first;
}

// Whether this block is the last of `blocks`; it then sees what the others wrote.
__device__ inline bool is_last_block(unsigned* done, unsigned blocks) {
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(done, 1) + 1 == blocks;
    __syncthreads();
    if (is_last) __threadfence();
    return is_last;
}

// Counts the points of a tile in each quarter.
__device__ inline void count_tile(const Points& tree, const Node& node, unsigned tile, Work* work) {
    __shared__ unsigned counts[4];
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    __syncthreads();
    const float2* from = points_of(tree, node.in_scratch);
    unsigned own[4] = {};
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        unsigned at = node.begin + tile * TILE + i * THREADS + threadIdx.x;
        unsigned q = at < node.end ? quarter(node, from[at]) : 4;
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) own[k] += __popc(__ballot_sync(FULL, q == k));
    }
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) atomicAdd(&counts[k], own[k]);
    }
    __syncthreads();
    if (threadIdx.x < 4) atomicAdd(&work->counts[threadIdx.x], counts[threadIdx.x]);
}

// Points of a thread, their quarters, and how many lanes before this one have points of the same quarter.
struct Own {
    float2 points[ITEMS];
    unsigned quarters[ITEMS], ranks[ITEMS];
};

__device__ inline void classify(const Points& tree, const Node& node, unsigned first, unsigned* runs, Own& own) {
    const float2* from = points_of(tree, node.in_scratch);
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        unsigned at = first + i * THREADS + threadIdx.x;
        own.quarters[i] = 4;
        own.ranks[i] = 0;
        if (at < node.end) {
            own.points[i] = from[at];
            own.quarters[i] = quarter(node, own.points[i]);
        }
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
            unsigned lanes = __ballot_sync(FULL, own.quarters[i] == k);
            if (lane == 0) runs[k * RUNS + i * WARPS + warp] = __popc(lanes);
            if (own.quarters[i] == k) own.ranks[i] = __popc(lanes & ((1u << lane) - 1));
        }
    }
    __syncthreads();
}

// Moves the points of a tile of a large node.
__device__ inline void move_tile(const Points& tree, const Node& node, unsigned tile, Work* work) {
    __shared__ unsigned runs[4 * RUNS];
    __shared__ unsigned begins[4];
    float2* to = points_of(tree, !node.in_scratch);
    unsigned warp = threadIdx.x / 32;
    Own own;
    classify(tree, node, node.begin + tile * TILE, runs, own);
    if (warp < 4) reserve(&runs[warp * RUNS], &work->moved[warp]);
    if (threadIdx.x < 4) begins[threadIdx.x] = child(node, threadIdx.x, work->counts).begin;
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        unsigned q = own.quarters[i];
        if (q < 4) to[begins[q] + runs[q * RUNS + i * WARPS + warp] + own.ranks[i]] = own.points[i];
    }
}

// Splits a node whose points a block can hold, or makes it a leaf; `next` gets the quarters that are no leaves.
template <typename Next>
__device__ void split_in_block(const Points& tree, const Node& node, Next next) {
    __shared__ unsigned runs[4 * RUNS];
    __shared__ unsigned counts[4];
    __shared__ unsigned begins[4];
    __shared__ bool leaves[4];
    if (is_leaf(node)) {
        if (node.in_scratch) {
            for (unsigned i = node.begin + threadIdx.x; i < node.end; i += THREADS) tree.points[i] = tree.scratch[i];
        }
        if (threadIdx.x == 0) atomicAdd(tree.leaves, 1);
        return;
    }
    float2* to = points_of(tree, !node.in_scratch);
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    Own own;
    classify(tree, node, node.begin, runs, own);
    if (warp < 4) reserve(&runs[warp * RUNS], &counts[warp]);
    __syncthreads();
    if (threadIdx.x < 4) {
        Node quarter = child(node, threadIdx.x, counts);
        begins[threadIdx.x] = quarter.begin;
        leaves[threadIdx.x] = is_leaf(quarter);
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        unsigned q = own.quarters[i];
        if (q < 4) {
            float2* place = leaves[q] ? tree.points : to;
            place[begins[q] + runs[q * RUNS + i * WARPS + warp] + own.ranks[i]] = own.points[i];
        }
    }
    __syncthreads();
    if (threadIdx.x < 4 && counts[threadIdx.x] > 0) {
        if (leaves[threadIdx.x]) atomicAdd(tree.leaves, 1);
        else next(child(node, threadIdx.x, counts));
    }
}

// The array of an input has the coordinates of the points. The result is those of the points, then the number of leaves.
struct Problem {
    std::vector<uint32_t> values;
    Array<float2> points, scratch;
    Array<unsigned> leaves;
    unsigned count = 0;

    void load(const Input& input) {
        values = input.arrays[0];
        count = values.size() / 2;
        points.resize(count);
        scratch.resize(count);
        leaves.resize(1);
    }
    void reset() {
        CHECK(cudaMemcpy(points.data, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
        scratch.fill_bytes(0xff);
        leaves.fill_bytes(0);
    }
    Points tree() const { return Points{points.data, scratch.data, leaves.data}; }
    Node root() const { return Node{0, count, 0, 0, 0, false}; }
    std::vector<uint32_t> result() const {
        std::vector<uint32_t> words = points.words();
        words.push_back(leaves.words()[0]);
        return words;
    }
};
