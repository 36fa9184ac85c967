// The program of uts.grid in CUDA C++.
#include "../common/serve.h"
#include "tree.h"

constexpr unsigned MAX_BUDGET = 32;

__global__ __launch_bounds__(32) void search(Tree tree, unsigned* totals, Run all, unsigned budget) {
    Run run = all;
    while (run.end - run.first > RUN) {
        Run upper = run;
        upper.first = (run.first + run.end) / 2;
        search<<<1, 1, 0, cudaStreamFireAndForget>>>(tree, totals, upper, budget);
        run.end = upper.first;
    }

    unsigned next_budget = min(budget * 2, MAX_BUDGET);
    Run stack[STACK];
    unsigned height = 0, nodes = 0, leaves = 0, deepest = 0;
    while (true) {
        unsigned digest[5];
        spawn(run.digest, run.first, digest);
        unsigned n = children(tree, digest, run.depth);
        nodes += 1;
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
                else search<<<1, 1, 0, cudaStreamFireAndForget>>>(tree, totals, run, next_budget);
            }
            for (int i = 0; i < 5; ++i) run.digest[i] = digest[i];
            run.first = 0;
            run.end = n;
            run.depth += 1;
        }
        if (nodes >= budget) {
            search<<<1, 1, 0, cudaStreamFireAndForget>>>(tree, totals, run, next_budget);
            for (unsigned i = 0; i < height; ++i) {
                search<<<1, 1, 0, cudaStreamFireAndForget>>>(tree, totals, stack[i], next_budget);
            }
            break;
        }
    }

    unsigned* slot = totals + all.digest[0] % SLOTS * STRIDE;
    atomicAdd(slot, nodes);
    atomicAdd(slot + 1, leaves);
    atomicMax(slot + 2, deepest);
}

struct Uts : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { totals.fill_bytes(0); }
    void run() override { search<<<1, 1>>>(tree, totals.data, root, 1); }
    std::vector<uint32_t> result() override { return totals.words(); }
};

int main(int argc, char** argv) {
    Uts program;
    return serve(program, argc, argv);
}
