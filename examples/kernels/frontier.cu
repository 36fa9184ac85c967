#include <cuda/atomic>

extern "C" __global__ void frontier(
    unsigned n, unsigned depth, const unsigned* __restrict__ offsets, const unsigned* __restrict__ targets,
    unsigned* __restrict__ levels) {
    unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= n) return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> own(levels[vertex]);
    if (own.load(cuda::memory_order_relaxed) != depth) return;
    for (unsigned edge = offsets[vertex], end = offsets[vertex + 1]; edge < end; ++edge) {
        atomicMin(&levels[targets[edge]], depth + 1);
    }
}
