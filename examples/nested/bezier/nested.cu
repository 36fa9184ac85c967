// The program of bezier.grid in CUDA C++.
#include "../common/serve.h"
#include "curve.h"

constexpr unsigned CURVES = 128;
constexpr unsigned THREADS = 64;

__global__ __launch_bounds__(THREADS) void compute(Curve curve, unsigned count, float2* points) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) points[i] = compute_point(curve, i, count);
}

__global__ __launch_bounds__(CURVES) void bezier(
    const Curve* curves, unsigned count, unsigned* counts, float2* points) {
    unsigned i = blockIdx.x * CURVES + threadIdx.x;
    if (i >= count) return;
    Curve curve = curves[i];
    unsigned own = count_points(curve);
    counts[i] = own;
    compute<<<(own + THREADS - 1) / THREADS, THREADS, 0, cudaStreamFireAndForget>>>(
        curve, own, points + i * MAX_POINTS);
}

struct Bezier : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override {
        bezier<<<(count + CURVES - 1) / CURVES, CURVES>>>(curves.data, count, counts.data, points.data);
    }
    std::vector<uint32_t> result() override { return Problem::result(); }
};

int main(int argc, char** argv) {
    Bezier program;
    return serve(program, argc, argv);
}
