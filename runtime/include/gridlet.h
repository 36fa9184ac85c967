// Gridlet's runtime for C hosts: loads bundles, launches their kernels, and waits for them.
//
// Each function that can fail returns a gridlet_status; gridlet_last_error describes the last failure on the calling
// thread. A handle may be used on any thread, but not while another thread closes it. Handles keep the objects that they
// depend on alive and may be closed in any order. Closing NULL does nothing; other functions refuse it.

#ifndef GRIDLET_H
#define GRIDLET_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The result of a call.
typedef enum gridlet_status {
  // Success.
  GRIDLET_STATUS_OK = 0,
  // An argument is NULL, not UTF-8, or invalid.
  GRIDLET_STATUS_INVALID_ARGUMENT = 1,
  // A driver, a device, a driver call or an image for the device is missing.
  GRIDLET_STATUS_MISSING = 2,
  // The bundle is damaged, invalid or too new, or has no such kernel.
  GRIDLET_STATUS_BAD_BUNDLE = 3,
  // A launch exceeds a limit of the kernel or the device; nothing was launched.
  GRIDLET_STATUS_REFUSED = 4,
  // A kernel faulted, failed a check, or lost launches.
  GRIDLET_STATUS_KERNEL_FAILED = 5,
  // The work did not finish in time.
  GRIDLET_STATUS_TIMED_OUT = 6,
  // Any other failure of the driver or the system.
  GRIDLET_STATUS_FAILED = 7,
  // A bug in Gridlet.
  GRIDLET_STATUS_PANIC = 8,
} gridlet_status;

// A device.
typedef struct gridlet_device gridlet_device;

// A kernel of a program.
typedef struct gridlet_kernel gridlet_kernel;

// Memory of a device.
typedef struct gridlet_memory gridlet_memory;

// A program loaded on a device.
typedef struct gridlet_program gridlet_program;

// A stream of a device.
typedef struct gridlet_stream gridlet_stream;

// The configuration of a launch. Zero it first: fields added later have no effect when zero.
typedef struct gridlet_launch_config {
  // Blocks in x, y and z; 0 in y or z means 1.
  uint32_t grid[3];
  // Threads per block in x, y and z; 0 in y or z means 1.
  uint32_t block[3];
  // Dynamic shared memory per block, in bytes.
  uint32_t shared_bytes;
  // Blocks per cluster in x, y and z; 0 in x means no clusters.
  uint32_t cluster[3];
  // Nonzero for a cooperative launch: all blocks run at the same time.
  uint32_t cooperative;
  // Reserved for later fields, so that programs need not be rebuilt; must be 0.
  uint32_t reserved[8];
} gridlet_launch_config;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The message of the last failure on this thread, with a hint on a second line where there is one; empty if there was
// none. Valid until the next failing call on this thread.
const char *gridlet_last_error(void);

// Opens a device by name: `cuda:0`, `cpu`, or `auto` (the first GPU, or else the CPU).
//
// # Safety
// `name` must be a string, and `device` must have room for a pointer.
enum gridlet_status gridlet_device_open(const char *name, struct gridlet_device **device);

// Sets how many launches by kernels may be pending at once; the default is 2,048. Further launches are lost, and
// `gridlet_synchronize` reports them. On a GPU the limit must be set before the first kernel and takes device
// memory, about 1.2 GB for 131,072 on an H200.
//
// # Safety
// `device` must be open.
enum gridlet_status gridlet_device_set_pending_launches(const struct gridlet_device *device,
                                                        uint64_t launches);

// Sets the size in bytes of each stream's launch memory, from its next launch on; the default is 64 MiB. A program built
// for resident launches keeps the grids that its kernels launched there until they end. Launches that find it full are
// lost, and `gridlet_synchronize` reports them. Other programs, and the CPU device, need none.
//
// # Safety
// `device` must be open.
enum gridlet_status gridlet_device_set_launch_memory(const struct gridlet_device *device,
                                                     uint64_t bytes);

// Closes a device.
//
// # Safety
// `device` must be NULL, or open and not used again.
void gridlet_device_close(struct gridlet_device *device);

// Loads a bundle from a file.
//
// # Safety
// `device` must be open, `path` must be a string, and `program` must have room for a pointer.
enum gridlet_status gridlet_program_load(const struct gridlet_device *device,
                                         const char *path,
                                         struct gridlet_program **program);

// Loads a bundle from memory.
//
// # Safety
// `device` must be open, `bundle` must have `bytes` bytes, and `program` must have room for a pointer.
enum gridlet_status gridlet_program_load_bytes(const struct gridlet_device *device,
                                               const void *bundle,
                                               size_t bytes,
                                               struct gridlet_program **program);

// Unloads a program, once its kernels are closed and have ended.
//
// # Safety
// `program` must be NULL, or loaded and not used again.
void gridlet_program_unload(struct gridlet_program *program);

// Looks up a kernel by name.
//
// # Safety
// `program` must be loaded, `name` must be a string, and `kernel` must have room for a pointer.
enum gridlet_status gridlet_kernel_open(const struct gridlet_program *program,
                                        const char *name,
                                        struct gridlet_kernel **kernel);

// Closes a kernel.
//
// # Safety
// `kernel` must be NULL, or open and not used again.
void gridlet_kernel_close(struct gridlet_kernel *kernel);

// Creates a stream: its work runs in launch order.
//
// # Safety
// `device` must be open, and `stream` must have room for a pointer.
enum gridlet_status gridlet_stream_create(const struct gridlet_device *device,
                                          struct gridlet_stream **stream);

// Waits for a stream and destroys it.
//
// # Safety
// `stream` must be NULL, or a stream that is not used again.
void gridlet_stream_destroy(struct gridlet_stream *stream);

// Allocates zeroed device memory.
//
// # Safety
// `device` must be open, and `memory` must have room for a pointer.
enum gridlet_status gridlet_memory_alloc(const struct gridlet_device *device,
                                         uint64_t bytes,
                                         struct gridlet_memory **memory);

// Waits for the launches that may use the memory, and frees it.
//
// # Safety
// `memory` must be NULL, or memory that is not used again.
void gridlet_memory_free(struct gridlet_memory *memory);

// The device address, for pointer parameters; 0 for NULL.
//
// # Safety
// `memory` must be NULL or allocated.
uint64_t gridlet_memory_address(const struct gridlet_memory *memory);

// Waits for earlier launches and overwrites all of the memory; `bytes` must be its length.
//
// # Safety
// `memory` must be allocated and not used elsewhere during the call, and `from` must have `bytes` bytes.
enum gridlet_status gridlet_memory_write(struct gridlet_memory *memory,
                                         const void *from,
                                         size_t bytes);

// Waits for earlier launches and reads all of the memory; `bytes` must be its length.
//
// # Safety
// `memory` must be allocated, and `to` must have room for `bytes` bytes.
enum gridlet_status gridlet_memory_read(const struct gridlet_memory *memory,
                                        void *to,
                                        size_t bytes);

// Launches a kernel without waiting for it. `arguments` has one pointer for each of the kernel's parameters, to a
// value in the device's layout; for a pointer parameter, to a 64-bit device address.
//
// # Safety
// All handles must be open; `arguments` must have `count` pointers, each to as many bytes as the parameter has.
enum gridlet_status gridlet_launch(const struct gridlet_stream *stream,
                                   const struct gridlet_kernel *kernel,
                                   const struct gridlet_launch_config *config,
                                   const void *const *arguments,
                                   size_t count);

// Waits for everything launched into the stream, at most `milliseconds`, and reports failures.
//
// # Safety
// `stream` must be open.
enum gridlet_status gridlet_synchronize(const struct gridlet_stream *stream, uint32_t milliseconds);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GRIDLET_H */
