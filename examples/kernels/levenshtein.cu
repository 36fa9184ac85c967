constexpr unsigned LENGTH = 16;

extern "C" __global__ void levenshtein(
    unsigned n, const unsigned char* __restrict__ left, const unsigned char* __restrict__ right,
    unsigned* __restrict__ distances) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned row[LENGTH + 1];
    unsigned char word[LENGTH];
    row[0] = 0;
#pragma unroll
    for (unsigned k = 0; k < LENGTH; ++k) {
        row[k + 1] = k + 1;
        word[k] = right[k * n + i];
    }
    for (unsigned j = 0; j < LENGTH; ++j) {
        unsigned char letter = left[j * n + i];
        unsigned diagonal = row[0];
        row[0] = j + 1;
#pragma unroll
        for (unsigned k = 0; k < LENGTH; ++k) {
            unsigned replaced = letter == word[k] ? diagonal : diagonal + 1;
            diagonal = row[k + 1];
            row[k + 1] = min(replaced, min(diagonal, row[k]) + 1);
        }
    }
    distances[i] = row[LENGTH];
}
