/* A host in C, for tests/program.rs: runs `saxpy` of the bundle and checks it, then makes mistakes and prints what is
 * said of them. */
#include <stdio.h>
#include <stdlib.h>

#include "gridlet.h"

#define N 1000

static void need(gridlet_status status) {
    if (status != GRIDLET_STATUS_OK) {
        printf("failed with %d: %s\n", (int)status, gridlet_last_error());
        exit(1);
    }
}

static void refused(gridlet_status status) { printf("%d: %s\n", (int)status, gridlet_last_error()); }

int main(int count, char **arguments) {
    static float x[N], y[N];
    gridlet_device *device;
    gridlet_program *program;
    gridlet_kernel *kernel, *none;
    gridlet_stream *stream;
    gridlet_memory *x_memory, *y_memory;
    gridlet_launch_config config = {{8}, {128}, 0, {0}, 0};
    uint32_t n = N;
    float a = 2;
    if (count != 3) return 2;

    need(gridlet_device_open(arguments[2], &device));
    need(gridlet_program_load(device, arguments[1], &program));
    need(gridlet_kernel_open(program, "saxpy", &kernel));
    need(gridlet_stream_create(device, &stream));
    need(gridlet_memory_alloc(device, sizeof x, &x_memory));
    need(gridlet_memory_alloc(device, sizeof y, &y_memory));
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
    need(gridlet_memory_write(x_memory, x, sizeof x));
    need(gridlet_memory_write(y_memory, y, sizeof y));

    uint64_t x_address = gridlet_memory_address(x_memory), y_address = gridlet_memory_address(y_memory);
    const void *launch[] = {&n, &a, &x_address, &y_address};
    need(gridlet_launch(stream, kernel, &config, launch, 4));
    need(gridlet_synchronize(stream, 60000));
    need(gridlet_memory_read(y_memory, y, sizeof y));
    for (int i = 0; i < N; i++)
        if (y[i] != 1 + 2 * (float)i) return printf("y[%d] is %f\n", i, y[i]), 1;
    printf("right\n");

    refused(gridlet_device_open("gpu", (gridlet_device *[]){0}));
    refused(gridlet_device_open(NULL, (gridlet_device *[]){0}));
    refused(gridlet_program_load_bytes(device, "nothing", 7, (gridlet_program *[]){0}));
    refused(gridlet_kernel_open(program, "other", &none));
    printf("%s\n", none ? "a kernel" : "NULL");
    refused(gridlet_launch(stream, kernel, &config, launch, 3));
    refused(gridlet_launch(stream, NULL, &config, launch, 4));
    launch[2] = NULL;
    refused(gridlet_launch(stream, kernel, &config, launch, 4));
    launch[2] = &x_address;
    config.block[0] = 4096;
    refused(gridlet_launch(stream, kernel, &config, launch, 4));
    refused(gridlet_memory_read(y_memory, y, 4));

    /* The worst order. */
    gridlet_device_close(device);
    gridlet_program_unload(program);
    gridlet_memory_free(x_memory);
    gridlet_memory_free(y_memory);
    gridlet_kernel_close(kernel);
    gridlet_stream_destroy(stream);
    gridlet_stream_destroy(NULL);
    printf("the end\n");
    return 0;
}
