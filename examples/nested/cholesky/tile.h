#pragma once

constexpr unsigned THREADS = 256;
constexpr unsigned SIDE = 64;
constexpr unsigned TILE = SIDE * SIDE;

__device__ inline float* tile(float* matrix, unsigned row, unsigned column) {
    return matrix + (row * (row + 1) / 2 + column) * TILE;
}

__global__ __launch_bounds__(THREADS) void factorise_tile(float* matrix, unsigned step) {
    __shared__ float a[TILE];
    float* own = tile(matrix, step, step);
    for (unsigned i = threadIdx.x; i < TILE; i += THREADS) a[i] = own[i];
    __syncthreads();
    unsigned row = threadIdx.x % SIDE, part = threadIdx.x / SIDE;
    for (unsigned k = 0; k < SIDE; ++k) {
        float root = sqrtf(a[k * SIDE + k]);
        __syncthreads();
        if (part == 0 && row >= k) a[row * SIDE + k] = row == k ? root : a[row * SIDE + k] / root;
        __syncthreads();
        for (unsigned column = k + 1 + part; column <= row; column += THREADS / SIDE) {
            a[row * SIDE + column] -= a[row * SIDE + k] * a[column * SIDE + k];
        }
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < TILE; i += THREADS) own[i] = i % SIDE <= i / SIDE ? a[i] : 0.0f;
}

__global__ __launch_bounds__(THREADS) void solve(float* matrix, unsigned step) {
    __shared__ float a[TILE];
    __shared__ float l[TILE];
    float* own = tile(matrix, step + 1 + blockIdx.x, step);
    const float* diagonal = tile(matrix, step, step);
    for (unsigned i = threadIdx.x; i < TILE; i += THREADS) {
        a[i % SIDE * SIDE + i / SIDE] = own[i];
        l[i] = diagonal[i];
    }
    __syncthreads();
    unsigned row = threadIdx.x % SIDE, part = threadIdx.x / SIDE;
    for (unsigned k = 0; k < SIDE; ++k) {
        if (part == 0) a[k * SIDE + row] /= l[k * SIDE + k];
        __syncthreads();
        float x = a[k * SIDE + row];
        for (unsigned column = k + 1 + part; column < SIDE; column += THREADS / SIDE) {
            a[column * SIDE + row] -= x * l[column * SIDE + k];
        }
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < TILE; i += THREADS) own[i] = a[i % SIDE * SIDE + i / SIDE];
}

__global__ __launch_bounds__(THREADS) void update(float* matrix, unsigned step) {
    __shared__ float a[TILE];
    __shared__ float b[TILE];
    if (blockIdx.x > blockIdx.y) return;
    unsigned row = step + 1 + blockIdx.y, column = step + 1 + blockIdx.x;
    const float *left = tile(matrix, row, step), *right = tile(matrix, column, step);
    for (unsigned i = threadIdx.x; i < TILE; i += THREADS) {
        a[i % SIDE * SIDE + i / SIDE] = left[i];
        b[i % SIDE * SIDE + i / SIDE] = right[i];
    }
    __syncthreads();
    unsigned y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
    float sums[16] = {};
    for (unsigned k = 0; k < SIDE; ++k) {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) sums[4 * i + j] += a[k * SIDE + y + i] * b[k * SIDE + x + j];
        }
    }
    float* own = tile(matrix, row, column);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) own[(y + i) * SIDE + x + j] -= sums[4 * i + j];
    }
}

// The number of an input is that of tiles in a row, its array the tiles of the lower half.
struct Problem {
    std::vector<uint32_t> values;
    Array<float> matrix;
    unsigned tiles = 0;

    void load(const Input& input) {
        tiles = input.numbers[0];
        values = input.arrays[0];
        matrix.assign(values);
    }
    void reset() { matrix.copy_from(values); }
};
