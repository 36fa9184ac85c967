// Bézier curves with as many points as their curvature asks for, a warp for each curve.
#include "../common/serve.h"
#include "curve.h"

constexpr unsigned THREADS = 256;

__global__ __launch_bounds__(THREADS) void bezier(
    const Curve* curves, unsigned count, unsigned* counts, float2* points) {
    unsigned curve_index = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (curve_index >= count) return;
    Curve curve = curves[curve_index];
    unsigned own = count_points(curve);
    if (lane == 0) counts[curve_index] = own;
    for (unsigned i = lane; i < own; i += 32) {
        points[curve_index * MAX_POINTS + i] = compute_point(curve, i, own);
    }
}

struct Bezier : Program, Problem {
    void load(const Input& input) override { Problem::load(input); }
    void reset() override { Problem::reset(); }
    void run() override {
        bezier<<<(count + THREADS / 32 - 1) / (THREADS / 32), THREADS>>>(
            curves.data, count, counts.data, points.data);
    }
    std::vector<uint32_t> result() override { return Problem::result(); }
};

int main(int argc, char** argv) {
    Bezier program;
    return serve(program, argc, argv);
}
