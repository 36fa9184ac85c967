// Sums of ragged segments: long segments go to a list of chunks, which a second grid sums; a third adds the sums up.
#include "../common/serve.h"
#include "sums.h"

struct Chunk {
    unsigned first, end, segment;
};

__global__ __launch_bounds__(THREADS) void sum_segments(
    Segments segments, unsigned* sums, Chunk* chunks, unsigned* chunk_count) {
    unsigned thread = blockIdx.x * THREADS + threadIdx.x, first = 0, end = 0;
    if (thread < segments.count) {
        first = segments.offsets[thread];
        end = segments.offsets[thread + 1];
        if (end - first >= LONG) {
            unsigned n = (end - first + CHUNK - 1) / CHUNK, at = atomicAdd(chunk_count, n);
            for (unsigned i = 0; i < n; ++i) chunks[at + i] = Chunk{first + i * CHUNK, end, thread};
            end = first;
        }
    }
    unsigned mine = sum_short(segments, first, end);
    if (first < end) sums[thread] = mine;
}

__global__ __launch_bounds__(THREADS) void sum_chunks(
    const unsigned* values, const Chunk* chunks, const unsigned* chunk_count, unsigned* sums) {
    unsigned count = *chunk_count;
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        sum_chunk(values, chunks[i].first, chunks[i].end, sums + chunks[i].segment);
        __syncthreads();
    }
}

struct Sums : Program, Problem {
    Array<Chunk> chunks;
    Array<unsigned> chunk_count;
    unsigned blocks = 0;

    void load(const Input& input) override {
        Problem::load(input);
        chunks.resize(values.count / CHUNK + values.count / LONG + 1);
        chunk_count.resize(1);
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        int each = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, sum_chunks, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        Problem::reset();
        chunk_count.fill_bytes(0);
    }
    void run() override {
        sum_segments<<<(count + THREADS - 1) / THREADS, THREADS>>>(
            segments(), sums.data, chunks.data, chunk_count.data);
        sum_chunks<<<blocks, THREADS>>>(values.data, chunks.data, chunk_count.data, sums.data);
        add_up<<<(count + SUMS - 1) / SUMS, THREADS>>>(sums.data, count, total.data);
    }
    std::vector<uint32_t> result() override { return Problem::result(); }
};

int main(int argc, char** argv) {
    Sums program;
    return serve(program, argc, argv);
}
