/* A CUDA driver without a GPU, for tests/fake_driver.rs: it prints the calls that it gets. Device memory is the
 * host's, and a launch only prints its parameters. Environment variables choose how it behaves; built with
 * WITHOUT_GREEN it is a driver from before green contexts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle;
typedef unsigned long long address;

static int record[4];

static int setting(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

static int say(const char *call) {
    printf("%s\n", call);
    fflush(stdout);
    return 0;
}

int cuDriverGetVersion(int *version) { *version = setting("FAKE_VERSION", 12020); return 0; }
int cuInit(unsigned flags) { return setting("FAKE_INIT", 0); }
int cuGetErrorName(int code, const char **text) { *text = "CUDA_ERROR_FAKE"; return 0; }
int cuGetErrorString(int code, const char **text) { *text = "a fake error"; return 0; }

#ifndef WITHOUT_DEVICES
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) { strncpy(name, "Fake GPU", length); return 0; }
int cuDeviceGetUuid_v2(char uuid[16], int device) { memset(uuid, 0xab, 16); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 75: *value = 9; break;      /* compute capability, major */
    case 76: *value = 0; break;      /* minor */
    case 16: *value = 132; break;    /* SMs */
    case 8: *value = 49152; break;   /* shared memory of a block */
    case 97: *value = 232448; break; /* with opting in */
    default: *value = 1024;
    }
    return 0;
}

int cuDevicePrimaryCtxRetain(handle *context, int device) { *context = (handle)0x100; return say("cuDevicePrimaryCtxRetain"); }
int cuDevicePrimaryCtxRelease_v2(int device) { return say("cuDevicePrimaryCtxRelease"); }
int cuCtxPushCurrent_v2(handle context) { return 0; }
int cuCtxPopCurrent_v2(handle *context) { return 0; }
int cuCtxGetLimit(size_t *value, int limit) { *value = 2048; return 0; }
int cuCtxSetLimit(int limit, size_t value) { printf("cuCtxSetLimit %d %zu\n", limit, value); fflush(stdout); return 0; }

int cuMemAlloc_v2(address *to, size_t bytes) { *to = (address)(uintptr_t)malloc(bytes); return say("cuMemAlloc"); }
int cuMemFree_v2(address at) { free((void *)(uintptr_t)at); return say("cuMemFree"); }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, handle stream) { memcpy((void *)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, handle stream) { memcpy(to, (void *)(uintptr_t)from, bytes); return 0; }
int cuMemsetD8Async(address to, unsigned char value, size_t bytes, handle stream) {
    memset((void *)(uintptr_t)to, value, bytes);
    return to == (address)(uintptr_t)record ? say("cuMemsetD8Async (lost-launch record)") : 0;
}

/* The service stream is the first, 0x200: always done. The others are as the test wants them. */
static uintptr_t streams = 0x200;
int cuStreamCreate(handle *stream, unsigned flags) { *stream = (handle)streams++; return say("cuStreamCreate"); }
int cuStreamDestroy_v2(handle stream) { return say(stream == (handle)0x200 ? "cuStreamDestroy (service)" : "cuStreamDestroy"); }
static int polls; /* until what was launched is done */
int cuStreamQuery(handle stream) {
    if (stream == (handle)0x200) return 0;
    if (polls && --polls == 0) say("cuStreamQuery: all launches are done");
    return polls ? 600 : setting("FAKE_QUERY", 0);
}

int cuLibraryLoadData(handle *library, const char *code, const int *options, void **values, unsigned count, void *a, void *b, unsigned c) {
    int result = setting("FAKE_LOAD", 0);
    if (result)
        snprintf(values[0], (size_t)values[1], "ptxas fake, line 1; error : no such instruction\n");
    *library = (handle)0x300;
    say("cuLibraryLoadData");
    return result;
}
int cuLibraryUnload(handle library) { return say("cuLibraryUnload"); }
int cuLibraryGetKernel(handle *kernel, handle library, const char *name) { *kernel = (handle)0x400; return 0; }
int cuLibraryGetGlobal(address *at, size_t *bytes, handle library, const char *name) {
    *at = (address)(uintptr_t)record;
    *bytes = setting("FAKE_RECORD_BYTES", sizeof record);
    return 0;
}
int cuKernelGetFunction(handle *function, handle kernel) { *function = kernel; return 0; }
int cuKernelGetAttribute(int *value, int attribute, handle kernel, int device) { *value = attribute == 0 ? 1024 : 0; return 0; }
int cuKernelSetAttribute(int attribute, int value, handle kernel, int device) { printf("cuKernelSetAttribute %d %d\n", attribute, value); fflush(stdout); return 0; }

struct config { unsigned grid[3], block[3], shared; handle stream; void *attributes; unsigned count; };
int cuLaunchKernelEx(const struct config *config, handle kernel, void **parameters, void **extra) {
    printf("cuLaunchKernelEx (%u, %u, %u) (%u, %u, %u) %u:", config->grid[0], config->grid[1], config->grid[2],
           config->block[0], config->block[1], config->block[2], config->shared);
    if (extra && extra[0] == (void *)1 && extra[2] == (void *)2 && extra[4] == (void *)0)
        for (size_t i = 0; i < *(size_t *)extra[3]; i++)
            printf(" %02x", ((unsigned char *)extra[1])[i]);
    say("");
    polls = setting("FAKE_POLLS", 0);
    if (setting("FAKE_LOST", 0)) {
        record[0] += setting("FAKE_LOST", 0);
        record[1] = 69; record[2] = 1; record[3] = 42;
    }
    return 0;
}
#endif

#ifndef WITHOUT_GREEN
/* `lose` of tests/gpu/kernels.ptx. */
int cuKernelGetParamInfo(handle kernel, size_t index, size_t *offset, size_t *size) {
    if (index >= 3) return 1;
    *offset = 4 * index; *size = setting("FAKE_PARAMETER_BYTES", 4);
    return 0;
}
struct resource { unsigned type; unsigned char padding[92]; unsigned sms, minimum, alignment; unsigned char rest[36]; };
int cuDeviceGetDevResource(int device, struct resource *resource, unsigned type) {
    *resource = (struct resource){.type = 1, .sms = 132, .minimum = 8, .alignment = 8};
    return 0;
}
int cuDevSmResourceSplitByCount(struct resource *result, unsigned *groups, const struct resource *input, struct resource *rest, unsigned flags, unsigned minimum) {
    printf("cuDevSmResourceSplitByCount %u of %u\n", minimum, input->sms);
    *result = *input;
    result->sms = (minimum + 7) / 8 * 8;
    *groups = 1;
    fflush(stdout);
    return 0;
}
static unsigned granted;
int cuDevResourceGenerateDesc(handle *description, struct resource *resources, unsigned count) { granted = resources->sms; *description = (handle)0x500; return 0; }
int cuGreenCtxCreate(handle *green, handle description, int device, unsigned flags) { *green = (handle)0x600; return say("cuGreenCtxCreate"); }
int cuGreenCtxDestroy(handle green) { return say("cuGreenCtxDestroy"); }
int cuGreenCtxGetDevResource(handle green, struct resource *resource, unsigned type) { *resource = (struct resource){.type = 1, .sms = granted}; return 0; }
int cuGreenCtxStreamCreate(handle *stream, handle green, unsigned flags, int priority) { *stream = (handle)0x700; return say("cuGreenCtxStreamCreate"); }
int cuCtxFromGreenCtx(handle *context, handle green) { *context = (handle)0x601; return 0; }
#endif
