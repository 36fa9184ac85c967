// Cholesky factorisation of a matrix in tiles: the host launches the three grids of each step.
#include "../common/serve.h"
#include "tile.h"

struct Cholesky : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override {
        for (unsigned step = 0; step < tiles; ++step) {
            unsigned below = tiles - step - 1;
            factorise_tile<<<1, THREADS>>>(matrix.data, step);
            if (below > 0) {
                solve<<<below, THREADS>>>(matrix.data, step);
                update<<<dim3(below, below, 1), THREADS>>>(matrix.data, step);
            }
        }
    }
    std::vector<uint32_t> result() override { return matrix.words(); }
};

int main(int argc, char** argv) {
    Cholesky program;
    return serve(program, argc, argv);
}
