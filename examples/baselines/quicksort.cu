// The program of programs/quicksort.grid in CUDA C++, for comparing compile times and run times.

constexpr unsigned THREADS = 128;
constexpr unsigned ITEMS = 16;
constexpr unsigned TILE = THREADS * ITEMS;
constexpr unsigned LEAF = 1024;
constexpr unsigned MAX_DEPTH = 32;

struct Progress {
    unsigned long long placed;
    unsigned blocks;
};

struct Sort {
    unsigned* values;
    unsigned* scratch;
    Progress* progress;
};

extern "C" __global__ void partition(Sort sort, unsigned begin, unsigned count, unsigned depth);
extern "C" __global__ void sort_long(Sort sort, unsigned begin, unsigned count, unsigned depth);
extern "C" __global__ void sort_short(Sort sort, unsigned begin, unsigned count, unsigned depth);

__device__ unsigned* part(Sort sort, unsigned begin, unsigned depth) {
    return depth % 2 == 0 ? sort.values + begin : sort.scratch + begin;
}

__device__ Progress* progress_of(Sort sort, unsigned begin) { return sort.progress + begin / LEAF; }

__device__ void sort_part(Sort sort, unsigned begin, unsigned count, unsigned depth) {
    if (count > LEAF && depth < MAX_DEPTH) {
        unsigned blocks = (count - 1) / TILE + 1;
        partition<<<blocks, THREADS, 0, cudaStreamFireAndForget>>>(sort, begin, count, depth);
    } else if (count > LEAF) {
        sort_long<<<1, THREADS, 0, cudaStreamFireAndForget>>>(sort, begin, count, depth);
    } else if (count > 0) {
        sort_short<<<1, THREADS, 0, cudaStreamFireAndForget>>>(sort, begin, count, depth);
    }
}

extern "C" __global__ void __launch_bounds__(1)
quicksort(unsigned* values, unsigned* scratch, Progress* progress, unsigned count) {
    sort_part(Sort{values, scratch, progress}, 0, count, 0);
}

__device__ unsigned median(unsigned a, unsigned b, unsigned c) {
    return max(min(a, b), min(max(a, b), c));
}

__device__ unsigned choose_pivot(const unsigned* values, unsigned count) {
    unsigned step = count / 9;
    unsigned low = median(values[0], values[step], values[2 * step]);
    unsigned middle = median(values[3 * step], values[4 * step], values[5 * step]);
    unsigned high = median(values[6 * step], values[7 * step], values[count - 1]);
    return median(low, middle, high);
}

extern "C" __global__ void __launch_bounds__(THREADS)
fill(unsigned* values, unsigned count, unsigned value) {
    unsigned end = min(count, (blockIdx.x + 1) * TILE);
    for (unsigned i = blockIdx.x * TILE + threadIdx.x; i < end; i += THREADS) values[i] = value;
}

__device__ void sort_sides(Sort sort, unsigned begin, unsigned count, unsigned depth, unsigned pivot) {
    Progress* progress = progress_of(sort, begin);
    unsigned long long placed = atomicExch(&progress->placed, 0ull);
    atomicExch(&progress->blocks, 0u);
    unsigned below = unsigned(placed);
    unsigned above = unsigned(placed >> 32);
    unsigned equal = count - below - above;
    unsigned* middle = sort.values + begin + below;
    if (equal <= ITEMS) {
        for (unsigned i = 0; i < equal; ++i) middle[i] = pivot;
    } else {
        unsigned blocks = (equal - 1) / TILE + 1;
        fill<<<blocks, THREADS, 0, cudaStreamFireAndForget>>>(middle, equal, pivot);
    }
    sort_part(sort, begin, below, depth + 1);
    sort_part(sort, begin + count - above, above, depth + 1);
}

extern "C" __global__ void __launch_bounds__(THREADS)
partition(Sort sort, unsigned begin, unsigned count, unsigned depth) {
    __shared__ unsigned placed;
    __shared__ unsigned long long first;
    const unsigned* from = part(sort, begin, depth);
    unsigned* to = part(sort, begin, depth + 1);
    Progress* progress = progress_of(sort, begin);
    unsigned pivot = choose_pivot(from, count);
    if (threadIdx.x == 0) placed = 0;

    unsigned start = blockIdx.x * TILE + threadIdx.x;
    unsigned values[ITEMS];
    unsigned mine = 0;
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        values[i] = start + i * THREADS < count ? from[start + i * THREADS] : pivot;
        mine += unsigned(values[i] < pivot) + (unsigned(values[i] > pivot) << 16);
    }

    __syncthreads();
    unsigned before = atomicAdd_block(&placed, mine);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned long long both = placed;
        first = atomicAdd(&progress->placed, (both & 0xffff) | both >> 16 << 32);
    }
    __syncthreads();
    unsigned below = unsigned(first) + (before & 0xffff);
    unsigned above = count - 1 - unsigned(first >> 32) - (before >> 16);
#pragma unroll
    for (unsigned i = 0; i < ITEMS; ++i) {
        if (values[i] < pivot) {
            to[below++] = values[i];
        } else if (values[i] > pivot) {
            to[above--] = values[i];
        }
    }

    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&progress->blocks, 1u) == gridDim.x - 1) {
            __threadfence();
            sort_sides(sort, begin, count, depth, pivot);
        }
    }
}

__device__ unsigned* merge_sort(unsigned* from, unsigned* to, unsigned count) {
    unsigned* source = from;
    unsigned* target = to;
    for (unsigned run = 1; run < count; run *= 2) {
        for (unsigned i = threadIdx.x; i < count; i += THREADS) {
            unsigned value = source[i];
            unsigned own = i & ~(run - 1);
            unsigned other = own ^ run;
            unsigned first = min(other, count);
            unsigned low = first;
            unsigned high = min(other + run, count);
            while (low < high) {
                unsigned middle = (low + high) / 2;
                if (source[middle] < value || (source[middle] == value && other < own)) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            target[min(own, other) + (i - own) + (low - first)] = value;
        }
        __syncthreads();
        unsigned* swapped = source;
        source = target;
        target = swapped;
    }
    return source;
}

extern "C" __global__ void __launch_bounds__(THREADS)
sort_short(Sort sort, unsigned begin, unsigned count, unsigned depth) {
    __shared__ unsigned first[LEAF];
    __shared__ unsigned second[LEAF];
    const unsigned* from = part(sort, begin, depth);
    for (unsigned i = threadIdx.x; i < count; i += THREADS) first[i] = from[i];
    __syncthreads();
    const unsigned* sorted = merge_sort(first, second, count);
    for (unsigned i = threadIdx.x; i < count; i += THREADS) sort.values[begin + i] = sorted[i];
}

extern "C" __global__ void __launch_bounds__(THREADS)
sort_long(Sort sort, unsigned begin, unsigned count, unsigned depth) {
    const unsigned* sorted =
        merge_sort(part(sort, begin, depth), part(sort, begin, depth + 1), count);
    if (sorted != sort.values + begin) {
        for (unsigned i = threadIdx.x; i < count; i += THREADS) sort.values[begin + i] = sorted[i];
    }
}
