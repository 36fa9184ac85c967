extern "C" __global__ void gray(unsigned n, const uchar4* __restrict__ pixels, unsigned char* __restrict__ greys) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uchar4 p = pixels[i];
    greys[i] = (unsigned char)((77u * p.x + 150u * p.y + 29u * p.z) >> 8);
}
