// Quicksort level by level: the tiles of all parts of a level are a list, which the blocks of one grid share. If the number
// of an input is 1, CUB's radix sort sorts instead.
#if __has_include(<cub/device/device_radix_sort.cuh>)
#include <cub/device/device_radix_sort.cuh>
#define HAS_CUB
#endif

#include "../common/serve.h"
#include "sort.h"

// Levels that the host launches before it looks whether any part is left.
constexpr unsigned LEVELS = 16;

struct Segment {
    Part part;
    unsigned pivot, tiles;
    Work work;
};

struct Tile {
    unsigned segment, tile;
};

struct Lists {
    unsigned *data, *scratch;
    Segment* segments;
    Tile* tiles[2];
    Part* leaves;
    // Counts of the tiles of three levels (this one, the next, one that is cleared), of segments, and of leaves.
    unsigned* counts;
};

static __device__ unsigned* values_of(const Lists& lists, const Part& part) {
    return part.in_scratch ? lists.scratch : lists.data;
}

// Appends a part to the lists. For a whole warp.
static __device__ void append(const Lists& lists, const Part& part, unsigned level) {
    unsigned count = part.end - part.begin, lane = threadIdx.x % 32;
    if (count == 0) return;
    if (count <= LEAF) {
        if (lane == 0) lists.leaves[atomicAdd(&lists.counts[4], 1)] = part;
        return;
    }
    unsigned pivot = pick_pivot(values_of(lists, part), part);
    unsigned tiles = (count + TILE - 1) / TILE, segment = 0, first = 0;
    if (lane == 0) {
        segment = atomicAdd(&lists.counts[3], 1);
        lists.segments[segment] = Segment{part, pivot, tiles, Work{}};
        first = atomicAdd(&lists.counts[level % 3], tiles);
    }
    segment = __shfl_sync(FULL, segment, 0);
    first = __shfl_sync(FULL, first, 0);
    for (unsigned i = lane; i < tiles; i += 32) lists.tiles[level % 2][first + i] = Tile{segment, i};
}

__global__ __launch_bounds__(THREADS) void start(Lists lists, unsigned count) {
    if (threadIdx.x < 5) lists.counts[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) append(lists, Part{0, count, false}, 0);
}

__global__ __launch_bounds__(THREADS) void partition(Lists lists, unsigned level) {
    unsigned count = lists.counts[level % 3];
    if (blockIdx.x == 0 && threadIdx.x == 0) lists.counts[(level + 2) % 3] = 0;
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        Tile tile = lists.tiles[level % 2][i];
        Segment* segment = &lists.segments[tile.segment];
        Part part = segment->part;
        Part moved{part.begin, part.end, !part.in_scratch};
        Work* work = &segment->work;
        move_tile(values_of(lists, part), values_of(lists, moved), part, tile.tile, segment->pivot, work);
        if (is_last_tile(work, segment->tiles)) {
            unsigned middle = part.begin + work->below, end = part.end - work->above;
            for (unsigned at = middle + threadIdx.x; at < end; at += THREADS) lists.data[at] = segment->pivot;
            if (threadIdx.x / 32 == 0) append(lists, Part{part.begin, middle, moved.in_scratch}, level + 1);
            if (threadIdx.x / 32 == 1) append(lists, Part{end, part.end, moved.in_scratch}, level + 1);
        }
        __syncthreads();
    }
}

__global__ __launch_bounds__(THREADS) void sort_leaves(Lists lists) {
    unsigned count = lists.counts[4];
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        Part part = lists.leaves[i];
        sort_in_block(values_of(lists, part) + part.begin, lists.data + part.begin, part.end - part.begin);
        __syncthreads();
    }
}

struct Quicksort : Program {
    std::vector<uint32_t> values;
    Array<unsigned> data, scratch, counts;
    Array<Segment> segments;
    Array<Tile> tiles, next_tiles;
    Array<Part> leaves;
    Array<char> temporary;
    unsigned *read_back = nullptr, blocks = 0, leaf_blocks = 0;
    size_t temporary_bytes = 0;
    bool uses_cub = false;

    void sort_by_cub(void* memory) {
#ifdef HAS_CUB
        CHECK(cub::DeviceRadixSort::SortKeys(memory, temporary_bytes, data.data, scratch.data, values.size()));
#else
        fail("load", "nvcc found no CUB");
#endif
    }

    void load(const Input& input) override {
        values = input.arrays[0];
        uses_cub = input.numbers[0] == 1;
        data.assign(values);
        scratch.resize(values.size());
        counts.resize(5);
        segments.resize(values.size() / 256 + 1024);
        tiles.resize(2 * values.size() / TILE + 1024);
        next_tiles.resize(tiles.count);
        leaves.resize(values.size() / 256 + 1024);
        if (uses_cub) {
            temporary_bytes = 0;
            sort_by_cub(nullptr);
            temporary.resize(temporary_bytes);
        }
        if (!read_back) CHECK(cudaMallocHost(&read_back, 5 * sizeof(unsigned)));
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, partition, THREADS, 0));
        blocks = each * device.multiProcessorCount;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, sort_leaves, THREADS, 0));
        leaf_blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        data.copy_from(values);
        scratch.fill_bytes(0xff);
    }
    void run() override {
        if (uses_cub) {
            sort_by_cub(temporary.data);
            return;
        }
        Lists lists{data.data, scratch.data, segments.data, {tiles.data, next_tiles.data}, leaves.data, counts.data};
        start<<<1, THREADS>>>(lists, unsigned(values.size()));
        for (unsigned level = 0;;) {
            for (unsigned end = level + LEVELS; level < end; ++level) partition<<<blocks, THREADS>>>(lists, level);
            CHECK(cudaMemcpyAsync(read_back, counts.data, 5 * sizeof(unsigned), cudaMemcpyDeviceToHost, 0));
            CHECK(cudaStreamSynchronize(0));
            if (read_back[level % 3] == 0) break;
        }
        sort_leaves<<<leaf_blocks, THREADS>>>(lists);
    }
    std::vector<uint32_t> result() override { return uses_cub ? scratch.words() : data.words(); }
};

int main(int argc, char** argv) {
    Quicksort program;
    return serve(program, argc, argv);
}
