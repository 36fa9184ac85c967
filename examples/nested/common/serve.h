// Shared by the CUDA C++ programs of the suite: reads an input, measures, writes the result. The benchmark starts each
// program once and sends it commands, so that the time of making a context is not measured.
//
//     load PATH        reads an input                                   {"ok":true}
//     run N [PATH]     N runs, each timed; the result goes to PATH      {"ms":[...]}
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

[[noreturn]] inline void fail(const char* what, const char* why) {
    printf("{\"error\":\"%s: %s\"}\n", what, why);
    fflush(stdout);
    exit(1);
}

inline void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) fail(what, cudaGetErrorString(status));
}

#define CHECK(call) check((call), #call)

// As `Input` of the benchmark: numbers and arrays of 32-bit words.
struct Input {
    std::vector<uint64_t> numbers;
    std::vector<std::vector<uint32_t>> arrays;
};

inline Input read_input(const std::string& path) {
    FILE* file = fopen(path.c_str(), "rb");
    if (!file) fail("load", "cannot open the input");
    auto read = [&](void* to, size_t bytes) {
        if (bytes > 0 && fread(to, 1, bytes, file) != bytes) fail("load", "the input is too short");
    };
    auto count = [&] {
        uint64_t n = 0;
        read(&n, sizeof n);
        return n;
    };
    Input input;
    input.numbers.resize(count());
    read(input.numbers.data(), input.numbers.size() * 8);
    input.arrays.resize(count());
    for (auto& array : input.arrays) {
        array.resize(count());
        read(array.data(), array.size() * 4);
    }
    fclose(file);
    return input;
}

// Device memory of `count` values.
template <typename T>
struct Array {
    T* data = nullptr;
    size_t count = 0;

    Array() = default;
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() { cudaFree(data); }

    void resize(size_t new_count) {
        CHECK(cudaFree(data));
        data = nullptr;
        count = new_count;
        CHECK(cudaMalloc(&data, (count > 0 ? count : 1) * sizeof(T)));
    }
    void fill_bytes(int value) { CHECK(cudaMemset(data, value, count * sizeof(T))); }
    template <typename U>
    void copy_from(const std::vector<U>& from) {
        static_assert(sizeof(U) == sizeof(T));
        CHECK(cudaMemcpy(data, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
    template <typename U>
    void assign(const std::vector<U>& from) {
        resize(from.size());
        copy_from(from);
    }
    // As words.
    std::vector<uint32_t> words() const {
        std::vector<uint32_t> to(count * sizeof(T) / 4);
        CHECK(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }
};

struct Program {
    virtual ~Program() = default;
    virtual void load(const Input& input) = 0;
    // Before each run, not timed.
    virtual void reset() {}
    // The work; the caller waits for the device after it.
    virtual void run() = 0;
    virtual std::vector<uint32_t> result() = 0;
};

// The first argument of the program is the pool of pending launches to ask for, or 0.
inline int serve(Program& program, int argc, char** argv) {
    CHECK(cudaFree(nullptr));
    size_t pending = argc > 1 ? strtoull(argv[1], nullptr, 10) : 0;
    if (pending > 0) CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));
    printf("{\"ok\":true}\n");
    fflush(stdout);
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string command, path;
        words >> command;
        if (command == "load") {
            words >> path;
            program.load(read_input(path));
            CHECK(cudaDeviceSynchronize());
            printf("{\"ok\":true}\n");
        } else if (command == "run") {
            size_t runs = 0;
            words >> runs >> path;
            std::string times;
            for (size_t i = 0; i < runs; ++i) {
                program.reset();
                CHECK(cudaDeviceSynchronize());
                auto start = std::chrono::steady_clock::now();
                program.run();
                CHECK(cudaDeviceSynchronize());
                std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
                CHECK(cudaGetLastError());
                times += (i > 0 ? "," : "") + std::to_string(time.count());
            }
            if (!path.empty()) {
                std::vector<uint32_t> result = program.result();
                FILE* file = fopen(path.c_str(), "wb");
                if (!file || fwrite(result.data(), 4, result.size(), file) != result.size()) {
                    fail("run", "cannot write the result");
                }
                fclose(file);
            }
            printf("{\"ms\":[%s]}\n", times.c_str());
        } else {
            fail("command", "unknown");
        }
        fflush(stdout);
    }
    return 0;
}
