// The program of simple_quicksort.grid in CUDA C++.
#include "../common/serve.h"

constexpr unsigned LEAF = 32;
constexpr unsigned MAX_DEPTH = 20;

static __device__ void swap(unsigned* values, unsigned a, unsigned b) {
    unsigned value = values[a];
    values[a] = values[b];
    values[b] = value;
}

static __device__ void insertion_sort(unsigned* values, unsigned count) {
    for (unsigned i = 1; i < count; ++i) {
        unsigned value = values[i], to = i;
        for (; to > 0 && values[to - 1] > value; --to) values[to] = values[to - 1];
        values[to] = value;
    }
}

static __device__ void sink(unsigned* values, unsigned at, unsigned count) {
    for (;;) {
        unsigned child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && values[child + 1] > values[child]) ++child;
        if (values[at] >= values[child]) return;
        swap(values, at, child);
        at = child;
    }
}

static __device__ void heap_sort(unsigned* values, unsigned count) {
    for (unsigned i = count / 2; i > 0; --i) sink(values, i - 1, count);
    for (unsigned end = count - 1; end > 0; --end) {
        swap(values, 0, end);
        sink(values, 0, end);
    }
}

static __device__ unsigned partition(unsigned* values, unsigned count) {
    unsigned low = 0, high = count - 1;
    unsigned a = min(values[0], values[high]), b = max(values[0], values[high]);
    unsigned pivot = max(a, min(b, values[high / 2]));
    for (;;) {
        while (values[low] < pivot) ++low;
        while (values[high] > pivot) --high;
        if (low >= high) break;
        swap(values, low++, high--);
    }
    return max(low, 1u);
}

__global__ __launch_bounds__(1) void quicksort(unsigned* values, unsigned count, unsigned depth) {
    if (count <= LEAF) {
        insertion_sort(values, count);
    } else if (depth >= MAX_DEPTH) {
        heap_sort(values, count);
    } else {
        unsigned front = partition(values, count);
        quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(values, front, depth + 1);
        quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(values + front, count - front, depth + 1);
    }
}

struct Quicksort : Program {
    std::vector<uint32_t> values;
    Array<unsigned> data;
    unsigned depth = 0;

    void load(const Input& input) override {
        depth = unsigned(input.numbers[1]);
        values = input.arrays[0];
        data.resize(values.size());
    }
    void reset() override { data.copy_from(values); }
    void run() override { quicksort<<<1, 1>>>(data.data, unsigned(values.size()), depth); }
    std::vector<uint32_t> result() override { return data.words(); }
};

int main(int argc, char** argv) {
    Quicksort program;
    return serve(program, argc, argv);
}
