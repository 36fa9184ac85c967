constexpr unsigned MOST = 16;

extern "C" __global__ void queens(
    unsigned n, unsigned side, unsigned placed, const unsigned* __restrict__ starts,
    unsigned* __restrict__ counts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned all = (1u << side) - 1;
    unsigned columns[MOST] = {}, lefts[MOST] = {}, rights[MOST] = {}, free[MOST] = {};
    unsigned row = placed;
    columns[row] = starts[3 * i];
    lefts[row] = starts[3 * i + 1];
    rights[row] = starts[3 * i + 2];
    free[row] = all & ~(columns[row] | lefts[row] | rights[row]);
    unsigned count = 0;
    while (true) {
        unsigned left = free[row];
        if (left == 0) {
            if (row == placed) break;
            row -= 1;
            continue;
        }
        unsigned queen = left & (0 - left);
        free[row] = left ^ queen;
        if (row + 1 == side) {
            count += 1;
            continue;
        }
        unsigned taken = columns[row] | queen;
        unsigned to_left = (lefts[row] | queen) << 1 & all, to_right = (rights[row] | queen) >> 1;
        row += 1;
        columns[row] = taken;
        lefts[row] = to_left;
        rights[row] = to_right;
        free[row] = all & ~(taken | to_left | to_right);
    }
    counts[i] = count;
}
