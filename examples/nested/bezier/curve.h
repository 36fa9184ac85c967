#pragma once

constexpr unsigned MIN_POINTS = 4;
constexpr unsigned MAX_POINTS = 256;
constexpr float SCALE = 64.0f;

struct Curve {
    float2 a, b, c;
};

// All roundings are explicit, so every device computes the same value.
__device__ inline float length(float x, float y) { return sqrtf(__fmaf_rn(x, x, __fmul_rn(y, y))); }

__device__ inline unsigned count_points(const Curve& curve) {
    float x = __fmaf_rn(-0.5f, curve.a.x + curve.c.x, curve.b.x);
    float y = __fmaf_rn(-0.5f, curve.a.y + curve.c.y, curve.b.y);
    float curvature = length(x, y) / length(curve.c.x - curve.a.x, curve.c.y - curve.a.y);
    return min(max(unsigned(curvature * SCALE), MIN_POINTS), MAX_POINTS);
}

__device__ inline float2 compute_point(const Curve& curve, unsigned i, unsigned count) {
    float t = float(i) / float(count - 1);
    float s = 1.0f - t;
    float a = __fmul_rn(s, s), b = __fmul_rn(2.0f * s, t), c = __fmul_rn(t, t);
    return make_float2(
        __fmaf_rn(a, curve.a.x, __fmaf_rn(b, curve.b.x, __fmul_rn(c, curve.c.x))),
        __fmaf_rn(a, curve.a.y, __fmaf_rn(b, curve.b.y, __fmul_rn(c, curve.c.y))));
}

// The array of an input has the coordinates of the control points. The result is the counts, then the points.
struct Problem {
    Array<Curve> curves;
    Array<unsigned> counts;
    Array<float2> points;
    unsigned count = 0;

    void load(const Input& input) {
        count = input.arrays[0].size() / 6;
        curves.resize(count);
        CHECK(cudaMemcpy(curves.data, input.arrays[0].data(), count * sizeof(Curve), cudaMemcpyHostToDevice));
        counts.resize(count);
        points.resize(size_t(count) * MAX_POINTS);
    }
    void reset() {
        counts.fill_bytes(0);
        points.fill_bytes(0xff);
    }
    std::vector<uint32_t> result() const {
        std::vector<uint32_t> words = counts.words(), more = points.words();
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
};
