// Gridlet's runtime for hosts in C: loads bundles, launches their kernels, waits for them.
//
// Each function that can fail gives a gridlet_status; gridlet_last_error says more of the last failure on the calling
// thread. A handle may be used on any thread, not while another closes it. Handles hold what they need: they may be
// closed in any order. NULL is never closed and never used.

#ifndef GRIDLET_H
#define GRIDLET_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// How a call ended.
typedef enum gridlet_status {
  // As it should.
  GRIDLET_STATUS_OK = 0,
  // An argument is NULL, no UTF-8 text, or means nothing.
  GRIDLET_STATUS_INVALID_ARGUMENT = 1,
  // A driver, a device, a driver call or an image for the device is missing.
  GRIDLET_STATUS_MISSING = 2,
  // The bundle is damaged, foreign or too new, or has no such kernel.
  GRIDLET_STATUS_BAD_BUNDLE = 3,
  // A launch does not fit the kernel or the device; nothing was launched.
  GRIDLET_STATUS_REFUSED = 4,
  // A kernel broke its rules, or lost launches.
  GRIDLET_STATUS_KERNEL_FAILED = 5,
  // Not done in time.
  GRIDLET_STATUS_TIMED_OUT = 6,
  // Anything else that the driver or the system refused.
  GRIDLET_STATUS_FAILED = 7,
  // A bug of Gridlet's.
  GRIDLET_STATUS_PANIC = 8,
} gridlet_status;

// A device.
typedef struct gridlet_device gridlet_device;

// A kernel of a program.
typedef struct gridlet_kernel gridlet_kernel;

// Memory of a device.
typedef struct gridlet_memory gridlet_memory;

// A program, loaded on a device.
typedef struct gridlet_program gridlet_program;

// A stream of a device.
typedef struct gridlet_stream gridlet_stream;

// How a kernel is launched. Zero it first: what is added later means nothing at zero.
typedef struct gridlet_launch_config {
  // Blocks in x, y and z; 0 in y or z is 1.
  uint32_t grid[3];
  // Threads of a block in x, y and z; 0 in y or z is 1.
  uint32_t block[3];
  // Dynamic shared memory of a block, in bytes.
  uint32_t shared_bytes;
  // Blocks of a cluster in x, y and z; 0 in x for none.
  uint32_t cluster[3];
  // Not 0: all blocks run at the same time.
  uint32_t cooperative;
  // Room for what is added later, so that programs need not be built again; refused if it is not 0.
  uint32_t reserved[8];
} gridlet_launch_config;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What went wrong last on this thread; empty if nothing did. Valid until the next call that fails on this thread.
const char *gridlet_last_error(void);

// Opens the device of that name: `cuda:0`, `cpu`, or `auto`, which is the first GPU, or else the processor.
//
// # Safety
// `name` is a text, `device` has room for a pointer.
enum gridlet_status gridlet_device_open(const char *name,
                                        struct gridlet_device **device);

// Sets how many launches of kernels may be pending at once: 2,048 if nobody does. What does not fit is lost, and
// `gridlet_synchronize` tells it. On a GPU it must be set before the first kernel and takes device memory, about 1.2 GB
// for 131,072 on an H200.
//
// # Safety
// `device` is open.
enum gridlet_status gridlet_device_set_pending_launches(const struct gridlet_device *device,
                                                        uint64_t launches);

// Closes a device.
//
// # Safety
// NULL, or an open device that is not used again.
void gridlet_device_close(struct gridlet_device *device);

// Loads the bundle in a file.
//
// # Safety
// `device` is open, `path` is a text, `program` has room for a pointer.
enum gridlet_status gridlet_program_load(const struct gridlet_device *device,
                                         const char *path,
                                         struct gridlet_program **program);

// Loads a bundle in memory.
//
// # Safety
// `device` is open, `bundle` has `bytes` bytes, `program` has room for a pointer.
enum gridlet_status gridlet_program_load_bytes(const struct gridlet_device *device,
                                               const void *bundle,
                                               size_t bytes,
                                               struct gridlet_program **program);

// Unloads a program, once its kernels are closed and have ended.
//
// # Safety
// NULL, or a loaded program that is not used again.
void gridlet_program_unload(struct gridlet_program *program);

// The kernel of that name.
//
// # Safety
// `program` is loaded, `name` is a text, `kernel` has room for a pointer.
enum gridlet_status gridlet_kernel_open(const struct gridlet_program *program,
                                        const char *name,
                                        struct gridlet_kernel **kernel);

// Closes a kernel.
//
// # Safety
// NULL, or an open kernel that is not used again.
void gridlet_kernel_close(struct gridlet_kernel *kernel);

// Makes a stream: what is launched into it runs in that order.
//
// # Safety
// `device` is open, `stream` has room for a pointer.
enum gridlet_status gridlet_stream_create(const struct gridlet_device *device,
                                          struct gridlet_stream **stream);

// Waits for a stream and destroys it.
//
// # Safety
// NULL, or a stream that is not used again.
void gridlet_stream_destroy(struct gridlet_stream *stream);

// Allocates device memory, every byte 0.
//
// # Safety
// `device` is open, `memory` has room for a pointer.
enum gridlet_status gridlet_memory_alloc(const struct gridlet_device *device,
                                         uint64_t bytes,
                                         struct gridlet_memory **memory);

// Waits for the launches that may use device memory, and frees it.
//
// # Safety
// NULL, or memory that is not used again.
void gridlet_memory_free(struct gridlet_memory *memory);

// The device address, for pointer parameters; 0 for NULL.
//
// # Safety
// `memory` is NULL or allocated.
uint64_t gridlet_memory_address(const struct gridlet_memory *memory);

// Waits for earlier launches and copies to all of the memory, which has as many bytes.
//
// # Safety
// `memory` is allocated, nothing else uses it meanwhile, and `from` has `bytes` bytes.
enum gridlet_status gridlet_memory_write(struct gridlet_memory *memory,
                                         const void *from,
                                         size_t bytes);

// Waits for earlier launches and copies all of the memory, which has as many bytes.
//
// # Safety
// `memory` is allocated, and `to` has room for `bytes` bytes.
enum gridlet_status gridlet_memory_read(const struct gridlet_memory *memory,
                                        void *to,
                                        size_t bytes);

// Launches a kernel and does not wait for it. `arguments` has a pointer for each of the kernel's parameters, to a value
// of its type as the device has it: for pointers, to a 64-bit device address.
//
// # Safety
// All handles are open; `arguments` has `count` pointers, each to as many bytes as the parameter has.
enum gridlet_status gridlet_launch(const struct gridlet_stream *stream,
                                   const struct gridlet_kernel *kernel,
                                   const struct gridlet_launch_config *config,
                                   const void *const *arguments,
                                   size_t count);

// Waits for all that was launched into the stream, at most that many milliseconds, and tells what went wrong.
//
// # Safety
// `stream` is open.
enum gridlet_status gridlet_synchronize(const struct gridlet_stream *stream,
                                        uint32_t milliseconds);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GRIDLET_H */
