// Triangle counting: vertices with many neighbours go to a list of chunks, which the blocks of a second grid count.
#include "../common/serve.h"
#include "common.h"

struct Chunk {
    unsigned first, length, chunk;
};

__global__ __launch_bounds__(THREADS) void count(Graph graph, Chunk* chunks, unsigned* chunk_count, u64* totals) {
    unsigned vertex = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (vertex >= graph.vertices) return;
    unsigned first = graph.offsets[vertex], length = graph.offsets[vertex + 1] - first;
    if (length < MANY) {
        count_few(graph, vertex, first, length, totals);
        return;
    }
    unsigned n = (length + CHUNK - 1) / CHUNK, at = 0;
    if (lane == 0) at = atomicAdd(chunk_count, n);
    at = __shfl_sync(FULL, at, 0);
    for (unsigned i = lane; i < n; i += 32) chunks[at + i] = Chunk{first, length, i};
}

__global__ __launch_bounds__(THREADS) void count_chunks(
    Graph graph, const Chunk* chunks, const unsigned* chunk_count, unsigned* taken, u64* totals) {
    __shared__ unsigned next;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) next = atomicAdd(taken, 1);
        __syncthreads();
        unsigned i = next;
        if (i >= *chunk_count) return;
        count_chunk(graph, chunks[i].first, chunks[i].length, chunks[i].chunk, totals);
    }
}

struct Triangles : Program, Problem {
    Array<Chunk> chunks;
    Array<unsigned> counts;
    unsigned blocks = 0;

    void load(const Input& input) override {
        Problem::load(input);
        chunks.resize(targets.count / CHUNK + offsets.count);
        counts.resize(2);
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, count_chunks, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        totals.fill_bytes(0);
        counts.fill_bytes(0);
    }
    void run() override {
        count<<<(graph().vertices + WARPS - 1) / WARPS, THREADS>>>(graph(), chunks.data, counts.data, totals.data);
        count_chunks<<<blocks, THREADS>>>(graph(), chunks.data, counts.data, counts.data + 1, totals.data);
    }
    std::vector<uint32_t> result() override { return totals.words(); }
};

int main(int argc, char** argv) {
    Triangles program;
    return serve(program, argc, argv);
}
