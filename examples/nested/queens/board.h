#pragma once

constexpr unsigned FULL = 0xffffffff;
constexpr unsigned STACK = 16;
constexpr unsigned SLOTS = 1024;
constexpr unsigned STRIDE = 8;

struct Board {
    unsigned taken, left, right;
};

__device__ inline unsigned free_columns(const Board& board, unsigned all) {
    return all & ~(board.taken | board.left | board.right);
}

__device__ inline Board with_queen(const Board& board, unsigned column) {
    return Board{board.taken | column, (board.left | column) << 1, (board.right | column) >> 1};
}

// Counts the ways to complete the boards that `take` hands out until it returns false.
template <typename Take>
__device__ unsigned search_all(unsigned all, Take take) {
    uint4 stack[STACK];
    unsigned height = 0, solutions = 0, columns = 0;
    Board here{0, 0, 0};
    while (true) {
        if (columns == 0) {
            if (height > 0) {
                uint4 top = stack[--height];
                here = Board{top.x, top.y, top.z};
                columns = top.w;
            } else {
                if (!take(here)) break;
                columns = free_columns(here, all);
                if (here.taken == all) solutions += 1;
            }
        } else {
            unsigned column = columns & (0 - columns);
            columns ^= column;
            Board next = with_queen(here, column);
            unsigned free = free_columns(next, all);
            if (next.taken == all) {
                solutions += 1;
            } else if (free != 0) {
                if (columns != 0) stack[height++] = make_uint4(here.taken, here.left, here.right, columns);
                here = next;
                columns = free;
            }
        }
    }
    return solutions;
}
