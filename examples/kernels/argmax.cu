constexpr unsigned FULL = 0xffffffff;

extern "C" __global__ void argmax(
    unsigned rows, unsigned columns, const float* __restrict__ from, unsigned* __restrict__ places) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* values = from + row * columns;
    float best = values[lane];
    unsigned place = lane;
    for (unsigned i = lane + 32; i < columns; i += 32) {
        if (values[i] > best) {
            best = values[i];
            place = i;
        }
    }
    for (unsigned offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_down_sync(FULL, best, offset);
        unsigned other_place = __shfl_down_sync(FULL, place, offset);
        if (other > best || (other == best && other_place < place)) {
            best = other;
            place = other_place;
        }
    }
    if (lane == 0) places[row] = place;
}
