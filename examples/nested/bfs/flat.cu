// Breadth-first search level by level. Vertices with many neighbours go to a list of chunks, which a second grid visits. The
// host launches many levels before it looks whether any vertex is left.
#include "../common/serve.h"
#include "search.h"

constexpr unsigned FIRST_LEVELS = 8;
constexpr unsigned MOST_LEVELS = 64;

struct Chunks {
    uint2* chunks;
    unsigned* count;
};

__global__ __launch_bounds__(THREADS) void expand(Graph graph, Search search, Chunks chunks, unsigned level) {
    unsigned count = search.counts[level % 3];
    if (blockIdx.x == 0 && threadIdx.x == 0) search.counts[(level + 2) % 3] = 0;
    for (unsigned base = blockIdx.x * THREADS; base < count; base += gridDim.x * THREADS) {
        unsigned i = base + threadIdx.x, first = 0, degree = 0;
        if (i < count) {
            unsigned vertex = search.queues[level % 2][i];
            first = graph.offsets[vertex];
            degree = graph.offsets[vertex + 1] - first;
            if (degree >= MANY) {
                unsigned n = (degree + CHUNK - 1) / CHUNK, at = atomicAdd(chunks.count, n);
                for (unsigned c = 0; c < n; ++c) {
                    chunks.chunks[at + c] = make_uint2(first + c * CHUNK, first + degree);
                }
                degree = 0;
            }
        }
        expand_block(graph, search, level, first, degree);
        __syncthreads();
    }
}

__global__ __launch_bounds__(THREADS) void expand_chunks(
    Graph graph, Search search, Chunks chunks, unsigned* done, unsigned level) {
    unsigned count = *chunks.count;
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        uint2 chunk = chunks.chunks[i];
        expand_chunk(graph, search, level, chunk.x, chunk.y);
    }
    // The last block clears the list.
    __syncthreads();
    if (count > 0 && threadIdx.x == 0 && atomicAdd(done, 1) + 1 == gridDim.x) {
        *done = 0;
        *chunks.count = 0;
    }
}

struct Bfs : Program, Problem {
    Array<uint2> chunks;
    Array<unsigned> chunk_counts;
    unsigned *left = nullptr, blocks = 0;
    bool has_many = false;

    void load(const Input& input) override {
        Problem::load(input);
        has_many = false;
        const auto& ends = input.arrays[0];
        for (size_t v = 0; v < vertices; ++v) has_many |= ends[v + 1] - ends[v] >= MANY;
        chunks.resize(targets.count / CHUNK + vertices + 1);
        chunk_counts.resize(2);
        if (!left) CHECK(cudaMallocHost(&left, 3 * sizeof(unsigned)));
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, expand, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        Problem::reset();
        chunk_counts.fill_bytes(0);
    }
    void run() override {
        unsigned levels_ahead = FIRST_LEVELS;
        Chunks lists{chunks.data, chunk_counts.data};
        for (unsigned level = 0;;) {
            for (unsigned end = level + levels_ahead; level < end; ++level) {
                expand<<<blocks, THREADS>>>(graph(), search(), lists, level);
                if (has_many) {
                    expand_chunks<<<blocks, THREADS>>>(graph(), search(), lists, chunk_counts.data + 1, level);
                }
            }
            CHECK(cudaMemcpyAsync(left, counts.data, 3 * sizeof(unsigned), cudaMemcpyDeviceToHost, 0));
            CHECK(cudaStreamSynchronize(0));
            if (left[level % 3] == 0) break;
            levels_ahead = levels_ahead < MOST_LEVELS ? levels_ahead * 2 : MOST_LEVELS;
        }
    }
    std::vector<uint32_t> result() override { return levels.words(); }
};

int main(int argc, char** argv) {
    Bfs program;
    return serve(program, argc, argv);
}
