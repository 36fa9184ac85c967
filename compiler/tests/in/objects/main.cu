// Launches kernels of two Gridlet programs from device code, and of one from the host through a kernel of its own.
#include <cstdio>

extern "C" __global__ void fill(unsigned *p, unsigned n);
extern "C" __global__ void count(unsigned *p, unsigned depth);

// The record of launches by Gridlet's kernels that failed: how many, and of the first the error, the file and the line.
extern "C" __device__ unsigned __gridlet_lost_launches[4];

__global__ void start(unsigned *filled, unsigned n, unsigned *counted) {
    fill<<<1, 1>>>(filled, n);
    count<<<1, 1>>>(counted, 3);
}

__global__ void lost(unsigned *to) { *to = __gridlet_lost_launches[0]; }

int main() {
    const unsigned n = 100;
    unsigned *memory;
    if (cudaMallocManaged(&memory, (n + 2) * sizeof *memory) != cudaSuccess) {
        printf("no memory: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    memory[n] = 0;
    start<<<1, 1>>>(memory, n, memory + n);
    cudaDeviceSynchronize();
    lost<<<1, 1>>>(memory + n + 1);
    cudaError_t error = cudaDeviceSynchronize();
    bool right = error == cudaSuccess && memory[n] == 15 && memory[n + 1] == 0;
    for (unsigned i = 0; i < n; i++) {
        right = right && memory[i] == 0x01010101 + i;
    }
    printf("%s: %s, counted %u, lost %u\n", right ? "right" : "WRONG", cudaGetErrorString(error), memory[n], memory[n + 1]);
    return right ? 0 : 1;
}
