// The N queens problem: a list of all boards with the first queens, row by row, then a depth-first search in which a thread
// that is done takes the next board of the list.
#include "../common/serve.h"
#include "board.h"

constexpr unsigned THREADS = 128;
constexpr unsigned PLACED = 7;
constexpr unsigned CAPACITY = 1 << 22;

// `counts[r]` boards have `r` queens; the last count is that of boards taken.
__global__ __launch_bounds__(THREADS) void place(
    const Board* from, Board* to, unsigned* counts, unsigned row, unsigned columns, unsigned all) {
    unsigned count = counts[row];
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        Board board = from[i];
        for (unsigned left = free_columns(board, all) & columns; left != 0;) {
            unsigned column = left & (0 - left);
            left ^= column;
            unsigned at = atomicAdd(&counts[row + 1], 1);
            if (at >= CAPACITY) __trap();
            to[at] = with_queen(board, column);
        }
    }
}

__global__ __launch_bounds__(THREADS) void search(
    const Board* boards, const unsigned* count, unsigned* taken, unsigned all, unsigned* totals) {
    unsigned boards_found = *count;
    unsigned solutions = search_all(all, [&](Board& here) {
        unsigned i = atomicAdd(taken, 1);
        if (i < boards_found) here = boards[i];
        return i < boards_found;
    });
    __syncwarp();
    unsigned total = __reduce_add_sync(FULL, solutions);
    unsigned warp = (blockIdx.x * THREADS + threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0 && total > 0) atomicAdd(&totals[warp % SLOTS * STRIDE], total);
}

struct Queens : Program {
    unsigned size = 0, blocks = 0;
    Array<unsigned> totals, counts;
    Array<Board> first, second;

    void load(const Input& input) override {
        size = input.numbers[0];
        totals.resize(SLOTS * STRIDE);
        counts.resize(PLACED + 2);
        first.resize(CAPACITY);
        second.resize(CAPACITY);
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        totals.fill_bytes(0);
        first.fill_bytes(0);
        std::vector<uint32_t> start(PLACED + 2, 0);
        start[0] = 1;
        counts.copy_from(start);
    }
    void run() override {
        unsigned all = (1u << size) - 1, half = (1u << size / 2) - 1;
        Board *from = first.data, *to = second.data;
        for (unsigned row = 0; row < PLACED; ++row) {
            place<<<blocks, THREADS>>>(from, to, counts.data, row, row == 0 ? half : all, all);
            std::swap(from, to);
        }
        search<<<blocks, THREADS>>>(from, counts.data + PLACED, counts.data + PLACED + 1, all, totals.data);
    }
    std::vector<uint32_t> result() override { return totals.words(); }
};

int main(int argc, char** argv) {
    Queens program;
    return serve(program, argc, argv);
}
