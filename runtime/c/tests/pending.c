/* A C host, for tests/program.rs: a kernel launches more grids than may be pending, and then as many as may be. */
#include <stdio.h>
#include <stdlib.h>

#include "gridlet.h"

static void need(gridlet_status status) {
    if (status != GRIDLET_STATUS_OK) {
        printf("failed with %d: %s\n", (int)status, gridlet_last_error());
        exit(1);
    }
}

/* Launches ten children with this limit of pending launches. */
static void run(const char *bundle, uint64_t pending) {
    gridlet_device *device;
    gridlet_program *program;
    gridlet_kernel *kernel;
    gridlet_stream *stream;
    gridlet_memory *memory;
    gridlet_launch_config config = {{1}, {1}, 0, {0}, 0, {0}};
    uint32_t n = 10, sum;

    need(gridlet_device_open("cpu", &device));
    need(gridlet_device_set_pending_launches(device, pending));
    need(gridlet_device_set_launch_memory(device, 1 << 20)); /* the CPU device needs none */
    need(gridlet_program_load(device, bundle, &program));
    need(gridlet_kernel_open(program, "parent", &kernel));
    need(gridlet_stream_create(device, &stream));
    need(gridlet_memory_alloc(device, sizeof sum, &memory));
    uint64_t address = gridlet_memory_address(memory);
    const void *launch[] = {&n, &address};
    need(gridlet_launch(stream, kernel, &config, launch, 2));
    if (gridlet_synchronize(stream, 60000) != GRIDLET_STATUS_OK) printf("%s\n", gridlet_last_error());
    need(gridlet_memory_read(memory, &sum, sizeof sum));
    printf("%u\n", (unsigned)sum);
    if (gridlet_device_set_pending_launches(device, 64) != GRIDLET_STATUS_OK) printf("%s\n", gridlet_last_error());
    gridlet_memory_free(memory);
    gridlet_stream_destroy(stream);
    gridlet_kernel_close(kernel);
    gridlet_program_unload(program);
    gridlet_device_close(device);
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    run(arguments[1], 4);
    run(arguments[1], 16);
    if (gridlet_device_set_pending_launches(NULL, 1) != GRIDLET_STATUS_OK) printf("%s\n", gridlet_last_error());
    if (gridlet_device_set_launch_memory(NULL, 1) != GRIDLET_STATUS_OK) printf("%s\n", gridlet_last_error());
    return 0;
}
