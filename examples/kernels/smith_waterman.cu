constexpr unsigned ROWS = 128;
constexpr int GAP = 3;

extern "C" __global__ __launch_bounds__(ROWS) void smith_waterman(
    unsigned length, const signed char* __restrict__ scores, const unsigned char* __restrict__ left,
    const unsigned char* __restrict__ right, int* __restrict__ best) {
    __shared__ int diagonals[3][ROWS + 1], most;
    unsigned t = threadIdx.x;
    unsigned char letter = left[blockIdx.x * ROWS + t];
    if (t == 0) {
        most = 0;
        for (unsigned k = 0; k < 3; ++k) diagonals[k][0] = 0;
    }
    for (unsigned k = 0; k < 3; ++k) diagonals[k][t + 1] = 0;
    __syncthreads();
    int own = 0;
    for (unsigned step = 0; step < length + ROWS - 1; ++step) {
        unsigned now = step % 3, before = (step + 2) % 3, earlier = (step + 1) % 3;
        if (step >= t && step - t < length) {
            unsigned char other = right[blockIdx.x * length + step - t];
            int score = diagonals[earlier][t] + scores[letter * 4 + other];
            score = max(score, max(diagonals[before][t], diagonals[before][t + 1]) - GAP);
            score = max(score, 0);
            diagonals[now][t + 1] = score;
            own = max(own, score);
        }
        __syncthreads();
    }
    atomicMax(&most, own);
    __syncthreads();
    if (t == 0) best[blockIdx.x] = most;
}
