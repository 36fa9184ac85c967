/* A C host, for tests/program.rs: runs `saxpy` of the bundle and checks the result, then makes mistakes and prints the
 * error messages. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gridlet.h"

#define N 1000

static void need(gridlet_status status) {
    if (status != GRIDLET_STATUS_OK) {
        printf("failed with %d: %s\n", (int)status, gridlet_last_error());
        exit(1);
    }
}

static void refused(gridlet_status status) { printf("%d: %s\n", (int)status, gridlet_last_error()); }

static void *elsewhere(void *device) {
    printf("another thread: \"%s\"\n", gridlet_last_error());
    refused(gridlet_stream_create(device, NULL));
    return NULL;
}

int main(int count, char **arguments) {
    static float x[N], y[N];
    gridlet_device *device;
    gridlet_program *program, *other;
    gridlet_kernel *kernel, *none;
    gridlet_stream *stream;
    gridlet_memory *x_memory, *y_memory, *empty;
    gridlet_launch_config config = {{8}, {128}, 0, {0}, 0, {0}};
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
    if (y[0] != 1) printf("y was written\n");
    refused(gridlet_memory_write(y_memory, y, (size_t)-1));
    refused(gridlet_memory_write(y_memory, NULL, sizeof y));
    refused(gridlet_memory_read(y_memory, NULL, sizeof y));
    refused(gridlet_memory_read(NULL, y, sizeof y));
    refused(gridlet_program_load_bytes(device, "nothing", (size_t)-1, &other));
    refused(gridlet_program_load_bytes(device, NULL, 0, &other));
    refused(gridlet_program_load_bytes(device, NULL, 7, &other));
    if (gridlet_memory_alloc(device, UINT64_MAX, &empty) == GRIDLET_STATUS_OK || empty) printf("memory without end\n");
    refused(gridlet_launch(stream, kernel, &config, NULL, 4));
    refused(gridlet_launch(stream, kernel, NULL, launch, 4));
    config.block[0] = 0;
    refused(gridlet_launch(stream, kernel, &config, launch, 4));
    config.reserved[7] = 1;
    refused(gridlet_launch(stream, kernel, &config, launch, 4));
    refused(gridlet_synchronize(NULL, 0));

    /* Empty memory. */
    need(gridlet_memory_alloc(device, 0, &empty));
    need(gridlet_memory_write(empty, NULL, 0));
    need(gridlet_memory_read(empty, NULL, 0));
    gridlet_memory_free(empty);
    printf("address of nothing: %d\n", (int)gridlet_memory_address(NULL));

    /* Each thread has its own message, valid until its next failure. */
    const char *text = gridlet_last_error();
    char before[200];
    strncpy(before, text, sizeof before - 1);
    pthread_t thread;
    if (pthread_create(&thread, NULL, elsewhere, device) || pthread_join(thread, NULL)) return 3;
    need(gridlet_synchronize(stream, 60000));
    printf("%s\n", strcmp(before, text) || strcmp(before, gridlet_last_error()) ? "changed" : "the same text");

    /* The worst order: handles are closed before the handles that use them. */
    gridlet_device_close(device);
    gridlet_device_close(NULL);
    gridlet_program_unload(program);
    gridlet_program_unload(NULL);
    gridlet_memory_free(NULL);
    gridlet_kernel_close(NULL);
    gridlet_memory_free(x_memory);
    gridlet_memory_free(y_memory);
    gridlet_kernel_close(kernel);
    gridlet_stream_destroy(stream);
    gridlet_stream_destroy(NULL);
    printf("the end\n");
    return 0;
}
