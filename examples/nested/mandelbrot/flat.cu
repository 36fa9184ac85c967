// Each pixel by a thread: a warp has 8 × 4 neighbouring pixels, whose dwells are alike.
#include "../common/serve.h"
#include "dwell.h"

__global__ __launch_bounds__(128) void pixels(unsigned* out, View view) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned x = blockIdx.x * 16 + warp % 2 * 8 + lane % 8;
    unsigned y = blockIdx.y * 8 + warp / 2 * 4 + lane / 8;
    out[y * view.width + x] = dwell(view, x, y);
}

struct Mandelbrot : Program {
    View view{};
    Array<unsigned> out;

    void load(const Input& input) override {
        view = view_of(input);
        out.resize(size_t(view.width) * view.width);
    }
    void reset() override { out.fill_bytes(0xff); }
    void run() override { pixels<<<dim3(view.width / 16, view.width / 8), 128>>>(out.data, view); }
    std::vector<uint32_t> result() override { return out.words(); }
};

int main(int argc, char** argv) {
    Mandelbrot program;
    return serve(program, argc, argv);
}
