// The program of queens.grid in CUDA C++.
#include "../common/serve.h"
#include "board.h"

constexpr unsigned PLACED = 5;
constexpr unsigned BOARDS = 256;

__global__ __launch_bounds__(32) void search(Board board, unsigned all, unsigned* counts) {
    __shared__ Board boards[BOARDS];
    __shared__ unsigned found, taken;
    if (threadIdx.x == 0) found = taken = 0;
    __syncthreads();
    unsigned free = free_columns(board, all);
    for (unsigned i = threadIdx.x; i < 256; i += 32) {
        unsigned column = 1u << (i / 16), second = 1u << (i % 16);
        if (free & column) {
            Board next = with_queen(board, column);
            if (free_columns(next, all) & second) boards[atomicAdd(&found, 1)] = with_queen(next, second);
        }
    }
    __syncthreads();
    unsigned solutions = search_all(all, [&](Board& here) {
        unsigned i = atomicAdd(&taken, 1);
        if (i < found) here = boards[i];
        return i < found;
    });
    __syncwarp();
    unsigned total = __reduce_add_sync(FULL, solutions);
    if (threadIdx.x == 0 && total > 0) {
        atomicAdd(&counts[(board.left ^ board.right ^ board.taken) * 40503 / 64 % SLOTS * STRIDE], total);
    }
}

__global__ __launch_bounds__(32) void place(Board board, unsigned columns, unsigned all, unsigned* counts) {
    for (unsigned left = columns; left != 0;) {
        unsigned column = left & (0 - left);
        left ^= column;
        Board next = with_queen(board, column);
        unsigned free = free_columns(next, all);
        if (free != 0) {
            if (__popc(next.taken) < PLACED) {
                place<<<1, 1, 0, cudaStreamFireAndForget>>>(next, free, all, counts);
            } else {
                search<<<1, 32, 0, cudaStreamFireAndForget>>>(next, all, counts);
            }
        }
    }
}

struct Queens : Program {
    unsigned size = 0;
    Array<unsigned> counts;

    void load(const Input& input) override {
        size = input.numbers[0];
        counts.resize(SLOTS * STRIDE);
    }
    void reset() override { counts.fill_bytes(0); }
    void run() override {
        place<<<1, 1>>>(Board{0, 0, 0}, (1u << size / 2) - 1, (1u << size) - 1, counts.data);
    }
    std::vector<uint32_t> result() override { return counts.words(); }
};

int main(int argc, char** argv) {
    Queens program;
    return serve(program, argc, argv);
}
