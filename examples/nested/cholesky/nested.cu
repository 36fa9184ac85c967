// The program of cholesky.grid in CUDA C++.
#include "../common/serve.h"
#include "tile.h"

__global__ __launch_bounds__(1) void factorise(float* matrix, unsigned tiles, unsigned step) {
    unsigned below = tiles - step - 1;
    factorise_tile<<<1, THREADS>>>(matrix, step);
    if (below > 0) {
        solve<<<below, THREADS>>>(matrix, step);
        update<<<dim3(below, below, 1), THREADS>>>(matrix, step);
        factorise<<<1, 1, 0, cudaStreamTailLaunch>>>(matrix, tiles, step + 1);
    }
}

struct Cholesky : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override { factorise<<<1, 1>>>(matrix.data, tiles, 0); }
    std::vector<uint32_t> result() override { return matrix.words(); }
};

int main(int argc, char** argv) {
    Cholesky program;
    return serve(program, argc, argv);
}
