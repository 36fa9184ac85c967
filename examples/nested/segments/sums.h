#pragma once

constexpr unsigned FULL = 0xffffffff;
constexpr unsigned THREADS = 256;
constexpr unsigned WARPS = THREADS / 32;
constexpr unsigned LONG = 2048;
constexpr unsigned CHUNK = 4096;
constexpr unsigned SUMS = 2048;

struct Segments {
    const unsigned *values, *offsets;
    unsigned count;
};

__device__ inline unsigned long long block_sum(unsigned long long sum) {
    __shared__ unsigned long long sums[WARPS];
#pragma unroll
    for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_down_sync(FULL, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    unsigned long long total = 0;
    if (threadIdx.x == 0) {
#pragma unroll
        for (unsigned i = 0; i < WARPS; ++i) total += sums[i];
    }
    return total;
}

// Sums the segments `first` to `end - 1` of each lane by the whole warp.
__device__ inline unsigned sum_short(const Segments& segments, unsigned first, unsigned end) {
    unsigned lane = threadIdx.x % 32, mine = 0;
    for (unsigned i = 0; i < 32; ++i) {
        unsigned begin = __shfl_sync(FULL, first, i), stop = __shfl_sync(FULL, end, i);
        if (begin < stop) {
            unsigned sum = 0;
            for (unsigned at = begin + lane; at < stop; at += 32) sum += segments.values[at];
            sum = __reduce_add_sync(FULL, sum);
            if (lane == i) mine = sum;
        }
    }
    return mine;
}

__device__ inline void sum_chunk(const unsigned* values, unsigned base, unsigned end, unsigned* out) {
    unsigned sum = 0;
#pragma unroll
    for (unsigned i = 0; i < CHUNK / THREADS; ++i) {
        unsigned at = base + threadIdx.x + i * THREADS;
        if (at < end) sum += values[at];
    }
    sum = unsigned(block_sum(sum));
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

__global__ __launch_bounds__(THREADS) void add_up(const unsigned* sums, unsigned count, unsigned long long* total) {
    unsigned long long sum = 0;
#pragma unroll
    for (unsigned i = 0; i < SUMS / THREADS; ++i) {
        unsigned at = blockIdx.x * SUMS + threadIdx.x + i * THREADS;
        if (at < count) sum += sums[at];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(total, sum);
}

// The arrays of an input are offsets and values. The result is the sums of the segments, then the total as two words.
struct Problem {
    Array<unsigned> offsets, values, sums;
    Array<unsigned long long> total;
    unsigned count = 0;

    void load(const Input& input) {
        offsets.assign(input.arrays[0]);
        values.assign(input.arrays[1]);
        count = offsets.count - 1;
        sums.resize(count);
        total.resize(1);
    }
    void reset() {
        sums.fill_bytes(0);
        total.fill_bytes(0);
    }
    Segments segments() const { return Segments{values.data, offsets.data, count}; }
    std::vector<uint32_t> result() const {
        std::vector<uint32_t> words = sums.words();
        for (uint32_t word : total.words()) words.push_back(word);
        return words;
    }
};
