// The program of quadtree.grid in CUDA C++.
#include "../common/serve.h"
#include "tree.h"

struct Works {
    Work* works;
    unsigned* used;
};

__global__ void count_points(Points tree, Works works, Node node, Work* work);
__global__ void split_small(Points tree, Works works, Node node);

static __device__ void launch_node(const Points& tree, const Works& works, const Node& node) {
    unsigned count = node.end - node.begin;
    if (count == 0) return;
    if (count <= TILE || is_leaf(node)) {
        split_small<<<1, THREADS, 0, cudaStreamFireAndForget>>>(tree, works, node);
    } else {
        Work* work = works.works + atomicAdd(works.used, 1);
        *work = Work{};
        count_points<<<(count + TILE - 1) / TILE, THREADS, 0, cudaStreamFireAndForget>>>(tree, works, node, work);
    }
}

__global__ __launch_bounds__(THREADS) void quadtree(Points tree, Works works, Node root) {
    if (threadIdx.x == 0) launch_node(tree, works, root);
}

__global__ __launch_bounds__(THREADS) void move_points(Points tree, Works works, Node node, Work* work) {
    move_tile(tree, node, blockIdx.x, work);
    if (is_last_block(&work->done, gridDim.x) && threadIdx.x < 4) {
        launch_node(tree, works, child(node, threadIdx.x, work->counts));
    }
}

__global__ __launch_bounds__(THREADS) void count_points(Points tree, Works works, Node node, Work* work) {
    count_tile(tree, node, blockIdx.x, work);
    if (is_last_block(&work->counted, gridDim.x) && threadIdx.x == 0) {
        move_points<<<gridDim.x, THREADS, 0, cudaStreamFireAndForget>>>(tree, works, node, work);
    }
}

__global__ __launch_bounds__(THREADS) void split_small(Points tree, Works works, Node node) {
    split_in_block(tree, node, [&](const Node& next) { launch_node(tree, works, next); });
}

struct Quadtree : Program, Problem {
    Array<Work> works;
    Array<unsigned> used;

    void load(const Input& input) override {
        Problem::load(input);
        works.resize(count / 256 + 1024);
        used.resize(1);
    }
    void reset() override {
        Problem::reset();
        used.fill_bytes(0);
    }
    void run() override { quadtree<<<1, THREADS>>>(tree(), Works{works.data, used.data}, root()); }
    std::vector<uint32_t> result() override { return Problem::result(); }
};

int main(int argc, char** argv) {
    Quadtree program;
    return serve(program, argc, argv);
}
