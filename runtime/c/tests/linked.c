/* A host in C and C++ with the program in itself, for tests/program.rs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linked.h"

static void need(enum gridlet_status status) {
    if (status != GRIDLET_STATUS_OK) {
        printf("failed with %d: %s\n", (int)status, gridlet_last_error());
        exit(1);
    }
}

int main(int count, char **arguments) {
    struct gridlet_device *device;
    struct gridlet_program *program;
    struct gridlet_kernel *take;
    struct gridlet_stream *stream;
    struct gridlet_memory *marks, *sums;
    struct gridlet_launch_config config;
    uint32_t marked[2] = {0, 0};
    float summed[2] = {0, 0};
    uint16_t numbers[3] = {1, 2, 3};
    float half[3] = {0.25f, 0.5f, 0.75f};
    linked_Item item;
    if (count != 2) return 2;

    need(gridlet_device_open(arguments[1], &device));
    need(linked_load(device, &program));
    need(linked_open_take(program, &take));
    need(gridlet_stream_create(device, &stream));
    need(gridlet_memory_alloc(device, sizeof marked, &marks));
    need(gridlet_memory_alloc(device, sizeof summed, &sums));
    need(gridlet_memory_write(marks, marked, sizeof marked));
    need(gridlet_memory_write(sums, summed, sizeof summed));

    memset(&item, 0, sizeof item);
    item.color[3] = 4;
    item.class_ = 7;
    item.weights[2] = 2;
    item.near[1] = 10;
    item.pairs[1].high = 100;
    item.at = gridlet_memory_address(marks);
    memset(&config, 0, sizeof config);
    config.grid[0] = config.block[0] = 1;
    need(linked_launch_take(stream, take, &config, item, numbers, half, true, gridlet_memory_address(sums)));
    need(gridlet_synchronize(stream, 60000));
    need(gridlet_memory_read(marks, marked, sizeof marked));
    need(gridlet_memory_read(sums, summed, sizeof summed));
    printf("%g %g %u %u\n", summed[0], summed[1], marked[0], marked[1]);

    gridlet_memory_free(marks);
    gridlet_memory_free(sums);
    gridlet_stream_destroy(stream);
    gridlet_kernel_close(take);
    gridlet_program_unload(program);
    gridlet_device_close(device);
    return 0;
}
