// Searches in rounds: each thread takes runs of siblings from a queue, searches depth first until its budget is spent, and
// puts what is left into the queue of the next round.
#include "../common/serve.h"
#include "tree.h"

constexpr unsigned THREADS = 128;
constexpr unsigned CAPACITY = 1 << 24;
// Rounds that the host launches before it looks whether any work is left.
constexpr unsigned ROUNDS = 16;

struct Queues {
    Run* runs[2];
    // Runs of the queues of three rounds: this one's, the next one's, and one that is cleared.
    unsigned* counts;
};

static __device__ inline void push(Run* to, unsigned* count, const Run& run) {
    unsigned at = atomicAdd(count, 1);
    if (at >= CAPACITY) __trap();
    to[at] = run;
}

__global__ __launch_bounds__(THREADS) void search(Tree tree, unsigned* totals, Queues queues, unsigned round) {
    unsigned count = queues.counts[round % 3];
    unsigned threads = gridDim.x * THREADS, thread = blockIdx.x * THREADS + threadIdx.x;
    if (thread == 0) queues.counts[(round + 2) % 3] = 0;
    if (count == 0) return;
    const Run* from = queues.runs[round % 2];
    Run* to = queues.runs[(round + 1) % 2];
    unsigned* to_count = &queues.counts[(round + 1) % 3];
    // Few runs: spread the work first.
    unsigned budget = count < 2048 ? 2 : count < threads / 2 ? 16 : 64;
    unsigned nodes = 0, leaves = 0, deepest = 0;
    for (unsigned at = thread; at < count; at += threads) {
        Run run = from[at];
        while (run.end - run.first > RUN) {
            Run upper = run;
            upper.first = (run.first + run.end) / 2;
            push(to, to_count, upper);
            run.end = upper.first;
        }
        Run stack[STACK];
        unsigned height = 0, searched = 0;
        while (true) {
            unsigned digest[5];
            spawn(run.digest, run.first, digest);
            unsigned n = children(tree, digest, run.depth);
            searched += 1;
            deepest = max(deepest, run.depth);
            run.first += 1;
            bool is_done = run.first == run.end;
            if (n == 0) {
                leaves += 1;
                if (is_done) {
                    if (height == 0) break;
                    run = stack[--height];
                }
            } else {
                if (!is_done) {
                    if (height < STACK) stack[height++] = run;
                    else push(to, to_count, run);
                }
                for (int i = 0; i < 5; ++i) run.digest[i] = digest[i];
                run.first = 0;
                run.end = n;
                run.depth += 1;
            }
            if (searched >= budget) {
                push(to, to_count, run);
                for (unsigned i = 0; i < height; ++i) push(to, to_count, stack[i]);
                break;
            }
        }
        nodes += searched;
    }
    __syncwarp();
    nodes = __reduce_add_sync(0xffffffff, nodes);
    leaves = __reduce_add_sync(0xffffffff, leaves);
    deepest = __reduce_max_sync(0xffffffff, deepest);
    if (threadIdx.x % 32 == 0 && nodes > 0) {
        unsigned* slot = totals + thread / 32 % SLOTS * STRIDE;
        atomicAdd(slot, nodes);
        atomicAdd(slot + 1, leaves);
        atomicMax(slot + 2, deepest);
    }
}

struct Uts : Program, Problem {
    Array<Run> first, second;
    Array<unsigned> counts;
    unsigned* left = nullptr;
    unsigned blocks = 0;

    void load(const Input& input) override {
        Problem::load(input);
        if (left) return;
        first.resize(CAPACITY);
        second.resize(CAPACITY);
        counts.resize(3);
        CHECK(cudaMallocHost(&left, 3 * sizeof(unsigned)));
        int each = 0;
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search, THREADS, 0));
        blocks = each * device.multiProcessorCount;
    }
    void reset() override {
        totals.fill_bytes(0);
        CHECK(cudaMemcpy(first.data, &root, sizeof root, cudaMemcpyHostToDevice));
        unsigned start[3] = {1, 0, 0};
        CHECK(cudaMemcpy(counts.data, start, sizeof start, cudaMemcpyHostToDevice));
    }
    void run() override {
        Queues queues{{first.data, second.data}, counts.data};
        for (unsigned round = 0;;) {
            for (unsigned end = round + ROUNDS; round < end; ++round) {
                search<<<blocks, THREADS>>>(tree, totals.data, queues, round);
            }
            CHECK(cudaMemcpyAsync(left, counts.data, 3 * sizeof(unsigned), cudaMemcpyDeviceToHost, 0));
            CHECK(cudaStreamSynchronize(0));
            if (left[round % 3] == 0) break;
        }
    }
    std::vector<uint32_t> result() override { return totals.words(); }
};

int main(int argc, char** argv) {
    Uts program;
    return serve(program, argc, argv);
}
