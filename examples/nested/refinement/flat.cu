// Adaptive refinement level by level: a warp takes a cell of a queue and appends the quarters to that of the next level.
#include "../common/serve.h"
#include "cell.h"

constexpr unsigned THREADS = 128;
constexpr unsigned CAPACITY = 1 << 24;

struct Queues {
    Cell* cells[2];
    // For each level the cells to split further.
    unsigned* counts;
};

// The first level has a block of cells, later ones the quarters of those of the queue.
__global__ __launch_bounds__(THREADS) void refine(
    Function function, Queues queues, unsigned level, unsigned across, unsigned side, u64* totals) {
    unsigned count = level == 0 ? across * across : 4 * queues.counts[level - 1];
    const Cell* from = queues.cells[(level + 1) % 2];
    unsigned warps = gridDim.x * (THREADS / 32), lane = threadIdx.x % 32;
    for (unsigned i = (blockIdx.x * THREADS + threadIdx.x) / 32; i < count; i += warps) {
        Cell cell{i % across * side, i / across * side, side};
        if (level > 0) {
            cell = from[i / 4];
            cell.side /= 2;
            cell.x += i % 2 * cell.side;
            cell.y += i % 4 / 2 * cell.side;
        }
        bool splits = sample(function, cell, totals);
        if (lane == 0 && splits) {
            unsigned at = atomicAdd(&queues.counts[level], 1);
            if (at >= CAPACITY) __trap();
            queues.cells[level % 2][at] = cell;
        }
    }
}

struct Refinement : Program, Problem {
    Array<Cell> first, second;
    Array<unsigned> counts;
    unsigned blocks = 0, levels = 0;

    void load(const Input& input) override {
        Problem::load(input);
        levels = 1;
        for (unsigned left = side; left > 1; left /= 2) levels += 1;
        first.resize(CAPACITY);
        second.resize(CAPACITY);
        counts.resize(levels);
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, refine, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        totals.fill_bytes(0);
        counts.fill_bytes(0);
    }
    void run() override {
        Queues queues{{first.data, second.data}, counts.data};
        for (unsigned level = 0; level < levels; ++level) {
            refine<<<blocks, THREADS>>>(function, queues, level, across, side, totals.data);
        }
    }
    std::vector<uint32_t> result() override { return totals.words(); }
};

int main(int argc, char** argv) {
    Refinement program;
    return serve(program, argc, argv);
}
