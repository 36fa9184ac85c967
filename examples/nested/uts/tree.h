#pragma once

struct Run {
    unsigned digest[5], first, end, depth;
};

struct Tree {
    const unsigned* thresholds;
    unsigned most, depth_limit, fixed;
};

constexpr unsigned STACK = 8;
constexpr unsigned RUN = 8;
constexpr unsigned SLOTS = 1024;
constexpr unsigned STRIDE = 8;

__device__ inline unsigned rotate(unsigned x, unsigned by) { return __funnelshift_l(x, x, by); }

// The SHA-1 digest (FIPS 180-4) of a digest followed by the child's number: one block.
__device__ inline void spawn(const unsigned (&parent)[5], unsigned child, unsigned (&digest)[5]) {
    unsigned w[16] = {parent[0], parent[1], parent[2], parent[3], parent[4], child, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0,
                      24 * 8};
    unsigned a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476, e = 0xc3d2e1f0;
#pragma unroll
    for (int i = 0; i < 80; ++i) {
        if (i >= 16) {
            w[i % 16] = rotate(w[(i + 13) % 16] ^ w[(i + 8) % 16] ^ w[(i + 2) % 16] ^ w[i % 16], 1);
        }
        unsigned f = b ^ c ^ d, k = 0x6ed9eba1;
        if (i < 20) {
            f = (b & c) | (~b & d);
            k = 0x5a827999;
        } else if (i >= 60) {
            k = 0xca62c1d6;
        } else if (i >= 40) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8f1bbcdc;
        }
        unsigned t = rotate(a, 5) + f + e + k + w[i % 16];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = t;
    }
    digest[0] = a + 0x67452301;
    digest[1] = b + 0xefcdab89;
    digest[2] = c + 0x98badcfe;
    digest[3] = d + 0x10325476;
    digest[4] = e + 0xc3d2e1f0;
}

__device__ inline unsigned children(const Tree& tree, const unsigned (&digest)[5], unsigned depth) {
    if (depth >= tree.depth_limit) return 0;
    unsigned random = digest[4] & 0x7fffffff;
    if (tree.fixed > 0) return random < tree.thresholds[0] ? tree.fixed : 0;
    unsigned n = 0;
    while (n < tree.most && random >= tree.thresholds[n]) ++n;
    return n;
}

// The numbers of an input: most children, depth limit, fixed, then the root's digest and its children. The array: the
// thresholds.
struct Problem {
    Tree tree{};
    Run root{};
    Array<unsigned> thresholds, totals;

    void load(const Input& input) {
        thresholds.assign(input.arrays[0]);
        totals.resize(SLOTS * STRIDE);
        tree = Tree{thresholds.data, unsigned(input.numbers[0]), unsigned(input.numbers[1]), unsigned(input.numbers[2])};
        for (int i = 0; i < 5; ++i) root.digest[i] = input.numbers[3 + i];
        root.first = 0;
        root.end = input.numbers[8];
        root.depth = 1;
    }
};
