// The program of refinement.grid in CUDA C++.
#include "../common/serve.h"
#include "cell.h"

__global__ __launch_bounds__(32) void refine(Function function, Cell first, u64* totals) {
    Cell cell{first.x + blockIdx.x * first.side, first.y + blockIdx.y * first.side, first.side};
    if (sample(function, cell, totals)) {
        Cell quarter{cell.x, cell.y, cell.side / 2};
        refine<<<dim3(2, 2, 1), 32, 0, cudaStreamFireAndForget>>>(function, quarter, totals);
    }
}

struct Refinement : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { totals.fill_bytes(0); }
    void run() override { refine<<<dim3(across, across), 32>>>(function, Cell{0, 0, side}, totals.data); }
    std::vector<uint32_t> result() override { return totals.words(); }
};

int main(int argc, char** argv) {
    Refinement program;
    return serve(program, argc, argv);
}
