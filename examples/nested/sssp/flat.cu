// Shortest paths by rounds of relaxation. Vertices with many edges go to a list of chunks, which a second grid relaxes. The
// host launches many rounds before it looks whether any vertex is left.
#include "../common/serve.h"
#include "search.h"

constexpr unsigned FIRST_ROUNDS = 8;
constexpr unsigned MOST_ROUNDS = 64;

struct Chunks {
    uint3* chunks;
    unsigned* count;
};

__global__ __launch_bounds__(THREADS) void expand(Graph graph, Search search, Chunks chunks, unsigned round) {
    unsigned count = search.counts[round % 3];
    if (blockIdx.x == 0 && threadIdx.x == 0) search.counts[(round + 2) % 3] = 0;
    for (unsigned base = blockIdx.x * THREADS; base < count; base += gridDim.x * THREADS) {
        unsigned i = base + threadIdx.x, first = 0, degree = 0, distance = 0;
        if (i < count) {
            unsigned vertex = search.queues[round % 2][i];
            distance = search.distances[vertex];
            first = graph.offsets[vertex];
            degree = graph.offsets[vertex + 1] - first;
            if (degree >= MANY) {
                unsigned n = (degree + CHUNK - 1) / CHUNK, at = atomicAdd(chunks.count, n);
                for (unsigned c = 0; c < n; ++c) {
                    chunks.chunks[at + c] = make_uint3(first + c * CHUNK, first + degree, distance);
                }
                degree = 0;
            }
        }
        expand_block(graph, search, round, distance, first, degree);
        __syncthreads();
    }
}

__global__ __launch_bounds__(THREADS) void expand_chunks(
    Graph graph, Search search, Chunks chunks, unsigned* done, unsigned round) {
    unsigned count = *chunks.count;
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        uint3 chunk = chunks.chunks[i];
        expand_chunk(graph, search, round, chunk.z, chunk.x, chunk.y);
    }
    // The last block clears the list.
    __syncthreads();
    if (count > 0 && threadIdx.x == 0 && atomicAdd(done, 1) + 1 == gridDim.x) {
        *done = 0;
        *chunks.count = 0;
    }
}

struct Sssp : Program, Problem {
    Array<uint3> chunks;
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
        unsigned rounds_ahead = FIRST_ROUNDS;
        Chunks lists{chunks.data, chunk_counts.data};
        for (unsigned round = 0;;) {
            for (unsigned end = round + rounds_ahead; round < end; ++round) {
                expand<<<blocks, THREADS>>>(graph(), search(), lists, round);
                if (has_many) {
                    expand_chunks<<<blocks, THREADS>>>(graph(), search(), lists, chunk_counts.data + 1, round);
                }
            }
            CHECK(cudaMemcpyAsync(left, counts.data, 3 * sizeof(unsigned), cudaMemcpyDeviceToHost, 0));
            CHECK(cudaStreamSynchronize(0));
            if (left[round % 3] == 0) break;
            rounds_ahead = rounds_ahead < MOST_ROUNDS ? rounds_ahead * 2 : MOST_ROUNDS;
        }
    }
    std::vector<uint32_t> result() override { return distances.words(); }
};

int main(int argc, char** argv) {
    Sssp program;
    return serve(program, argc, argv);
}
