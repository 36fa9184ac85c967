// A quadtree level by level: the tiles of large nodes are a list, small nodes another; each level has a grid that counts the
// points of tiles, one that moves them, and one that splits small nodes.
#include "../common/serve.h"
#include "tree.h"

struct Large {
    Node node;
    unsigned tiles;
    Work work;
};

struct Tile {
    unsigned node, tile;
};

// Tiles and small nodes of this level and of the next; for each level the number of both. `used` counts large nodes.
struct Lists {
    Large* large;
    Tile* tiles[2];
    Node* small[2];
    unsigned *tile_counts, *small_counts, *used;
};

static __device__ void append(const Lists& lists, const Node& node) {
    unsigned count = node.end - node.begin;
    if (count == 0) return;
    if (count <= TILE || is_leaf(node)) {
        lists.small[node.depth % 2][atomicAdd(&lists.small_counts[node.depth], 1)] = node;
        return;
    }
    unsigned tiles = (count + TILE - 1) / TILE, at = atomicAdd(lists.used, 1);
    lists.large[at] = Large{node, tiles, Work{}};
    unsigned first = atomicAdd(&lists.tile_counts[node.depth], tiles);
    for (unsigned i = 0; i < tiles; ++i) lists.tiles[node.depth % 2][first + i] = Tile{at, i};
}

__global__ __launch_bounds__(THREADS) void start(Lists lists, Node root) {
    if (threadIdx.x == 0) append(lists, root);
}

__global__ __launch_bounds__(THREADS) void count_points(Points tree, Lists lists, unsigned level) {
    for (unsigned i = blockIdx.x; i < lists.tile_counts[level]; i += gridDim.x) {
        Tile tile = lists.tiles[level % 2][i];
        Large* large = &lists.large[tile.node];
        count_tile(tree, large->node, tile.tile, &large->work);
        __syncthreads();
    }
}

__global__ __launch_bounds__(THREADS) void move_points(Points tree, Lists lists, unsigned level) {
    for (unsigned i = blockIdx.x; i < lists.tile_counts[level]; i += gridDim.x) {
        Tile tile = lists.tiles[level % 2][i];
        Large* large = &lists.large[tile.node];
        move_tile(tree, large->node, tile.tile, &large->work);
        if (is_last_block(&large->work.done, large->tiles) && threadIdx.x < 4) {
            append(lists, child(large->node, threadIdx.x, large->work.counts));
        }
        __syncthreads();
    }
}

__global__ __launch_bounds__(THREADS) void split_small(Points tree, Lists lists, unsigned level) {
    for (unsigned i = blockIdx.x; i < lists.small_counts[level]; i += gridDim.x) {
        split_in_block(tree, lists.small[level % 2][i], [&](const Node& next) { append(lists, next); });
        __syncthreads();
    }
}

struct Quadtree : Program, Problem {
    Array<Large> large;
    Array<Tile> tiles[2];
    Array<Node> small[2];
    Array<unsigned> counts;
    unsigned blocks = 0;

    void load(const Input& input) override {
        Problem::load(input);
        large.resize(count / 256 + 1024);
        for (auto& list : tiles) list.resize(2 * count / TILE + 1024);
        for (auto& list : small) list.resize(count / 4 + 1024);
        counts.resize(2 * (MAX_DEPTH + 2) + 1);
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, split_small, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        Problem::reset();
        counts.fill_bytes(0);
    }
    void run() override {
        unsigned *tile_counts = counts.data, *small_counts = tile_counts + MAX_DEPTH + 2;
        Lists lists{large.data, {tiles[0].data, tiles[1].data}, {small[0].data, small[1].data}, tile_counts,
                    small_counts, small_counts + MAX_DEPTH + 2};
        start<<<1, THREADS>>>(lists, root());
        for (unsigned level = 0; level <= MAX_DEPTH; ++level) {
            count_points<<<blocks, THREADS>>>(tree(), lists, level);
            move_points<<<blocks, THREADS>>>(tree(), lists, level);
            split_small<<<blocks, THREADS>>>(tree(), lists, level);
        }
    }
    std::vector<uint32_t> result() override { return Problem::result(); }
};

int main(int argc, char** argv) {
    Quadtree program;
    return serve(program, argc, argv);
}
