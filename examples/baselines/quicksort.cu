// The program of programs/quicksort.grid in CUDA C++, for comparing compile times and run times.

constexpr unsigned MAX_DEPTH = 16;
constexpr int SMALL = 32;

__device__ void swap(unsigned* a, unsigned* b) {
    unsigned t = *a;
    *a = *b;
    *b = t;
}

__device__ void selection_sort(unsigned* data, int left, int right) {
    for (int i = left; i < right; ++i) {
        int smallest = i;
        for (int j = i + 1; j < right + 1; ++j) {
            if (data[j] < data[smallest]) smallest = j;
        }
        if (smallest != i) swap(data + i, data + smallest);
    }
}

extern "C" __global__ void quicksort(unsigned* data, int left, int right, unsigned depth) {
    if (depth >= MAX_DEPTH || right - left <= SMALL) {
        selection_sort(data, left, right);
        return;
    }
    unsigned pivot = data[(left + right) / 2];
    int lo = left;
    int hi = right;
    while (lo <= hi) {
        while (data[lo] < pivot) ++lo;
        while (data[hi] > pivot) --hi;
        if (lo <= hi) {
            swap(&data[lo], &data[hi]);
            ++lo;
            --hi;
        }
    }
    if (left < hi) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(data, left, hi, depth + 1);
    if (lo < right) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(data, lo, right, depth + 1);
}
