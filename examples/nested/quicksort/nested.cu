// The program of quicksort.grid in CUDA C++.
#include "../common/serve.h"
#include "sort.h"

struct Sort {
    unsigned *data, *scratch;
    Work* works;
    unsigned* used;
};

__global__ void sort_leaf(Sort sort, Part part);
__global__ void partition(Sort sort, Part part, unsigned pivot, Work* work);

static __device__ unsigned* values_of(const Sort& sort, const Part& part) {
    return part.in_scratch ? sort.scratch : sort.data;
}

static __device__ void launch_part(const Sort& sort, const Part& part) {
    unsigned count = part.end - part.begin, lane = threadIdx.x % 32;
    if (count == 0) return;
    if (count <= LEAF) {
        if (lane == 0) sort_leaf<<<1, THREADS, 0, cudaStreamFireAndForget>>>(sort, part);
        return;
    }
    unsigned pivot = pick_pivot(values_of(sort, part), part);
    if (lane == 0) {
        Work* work = sort.works + atomicAdd(sort.used, 1);
        *work = Work{};
        partition<<<(count + TILE - 1) / TILE, THREADS, 0, cudaStreamFireAndForget>>>(sort, part, pivot, work);
    }
}

__global__ __launch_bounds__(THREADS) void quicksort(Sort sort, unsigned count) {
    if (threadIdx.x < 32) launch_part(sort, Part{0, count, false});
}

__global__ __launch_bounds__(THREADS) void partition(Sort sort, Part part, unsigned pivot, Work* work) {
    Part moved{part.begin, part.end, !part.in_scratch};
    move_tile(values_of(sort, part), values_of(sort, moved), part, blockIdx.x, pivot, work);
    if (!is_last_tile(work, gridDim.x)) return;
    unsigned middle = part.begin + work->below, end = part.end - work->above;
    for (unsigned i = middle + threadIdx.x; i < end; i += THREADS) sort.data[i] = pivot;
    if (threadIdx.x / 32 == 0) launch_part(sort, Part{part.begin, middle, moved.in_scratch});
    if (threadIdx.x / 32 == 1) launch_part(sort, Part{end, part.end, moved.in_scratch});
}

__global__ __launch_bounds__(THREADS) void sort_leaf(Sort sort, Part part) {
    sort_in_block(values_of(sort, part) + part.begin, sort.data + part.begin, part.end - part.begin);
}

struct Quicksort : Program {
    std::vector<uint32_t> values;
    Array<unsigned> data, scratch, used;
    Array<Work> works;

    void load(const Input& input) override {
        values = input.arrays[0];
        data.assign(values);
        scratch.resize(values.size());
        works.resize(values.size() / 256 + 1024);
        used.resize(1);
    }
    void reset() override {
        data.copy_from(values);
        scratch.fill_bytes(0xff);
        used.fill_bytes(0);
    }
    void run() override {
        quicksort<<<1, THREADS>>>(Sort{data.data, scratch.data, works.data, used.data}, unsigned(values.size()));
    }
    std::vector<uint32_t> result() override { return data.words(); }
};

int main(int argc, char** argv) {
    Quicksort program;
    return serve(program, argc, argv);
}
