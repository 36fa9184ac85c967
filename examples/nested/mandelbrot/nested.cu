// The program of mandelbrot.grid in CUDA C++.
#include "../common/serve.h"
#include "dwell.h"

constexpr unsigned THREADS = 128;
constexpr unsigned SPLIT = 4;
constexpr unsigned SMALLEST = 16;
constexpr unsigned WIDE = 128;
constexpr unsigned FILL = 32;

__global__ __launch_bounds__(THREADS) void fill(
    unsigned* out, unsigned width, unsigned x0, unsigned y0, unsigned side, unsigned value) {
    uint4 values = make_uint4(value, value, value, value);
    unsigned quads = side / 4;
    unsigned first = blockIdx.x * (THREADS * FILL / 4) + threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < FILL / 4; ++i) {
        unsigned at = first + i * THREADS;
        uint4* row = reinterpret_cast<uint4*>(out + (y0 + at / quads) * width + x0);
        row[at % quads] = values;
    }
}

__global__ __launch_bounds__(THREADS) void squares(
    unsigned* out, View view, unsigned x0, unsigned y0, unsigned side) {
    unsigned x = x0 + blockIdx.x * side, y = y0 + blockIdx.y * side;
    if (side <= SMALLEST) {
        for (unsigned i = threadIdx.x; i < side * side; i += THREADS) {
            out[(y + i / side) * view.width + x + i % side] = dwell(view, x + i % side, y + i / side);
        }
        return;
    }

    unsigned corner = dwell(view, x, y);
    bool same = true;
    for (unsigned i = threadIdx.x; i < 4 * side; i += THREADS) {
        unsigned at = i % side, edge = i / side;
        unsigned px = edge == 2 ? 0 : edge == 3 ? side - 1 : at;
        unsigned py = edge == 0 ? 0 : edge == 1 ? side - 1 : at;
        if (dwell(view, x + px, y + py) != corner) {
            same = false;
            break;
        }
    }
    if (__syncthreads_and(same)) {
        if (side >= WIDE) {
            if (threadIdx.x == 0) {
                fill<<<side * side / (THREADS * FILL), THREADS, 0, cudaStreamFireAndForget>>>(
                    out, view.width, x, y, side, corner);
            }
        } else {
            uint4 values = make_uint4(corner, corner, corner, corner);
            unsigned quads = side / 4;
            for (unsigned i = threadIdx.x; i < side * quads; i += THREADS) {
                uint4* row = reinterpret_cast<uint4*>(out + (y + i / quads) * view.width + x);
                row[i % quads] = values;
            }
        }
    } else if (threadIdx.x == 0) {
        squares<<<dim3(SPLIT, SPLIT, 1), THREADS, 0, cudaStreamFireAndForget>>>(
            out, view, x, y, side / SPLIT);
    }
}

// The numbers of an input: width, greatest dwell, re, im and step as bits of floats, side of the first squares.
struct Mandelbrot : Program {
    View view{};
    unsigned side = 0;
    Array<unsigned> out;

    void load(const Input& input) override {
        view = view_of(input);
        side = input.numbers[5];
        out.resize(size_t(view.width) * view.width);
    }
    void reset() override { out.fill_bytes(0xff); }
    void run() override {
        unsigned squares_across = view.width / side;
        squares<<<dim3(squares_across, squares_across), THREADS>>>(out.data, view, 0, 0, side);
    }
    std::vector<uint32_t> result() override { return out.words(); }
};

int main(int argc, char** argv) {
    Mandelbrot program;
    return serve(program, argc, argv);
}
