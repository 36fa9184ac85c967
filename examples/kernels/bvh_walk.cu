constexpr unsigned DEPTH = 32, LEAF = 4;

struct Node {
    float3 low;
    unsigned first;
    float3 high;
    unsigned is_leaf;
};

__device__ inline float outside(float x, float low, float high) { return fmaxf(fmaxf(low - x, x - high), 0.0f); }

__device__ inline float squared(float x, float y, float z) { return fmaf(x, x, fmaf(y, y, z * z)); }

extern "C" __global__ void bvh_walk(
    unsigned n, float limit, const Node* __restrict__ nodes, const float4* __restrict__ points,
    const float4* __restrict__ queries, unsigned* __restrict__ counts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 q = queries[i];
    unsigned stack[DEPTH], height = 1, count = 0;
    stack[0] = 0;
    while (height > 0) {
        Node node = nodes[stack[--height]];
        float x = outside(q.x, node.low.x, node.high.x);
        float y = outside(q.y, node.low.y, node.high.y);
        float z = outside(q.z, node.low.z, node.high.z);
        if (squared(x, y, z) >= limit) continue;
        if (node.is_leaf) {
            for (unsigned k = node.first; k < node.first + LEAF; ++k) {
                float4 p = points[k];
                if (squared(p.x - q.x, p.y - q.y, p.z - q.z) < limit) ++count;
            }
        } else {
            stack[height++] = node.first + 1;
            stack[height++] = node.first;
        }
    }
    counts[i] = count;
}
