constexpr unsigned ADD = 0, SUBTRACT = 1, MULTIPLY = 2, XOR = 3, SHIFT = 4, CONSTANT = 5, LESS = 6, JUMP = 7, LOAD = 8;

extern "C" __global__ void bytecode(
    unsigned n, unsigned steps, const unsigned* __restrict__ program, const unsigned* __restrict__ data,
    unsigned* __restrict__ results) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned registers[8] = {}, at = 0;
    registers[0] = i;
    for (unsigned step = 0; step < steps; ++step) {
        unsigned word = program[at++], operation = word >> 24, target = word >> 16 & 7;
        unsigned a = registers[word >> 8 & 7], b = registers[word & 7];
        if (operation == ADD) {
            registers[target] = a + b;
        } else if (operation == SUBTRACT) {
            registers[target] = a - b;
        } else if (operation == MULTIPLY) {
            registers[target] = a * b;
        } else if (operation == XOR) {
            registers[target] = a ^ b;
        } else if (operation == SHIFT) {
            registers[target] = a >> (word & 31);
        } else if (operation == CONSTANT) {
            registers[target] = word & 0xffff;
        } else if (operation == LESS) {
            registers[target] = a < b;
        } else if (operation == JUMP) {
            if (registers[target] != 0) at = word & 0xff;
        } else if (operation == LOAD) {
            registers[target] = data[a & 1023];
        } else {
            break;
        }
    }
    results[i] = registers[0] ^ registers[1];
}
