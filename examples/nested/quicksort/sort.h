#pragma once

constexpr unsigned FULL = 0xffffffff;
constexpr unsigned THREADS = 256;
constexpr unsigned WARPS = THREADS / 32;
constexpr unsigned ITEMS = 8;
constexpr unsigned TILE = THREADS * ITEMS;
constexpr unsigned RUNS = ITEMS * WARPS;
constexpr unsigned LEAF = 2048;

struct Work {
    unsigned below, above, done;
};

struct Part {
    unsigned begin, end;
    bool in_scratch;
};

__device__ inline void reserve(unsigned* runs, unsigned* counter) {
    unsigned lane = threadIdx.x % 32;
    unsigned first = runs[2 * lane], both = first + runs[2 * lane + 1], sum = both;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        unsigned lower = __shfl_up_sync(FULL, sum, step);
        if (lane >= step) sum += lower;
    }
    unsigned base = 0;
    if (lane == 31) base = atomicAdd(counter, sum);
    base = __shfl_sync(FULL, base, 31) + sum - both;
    runs[2 * lane] = base;
    runs[2 * lane + 1] = base + first;
}

// The median of 32 values of a part.
__device__ inline unsigned pick_pivot(const unsigned* values, const Part& part) {
    unsigned lane = threadIdx.x % 32, rank = 0;
    unsigned sample = values[part.begin + (part.end - part.begin) / 32 * lane];
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
        unsigned other = __shfl_sync(FULL, sample, i);
        if (other < sample || (other == sample && i < lane)) rank += 1;
    }
    return __shfl_sync(FULL, sample, __ffs(__ballot_sync(FULL, rank == 16)) - 1);
}

// Moves the values of a tile to both ends of `to`.
__device__ inline void move_tile(
    const unsigned* from, unsigned* to, const Part& part, unsigned tile, unsigned pivot, Work* work) {
    __shared__ unsigned below[RUNS];
    __shared__ unsigned above[RUNS];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, before = (1u << lane) - 1;
    unsigned first = part.begin + tile * TILE + threadIdx.x;
    unsigned values[ITEMS];
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        unsigned at = first + i * THREADS;
        values[i] = at < part.end ? from[at] : pivot;
        unsigned lower = __ballot_sync(FULL, values[i] < pivot);
        unsigned higher = __ballot_sync(FULL, values[i] > pivot);
        if (lane == 0) {
            below[i * WARPS + warp] = __popc(lower);
            above[i * WARPS + warp] = __popc(higher);
        }
    }
    __syncthreads();
    if (warp == 0) reserve(below, &work->below);
    if (warp == 1) reserve(above, &work->above);
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        unsigned value = values[i], run = i * WARPS + warp;
        unsigned lower = __ballot_sync(FULL, value < pivot);
        unsigned higher = __ballot_sync(FULL, value > pivot);
        if (value < pivot) to[part.begin + below[run] + __popc(lower & before)] = value;
        if (value > pivot) to[part.end - 1 - above[run] - __popc(higher & before)] = value;
    }
}

// Whether this block is the last of `tiles` that partition a part; it then sees the values that the others moved.
__device__ inline bool is_last_tile(Work* work, unsigned tiles) {
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&work->done, 1) + 1 == tiles;
    __syncthreads();
    if (is_last) __threadfence();
    return is_last;
}

// A bitonic network in shared memory.
__device__ inline void sort_in_block(const unsigned* from, unsigned* to, unsigned count) {
    __shared__ unsigned tile[LEAF];
    unsigned size = count <= 2 ? 2 : 1u << (32 - __clz(count - 1));
    for (unsigned i = threadIdx.x; i < size; i += THREADS) tile[i] = i < count ? from[i] : FULL;
    for (unsigned length = 2; length <= size; length *= 2) {
        for (unsigned distance = length / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < size / 2; i += THREADS) {
                unsigned a = 2 * i - (i & (distance - 1)), b = a + distance;
                unsigned x = tile[a], y = tile[b];
                if ((x > y) == ((a & length) == 0)) {
                    tile[a] = y;
                    tile[b] = x;
                }
            }
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += THREADS) to[i] = tile[i];
}
