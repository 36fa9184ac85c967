#pragma once

constexpr unsigned FULL = 0xffffffff;
constexpr unsigned SLOTS = 1024;
constexpr unsigned STRIDE = 4;

typedef unsigned long long u64;

struct Cell {
    unsigned x, y, side;
};

struct Function {
    float unit, tolerance, sharpness;
};

// All roundings are explicit, so every device computes the same value.
__device__ inline float value(const Function& function, float x, float y) {
    float d = __fsub_rn(__fmaf_rn(x, x, __fmul_rn(y, y)), 0.5f);
    return 1.0f / __fmaf_rn(d, d, function.sharpness);
}

// Samples a cell by a warp. If it need not be split, adds it to a slot; returns whether it must be, in lane 0.
__device__ inline bool sample(const Function& function, const Cell& cell, u64* totals) {
    float side = float(cell.side) * function.unit;
    unsigned lane = threadIdx.x % 32;
    float x = __fmaf_rn(side, (float(lane % 8) + 0.5f) * 0.125f, float(cell.x) * function.unit);
    float y = __fmaf_rn(side, (float(lane / 8) + 0.5f) * 0.25f, float(cell.y) * function.unit);
    float sum = value(function, x, y), least = sum, greatest = sum;
#pragma unroll
    for (unsigned step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(FULL, sum, step);
        least = fminf(least, __shfl_xor_sync(FULL, least, step));
        greatest = fmaxf(greatest, __shfl_xor_sync(FULL, greatest, step));
    }
    if (lane != 0) return false;
    if (cell.side > 1 && (greatest - least) * side > function.tolerance) return true;
    u64* slot = totals + (cell.x * 31 + cell.y) % SLOTS * STRIDE;
    atomicAdd(slot, u64(sum * side * side * 134217728.0f));
    atomicAdd(slot + 1, u64(1));
    return false;
}

// The numbers of an input: cells across the square at first and at most, tolerance and sharpness as bits of floats.
struct Problem {
    Function function{};
    unsigned across = 0, side = 0;
    Array<u64> totals;

    void load(const Input& input) {
        auto as_float = [&](size_t at) {
            uint32_t bits = uint32_t(input.numbers[at]);
            float value;
            memcpy(&value, &bits, 4);
            return value;
        };
        across = input.numbers[0];
        side = input.numbers[1] / across;
        function = Function{1.0f / float(input.numbers[1]), as_float(2), as_float(3)};
        totals.resize(SLOTS * STRIDE);
    }
};
