constexpr unsigned SIDE = 5;

extern "C" __global__ void lu_pivot(
    unsigned n, const double* __restrict__ matrices, const double* __restrict__ right, double* __restrict__ to) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a[SIDE][SIDE + 1];
    for (unsigned row = 0; row < SIDE; ++row) {
        for (unsigned column = 0; column < SIDE; ++column) a[row][column] = matrices[(row * SIDE + column) * n + i];
        a[row][SIDE] = right[row * n + i];
    }
    for (unsigned k = 0; k < SIDE; ++k) {
        unsigned pivot = k;
        for (unsigned row = k + 1; row < SIDE; ++row) {
            if (fabs(a[row][k]) > fabs(a[pivot][k])) pivot = row;
        }
        if (pivot != k) {
            for (unsigned column = k; column < SIDE + 1; ++column) {
                double value = a[k][column];
                a[k][column] = a[pivot][column];
                a[pivot][column] = value;
            }
        }
        double inverse = 1.0 / a[k][k];
        for (unsigned row = k + 1; row < SIDE; ++row) {
            double factor = a[row][k] * inverse;
            for (unsigned column = k + 1; column < SIDE + 1; ++column) a[row][column] -= factor * a[k][column];
        }
    }
    for (unsigned k = 0; k < SIDE; ++k) {
        unsigned row = SIDE - 1 - k;
        double value = a[row][SIDE];
        for (unsigned column = row + 1; column < SIDE; ++column) value -= a[row][column] * a[column][SIDE];
        a[row][SIDE] = value / a[row][row];
        to[row * n + i] = a[row][SIDE];
    }
}
