#pragma once

struct View {
    float re, im, step;
    unsigned width, max_dwell;
};

// All roundings are explicit, so every device computes the same dwell.
__device__ inline unsigned dwell(View view, unsigned x, unsigned y) {
    float re = __fmaf_rn(float(x), view.step, view.re);
    float im = __fmaf_rn(float(y), view.step, view.im);
    float a = re, b = im;
    unsigned n = 0;
    while (n < view.max_dwell && __fmaf_rn(a, a, __fmul_rn(b, b)) < 4.0f) {
        float next = __fmaf_rn(a, a, __fmaf_rn(-b, b, re));
        b = __fmaf_rn(__fadd_rn(a, a), b, im);
        a = next;
        ++n;
    }
    return n;
}

inline View view_of(const Input& input) {
    auto as_float = [&](size_t at) {
        uint32_t bits = uint32_t(input.numbers[at]);
        float value;
        memcpy(&value, &bits, 4);
        return value;
    };
    return View{as_float(2), as_float(3), as_float(4), unsigned(input.numbers[0]), unsigned(input.numbers[1])};
}
