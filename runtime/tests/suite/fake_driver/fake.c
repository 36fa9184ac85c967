/* A CUDA driver without a GPU, for the tests in this folder: it prints the calls that it receives. Device memory is
 * host memory, and a launch only prints its parameters. Environment variables control its behavior; built with
 * WITHOUT_GREEN it is a driver from before green contexts.
 *
 * FAKE_FAIL=call:code makes a call always fail, FAKE_GONE=n:code every call after the first n; with FAKE_TALLY=1 the
 * process prints the handles left at exit, with 2 also the number of calls. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *handle;
typedef unsigned long long address;

static int record[4];
/* Where the first lost launch is noted. */
static address notice;

static int setting(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

static int say(const char *call) {
    printf("%s\n", call);
    fflush(stdout);
    return 0;
}

static int calls;

/* The code with which this call must fail; 0 to succeed. */
static int fails(const char *call) {
    const char *one = getenv("FAKE_FAIL"), *gone = getenv("FAKE_GONE");
    size_t length = strlen(call);
    calls++;
    if (one && !strncmp(one, call, length) && one[length] == ':') return atoi(one + length + 1);
    if (gone && calls > atoi(gone)) return atoi(strchr(gone, ':') + 1);
    return 0;
}
#define FAILS do { int failed = fails(__func__); if (failed) return failed; } while (0)

/* Live handles. */
enum kind { CONTEXT, STREAM, EVENT, MEMORY, HOST, REGISTERED, LIBRARY, GREEN, KINDS };
static const char *const kinds[KINDS] = {"context", "stream", "event", "memory", "host memory", "registered memory", "library", "green context"};
static struct { enum kind kind; uintptr_t handle; } live[4096];
static int living;

static void made(enum kind kind, uintptr_t handle) {
    if (living < 4096) { live[living].kind = kind; live[living++].handle = handle; }
}

static void gone(enum kind kind, uintptr_t handle) {
    for (int i = 0; i < living; i++)
        if (live[i].kind == kind && live[i].handle == handle) { live[i] = live[--living]; return; }
    printf("> %s destroyed that does not live\n", kinds[kind]);
}

__attribute__((destructor)) static void tally(void) {
    int count[KINDS] = {0};
    if (!getenv("FAKE_TALLY") || !calls) return; /* libcuda.so and libcuda.so.1 are separate libraries here */
    for (int i = 0; i < living; i++) count[live[i].kind]++;
    if (setting("FAKE_TALLY", 0) > 1) printf("> calls %d\n", calls);
    printf("> left:");
    for (int i = 0; i < KINDS; i++) if (count[i]) printf(" %d %s", count[i], kinds[i]);
    printf("\n");
    fflush(stdout);
}

int cuDriverGetVersion(int *version) { FAILS; *version = setting("FAKE_VERSION", 12020); return 0; }
int cuInit(unsigned flags) { FAILS; return setting("FAKE_INIT", 0); }
int cuGetErrorName(int code, const char **text) { *text = "CUDA_ERROR_FAKE"; return 0; }
int cuGetErrorString(int code, const char **text) { *text = "a fake error"; return 0; }

#ifndef WITHOUT_DEVICES
int cuDeviceGetCount(int *count) { FAILS; *count = setting("FAKE_GPUS", 1); return 0; }
int cuDeviceGet(int *device, int ordinal) { FAILS; *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) { FAILS; strncpy(name, "Fake GPU", length); return 0; }
int cuDeviceGetUuid_v2(char uuid[16], int device) { FAILS; memset(uuid, 0xab, 16); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { FAILS; *bytes = 1 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { FAILS;
    switch (attribute) {
    case 75: *value = setting("FAKE_MAJOR", 9); break; /* compute capability */
    case 76: *value = setting("FAKE_MINOR", 0); break;
    case 16: *value = 132; break;    /* SMs */
    case 8: *value = 49152; break;   /* shared memory per block */
    case 97: *value = 232448; break; /* with opt-in */
    case 5: *value = setting("FAKE_GRID", 1024); break; /* blocks per grid in x */
    default: *value = 1024;
    }
    return 0;
}

int cuDevicePrimaryCtxRetain(handle *context, int device) { FAILS; *context = (handle)(0x100 + (uintptr_t)device); made(CONTEXT, 0x100 + device); return say("cuDevicePrimaryCtxRetain"); }
int cuDevicePrimaryCtxRelease_v2(int device) { FAILS; gone(CONTEXT, 0x100 + device); return say("cuDevicePrimaryCtxRelease"); }
static int is_reset;
int cuDevicePrimaryCtxReset_v2(int device) { FAILS; say("cuDevicePrimaryCtxReset"); is_reset = 1;
    for (int i = 0; i < living;) if (live[i].kind != CONTEXT) live[i] = live[--living]; else i++;
    return setting("FAKE_RESET", 0); }
static size_t taken; /* by limits */
int cuMemGetInfo_v2(size_t *free, size_t *total) { FAILS; *free = (1 << 29) - taken; *total = 1 << 30; return is_reset ? setting("FAKE_AFTER_RESET", 0) : 0; }
static __thread handle current[64];
static __thread int depth; /* of `current`; its last entry is the thread's context */
/* A green context is current to only one thread at a time. */
static uintptr_t green_thread;
static void look(void) {
    uintptr_t this = (uintptr_t)&depth;
    if (current[depth] == (handle)0x601) {
        if (green_thread && green_thread != this) { printf("> two threads have a green context current\n"); fflush(stdout); }
        green_thread = this;
    } else if (green_thread == this) green_thread = 0;
}
static int chatty(const char *call) { return setting("FAKE_CONTEXTS", 0) ? say(call) : 0; }
int cuCtxPushCurrent_v2(handle context) { FAILS; if (depth < 63) current[++depth] = context; look(); return chatty("cuCtxPushCurrent"); }
int cuCtxPopCurrent_v2(handle *context) { FAILS; *context = current[depth]; if (depth) depth--; look(); return chatty("cuCtxPopCurrent"); }
int cuCtxGetCurrent(handle *context) { FAILS; *context = current[depth]; return 0; }
int cuCtxSetCurrent(handle context) { FAILS; current[depth] = context; return say("cuCtxSetCurrent"); }
int cuCtxSynchronize(void) { FAILS; return say("cuCtxSynchronize"); }
int cuCtxGetLimit(size_t *value, int limit) { FAILS; *value = 2048; return 0; }
int cuCtxSetLimit(int limit, size_t value) { FAILS; taken += value; printf("cuCtxSetLimit %d %zu\n", limit, value); fflush(stdout); return 0; }

/* Memories are named by the order of their allocation. */
static address memories[64];
static int allocated;
static int memory_number(address at) {
    for (int i = allocated; i-- > 0;) if (memories[i % 64] == at) return i + 1;
    return 0;
}
int cuMemAlloc_v2(address *to, size_t bytes) { FAILS; *to = (address)(uintptr_t)malloc(bytes); memories[allocated++ % 64] = *to; made(MEMORY, *to); return say("cuMemAlloc"); }
int cuMemAllocAsync(address *to, size_t bytes, handle stream) { FAILS; *to = (address)(uintptr_t)malloc(bytes); made(MEMORY, *to); return say("cuMemAllocAsync"); }
int cuMemFreeAsync(address at, handle stream) { FAILS; gone(MEMORY, at); free((void *)(uintptr_t)at); return say("cuMemFreeAsync"); }
int cuMemAllocManaged(address *to, size_t bytes, unsigned flags) { FAILS;
    printf("cuMemAllocManaged %zu, flags %u\n", bytes, flags); fflush(stdout);
    *to = (address)(uintptr_t)malloc(bytes);
    made(MEMORY, *to);
    return 0;
}
static int polls; /* until the launched work is done */
static void works(void) { polls = setting("FAKE_POLLS", 0); }
struct location { unsigned kind; int id; };
static address first_managed; /* addresses are printed relative to the first that is advised */
static long since(address at) { if (!first_managed) first_managed = at; return (long)(at - first_managed); }
#ifndef WITHOUT_LOCATIONS
int cuMemAdvise_v2(address at, size_t bytes, unsigned advice, struct location where) { FAILS;
    printf("cuMemAdvise_v2 +%ld %zu: %u, {%u, %d}\n", since(at), bytes, advice, where.kind, where.id); fflush(stdout);
    return 0;
}
int cuMemPrefetchAsync_v2(address at, size_t bytes, struct location where, unsigned flags, handle stream) { FAILS;
    works();
    printf("cuMemPrefetchAsync_v2 +%ld %zu: {%u, %d}, flags %u\n", since(at), bytes, where.kind, where.id, flags); fflush(stdout);
    return 0;
}
#endif
int cuMemAdvise(address at, size_t bytes, unsigned advice, int device) { FAILS;
    printf("cuMemAdvise +%ld %zu: %u, %d\n", since(at), bytes, advice, device); fflush(stdout);
    return 0;
}
int cuMemPrefetchAsync(address at, size_t bytes, int device, handle stream) { FAILS;
    printf("cuMemPrefetchAsync +%ld %zu: %d\n", since(at), bytes, device); fflush(stdout);
    return 0;
}
/* Read mostly; preferred location device 0; accessed by the host and device 0; prefetched to NUMA node 3. */
static const int range_values[] = {0, 1, 0, 0, -2, 1, 0, 3, 3};
int cuMemRangeGetAttribute(int *data, size_t bytes, unsigned attribute, address at, size_t count) { FAILS;
    printf("cuMemRangeGetAttribute %u, %zu bytes\n", attribute, bytes); fflush(stdout);
    data[0] = range_values[attribute];
    for (size_t i = 1; i < bytes / 4; i++) data[i] = attribute == 3 && i == 1 ? -1 : -2;
    return 0;
}
int cuMemRangeGetAttributes(int **data, size_t *bytes, unsigned *attributes, size_t number, address at, size_t count) { FAILS;
    printf("cuMemRangeGetAttributes of %zu\n", number);
    for (size_t i = 0; i < number; i++) cuMemRangeGetAttribute(data[i], bytes[i], attributes[i], at, count);
    return 0;
}
int cuPointerGetAttribute(unsigned long long *data, unsigned attribute, address at) { FAILS;
    printf("cuPointerGetAttribute %u\n", attribute); fflush(stdout);
    switch (attribute) {
    case 2: *(unsigned *)data = 2; break;
    case 6: case 8: *(char *)data = 1; break;
    case 13: *(char *)data = 0; break;
    case 9: *(int *)data = -2; break;
    case 5: data[0] = 0x1122; ((unsigned *)data)[2] = 0x33; break;
    case 14: data[0] = 9; break;
    case 16: *(unsigned *)data = 3; break;
    case 21: return 1;
    default: data[0] = 1000 + attribute;
    }
    return 0;
}
int cuPointerGetAttributes(unsigned number, unsigned *attributes, unsigned long long **data, address at) { FAILS;
    printf("cuPointerGetAttributes of %u\n", number);
    for (unsigned i = 0; i < number; i++) if (attributes[i] == 21 && setting("FAKE_NO_DECOMPRESSION", 0)) return 1;
    if (at != 1)
        for (unsigned i = 0; i < number; i++) cuPointerGetAttribute(data[i], attributes[i], at);
    return 0;
}
int cuPointerSetAttribute(const unsigned *value, unsigned attribute, address at) { FAILS; printf("cuPointerSetAttribute %u: %u\n", attribute, *value); fflush(stdout); return 0; }
int cuMemHostAlloc(void **to, size_t bytes, unsigned flags) { FAILS; printf("cuMemHostAlloc %zu, flags %u\n", bytes, flags); fflush(stdout); *to = malloc(bytes); made(HOST, (uintptr_t)*to); return 0; }
int cuMemFreeHost(void *at) { FAILS; gone(HOST, (uintptr_t)at); free(at); return say("cuMemFreeHost"); }
int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags) { FAILS; printf("cuMemHostRegister %zu, flags %u\n", bytes, flags); fflush(stdout); if (bytes) made(REGISTERED, (uintptr_t)at); return bytes ? 0 : 1; }
int cuMemHostUnregister(void *at) { FAILS; gone(REGISTERED, (uintptr_t)at); return say("cuMemHostUnregister"); }
int cuMemHostGetDevicePointer_v2(address *to, void *at, unsigned flags) { FAILS; *to = setting("FAKE_NO_POINTER", 0) ? 0 : (address)(uintptr_t)at + 0x1000; return setting("FAKE_NO_POINTER", 0); }
int cuMemHostGetFlags(unsigned *flags, void *at) { FAILS; *flags = 4; return 0; }
int cuMemcpyAsync(address to, address from, size_t bytes, handle stream) { FAILS; memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes); return say("cuMemcpyAsync"); }
int cuMemFree_v2(address at) { FAILS; gone(MEMORY, at); free((void *)(uintptr_t)at); return say("cuMemFree"); }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, handle stream) { FAILS; memcpy((void *)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, handle stream) { FAILS;
    if (notice && from == (address)(uintptr_t)record) say("cuMemcpyDtoHAsync (lost-launch record)");
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}
int cuMemsetD8Async(address to, unsigned char value, size_t bytes, handle stream) { FAILS;
    memset((void *)(uintptr_t)to, value, bytes);
    if (bytes >= 4096) { printf("cuMemsetD8Async %p: %zu bytes of memory %d to %d\n", stream, bytes, memory_number(to), value); fflush(stdout); }
    return to == (address)(uintptr_t)record ? say("cuMemsetD8Async (lost-launch record)") : 0;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) { FAILS; printf("cuDeviceCanAccessPeer %d of %d\n", peer, device); fflush(stdout); *can = device < peer; return 0; }
int cuDeviceGetP2PAttribute(int *value, unsigned attribute, int from, int to) { FAILS; printf("cuDeviceGetP2PAttribute %u, %d of %d\n", attribute, to, from); fflush(stdout); *value = attribute == 3 ? 0 : attribute; return 0; }
int cuCtxEnablePeerAccess(handle peer, unsigned flags) { FAILS; printf("cuCtxEnablePeerAccess %p to %p, flags %u\n", peer, current[depth], flags); fflush(stdout); return setting("FAKE_PEER", 0); }
int cuCtxDisablePeerAccess(handle peer) { FAILS; printf("cuCtxDisablePeerAccess %p to %p\n", peer, current[depth]); fflush(stdout); return setting("FAKE_PEER", 0); }

/* The service stream is the first, 0x200, and always done. The test controls the others. */
static uintptr_t streams = 0x200;
int cuStreamCreateWithPriority(handle *stream, unsigned flags, int priority) { FAILS;
    *stream = (handle)streams++;
    made(STREAM, (uintptr_t)*stream);
    if (priority) { printf("cuStreamCreateWithPriority %d\n", priority); fflush(stdout); return 0; }
    return say("cuStreamCreate");
}
/* FAKE_CAPTURE is the id of the capture of every stream. */
int cuStreamGetCaptureInfo_v2(handle stream, int *status, unsigned long long *id, void *graph, void *dependencies, size_t *count) { FAILS;
    *id = setting("FAKE_CAPTURE", 0);
    *status = *id != 0;
    return 0;
}
int cuThreadExchangeStreamCaptureMode(int *mode) { FAILS;
    static __thread int now;
    int before = now;
    now = *mode; *mode = before;
    printf("cuThreadExchangeStreamCaptureMode %d\n", now); fflush(stdout);
    return 0;
}
int cuStreamCreate(handle *stream, unsigned flags) { FAILS; *stream = (handle)streams++; made(STREAM, (uintptr_t)*stream); return say("cuStreamCreate (cudarc)"); }
int cuStreamSynchronize(handle stream) { FAILS; return say("cuStreamSynchronize"); }
int cuStreamGetPriority(handle stream, int *priority) { FAILS; *priority = -3; return 0; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { FAILS; *least = 0; *greatest = -5; return 0; }
int cuStreamWaitEvent(handle stream, handle event, unsigned flags) { FAILS; return say("cuStreamWaitEvent"); }
static uintptr_t events = 0x8000;
int cuEventCreate(handle *event, unsigned flags) { FAILS; *event = (handle)events++; made(EVENT, (uintptr_t)*event); return 0; }
int cuEventDestroy_v2(handle event) { FAILS; gone(EVENT, (uintptr_t)event); return 0; }
int cuEventElapsedTime(float *ms, handle start, handle end) { FAILS; *ms = 0.5f; return 0; }
static int event_polls;
int cuEventRecord(handle event, handle stream) { FAILS; return 0; }
int cuEventQuery(handle event) { FAILS; return event_polls++ < setting("FAKE_EVENT_POLLS", 0) ? 600 : 0; }
int cuStreamDestroy_v2(handle stream) { FAILS; gone(STREAM, (uintptr_t)stream); return say(stream == (handle)0x200 ? "cuStreamDestroy (service)" : "cuStreamDestroy"); }
static double due; /* or the time at which it is done, with FAKE_TAKES in seconds */
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static int lives(enum kind kind, handle handle) {
    for (int i = 0; i < living; i++) if (live[i].kind == kind && live[i].handle == (uintptr_t)handle) return 1;
    return 0;
}
int cuStreamQuery(handle stream) { FAILS;
    if (stream == (handle)(uintptr_t)setting("FAKE_SLOW_STREAM", 0)) {
        usleep(200000);
        if (!lives(STREAM, stream)) { printf("> a stream was destroyed while it was asked\n"); fflush(stdout); }
    }
    if (stream == (handle)0x200) return 0;
    if (polls && due) { if (now() >= due) polls = 1; else polls = 2; }
    if (polls && --polls == 0) say("cuStreamQuery: all launches are done");
    return polls ? 600 : is_reset ? 0 : setting("FAKE_QUERY", 0);
}

/* The last image loaded; not copied. */
static const char *image;
int cuLibraryLoadData(handle *library, const char *code, const int *options, void **values, unsigned count, const int *flags, void **flag_values, unsigned flag_count) { FAILS;
    /* CU_LIBRARY_BINARY_IS_PRESERVED */
    if (flag_count != 1 || flags[0] != 1 || flag_values[0] != (void *)1) printf("> the image is copied\n");
    image = code;
    int result = setting("FAKE_LOAD", 0);
    if (result)
        snprintf(values[0], (size_t)values[1], "ptxas fake, line 1; error : no such instruction\n");
    static uintptr_t libraries = 0x300;
    *library = (handle)libraries++;
    if (!result) made(LIBRARY, (uintptr_t)*library);
    say("cuLibraryLoadData");
    return result;
}
int cuLibraryUnload(handle library) { FAILS; gone(LIBRARY, (uintptr_t)library); return say("cuLibraryUnload"); }
/* The entry of resident launches. */
#define RESIDENT (handle)0x401
int cuLibraryGetKernel(handle *kernel, handle library, const char *name) { FAILS;
    if (!strstr(image, name)) printf("> no kernel `%s` in the image\n", name);
    *kernel = strcmp(name, "__gridlet_resident") ? (handle)0x400 : RESIDENT;
    return 0;
}
int cuLibraryGetGlobal(address *at, size_t *bytes, handle library, const char *name) { FAILS;
    if (setting("FAKE_CONTEXTS", 0)) say("cuLibraryGetGlobal");
    if (!strcmp(name, "__gridlet_lost_launch_notice")) {
        *at = (address)(uintptr_t)&notice;
        *bytes = setting("FAKE_NOTICE_BYTES", sizeof notice);
        return 0;
    }
    *at = (address)(uintptr_t)record;
    *bytes = setting("FAKE_RECORD_BYTES", sizeof record);
    return 0;
}
int cuKernelGetFunction(handle *function, handle kernel) { FAILS; *function = kernel; return 0; }
static int carveout = -1;
int cuKernelGetAttribute(int *value, int attribute, handle kernel, int device) { FAILS;
    static const int values[] = {1024, 0, 3, 16, 40, 75, 90, 0, 4096, 0, 0, 0, 0, 0, 1, 2};
    *value = attribute == 9 ? carveout : attribute == 1 && kernel == RESIDENT ? 1000 : values[attribute];
    return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, handle kernel, int threads, size_t shared, unsigned flags) { FAILS;
    printf("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags %d, %zu, flags %u\n", threads, shared, flags); fflush(stdout);
    *blocks = 2048 / threads;
    return 0;
}
int cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, handle kernel, void *function, size_t shared, int limit) { FAILS;
    printf("cuOccupancyMaxPotentialBlockSize %s, %zu, at most %d\n", function ? "by a function" : "fixed", shared, limit); fflush(stdout);
    *blocks = 264; *threads = 768;
    return 0;
}
int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, handle kernel, int blocks, int threads) { FAILS;
    printf("cuOccupancyAvailableDynamicSMemPerBlock %d, %d\n", blocks, threads); fflush(stdout);
    *bytes = 232448 / blocks;
    return 0;
}
int cuKernelSetAttribute(int attribute, int value, handle kernel, int device) { FAILS; if (attribute == 9) carveout = value; printf("cuKernelSetAttribute %d %d\n", attribute, value); fflush(stdout); return 0; }

struct attribute { unsigned id; char padding[4]; union { unsigned dim[3]; int number; char bytes[64]; }; };
struct config { unsigned grid[3], block[3], shared; handle stream; struct attribute *attributes; unsigned count; };
static void print_attributes(const struct config *config) {
    for (unsigned i = 0; i < config->count; i++) {
        const struct attribute *attribute = &config->attributes[i];
        printf(attribute->id == 4 ? " [cluster %u, %u, %u]" : attribute->id == 2 ? " [cooperative %u]" : attribute->id == 8 ? " [priority %d]" : " [attribute?]",
               attribute->dim[0], attribute->dim[1], attribute->dim[2]);
    }
}
int cuOccupancyMaxPotentialClusterSize(int *blocks, handle kernel, const struct config *config) { FAILS;
    printf("cuOccupancyMaxPotentialClusterSize (%u, %u, %u) %u", config->block[0], config->block[1], config->block[2], config->shared);
    print_attributes(config); say("");
    *blocks = 16;
    return 0;
}
int cuOccupancyMaxActiveClusters(int *clusters, handle kernel, const struct config *config) { FAILS;
    printf("cuOccupancyMaxActiveClusters (%u, %u, %u) %u", config->block[0], config->block[1], config->block[2], config->shared);
    print_attributes(config); say("");
    *clusters = 66;
    return 0;
}
/* A queue of FAKE_QUEUE launches for each channel, like the driver's: a launch into a full queue waits until the word at
 * the kernel's first parameter reaches the second parameter, or forever. In round 1 the driver itself has already put
 * one entry into the first channel. */
static void wait_in_queue(handle stream, void **extra) {
    static int channels[8][32] = {[1] = {1}};
    const char *scale = getenv("CUDA_SCALE_LAUNCH_QUEUES");
    int queue = setting("FAKE_QUEUE", 0) * (scale ? atof(scale) : 1);
    int channel = ((uintptr_t)stream - 0x201) % setting("CUDA_DEVICE_MAX_CONNECTIONS", 8);
    const address *parameters = extra[1];
    const volatile address *flag = (const volatile address *)(uintptr_t)(parameters[0] - 0x1000);
    address round = parameters[1];
    if (*flag >= round || __atomic_fetch_add(&channels[round % 8][channel], 1, __ATOMIC_SEQ_CST) < queue) return;
    while (*flag < round || setting("FAKE_STUCK", 0)) usleep(1000);
}

/* The entry's parameters: the launch memory, 14 words, the root grid's parameters. */
static void print_resident(const struct config *config, void **extra) {
    const unsigned char *parameters = extra[1];
    printf(" resident in %p, memory %d:", config->stream, memory_number(*(address *)parameters));
    for (int i = 0; i < 14; i++) printf(" %u", ((unsigned *)(parameters + 8))[i]);
    printf(";");
    for (size_t i = 64; i < *(size_t *)extra[3]; i++) printf(" %02x", parameters[i]);
}

int cuLaunchKernelEx(const struct config *config, handle kernel, void **parameters, void **extra) { FAILS;
    if (setting("FAKE_QUEUE", 0)) { wait_in_queue(config->stream, extra); return 0; }
    if (setting("FAKE_QUIET", 0)) { polls = setting("FAKE_POLLS", 0); return 0; }
    printf("cuLaunchKernelEx (%u, %u, %u) (%u, %u, %u) %u:", config->grid[0], config->grid[1], config->grid[2],
           config->block[0], config->block[1], config->block[2], config->shared);
    print_attributes(config);
    if (kernel == RESIDENT) print_resident(config, extra);
    else if (extra && extra[0] == (void *)1 && extra[2] == (void *)2 && extra[4] == (void *)0)
        for (size_t i = 0; i < *(size_t *)extra[3]; i++)
            printf(" %02x", ((unsigned char *)extra[1])[i]);
    say("");
    polls = setting("FAKE_POLLS", 0);
    if (setting("FAKE_TAKES", 0)) { due = now() + setting("FAKE_TAKES", 0); polls = 2; }
    /* A kernel that could note a loss only loses launches if its first parameter is not 0. */
    if (setting("FAKE_LOST", 0) && !(notice && !*(int *)extra[1])) {
        /* The device's address of host memory: see `cuMemHostGetDevicePointer`. */
        if (notice && !record[0]) *(int *)(uintptr_t)(notice - 0x1000) = 1;
        record[0] += setting("FAKE_LOST", 0);
        record[1] = 69; record[2] = 1; record[3] = 42;
    }
    return 0;
}
#endif

#ifndef WITHOUT_GREEN
/* `lose` of tests/gpu/kernels.ptx. */
int cuKernelGetParamInfo(handle kernel, size_t index, size_t *offset, size_t *size) { FAILS;
    if (kernel == RESIDENT) {
        if (index >= 15 + setting("FAKE_WORDS", 2)) return 1;
        *size = index == 0 || index > 14 ? 8 : 4;
        *offset = index == 0 ? 0 : index > 14 ? 64 + 8 * (index - 15) : 8 + 4 * (index - 1);
        return 0;
    }
    if (index >= setting("FAKE_PARAMETERS", 3)) return 1;
    *size = setting("FAKE_PARAMETER_BYTES", 4); *offset = *size * index;
    return 0;
}
struct resource {
    unsigned type; unsigned char padding[92];
    union { struct { unsigned sms, minimum, alignment, flags; }; struct { int device; unsigned limit, scope; }; unsigned char rest[40]; };
    struct resource *next;
};
#ifdef WITHOUT_13_0 /* Such a driver does not report its split sizes. */
static const struct resource sms = {.type = 1, .sms = 132};
#else
static const struct resource sms = {.type = 1, .sms = 132, .minimum = 8, .alignment = 8};
#endif
/* Workqueues came with 13.1; older drivers return CUDA_ERROR_INVALID_RESOURCE_TYPE. */
static int resource(struct resource *to, unsigned type) {
    if (type == 1) { *to = sms; return 0; }
#ifdef WITH_13_1
    if (type == 1000) { *to = (struct resource){.type = 1000, .limit = 8}; return 0; }
    if (type == 10000) { *to = (struct resource){.type = 10000}; memset(to->rest, 0x77, 40); return 0; }
#endif
    return 914;
}
int cuDeviceGetDevResource(int device, struct resource *to, unsigned type) { FAILS; return resource(to, type); }
int cuCtxGetDevResource(handle context, struct resource *to, unsigned type) { FAILS; say("cuCtxGetDevResource"); return resource(to, type); }
static unsigned rounded(unsigned minimum) { return minimum ? (minimum + 7) / 8 * 8 : 8; }
int cuDevSmResourceSplitByCount(struct resource *result, unsigned *groups, const struct resource *input, struct resource *rest, unsigned flags, unsigned minimum) { FAILS;
    unsigned size = rounded(minimum), most = input->sms / size;
    printf("cuDevSmResourceSplitByCount %u of %u, flags %u%s\n", minimum, input->sms, flags, result ? "" : ", a query");
    fflush(stdout);
    if (!result) { *groups = most; return 0; }
    if (*groups > most) *groups = most;
    for (unsigned i = 0; i < *groups; i++) { result[i] = *input; result[i].sms = size; }
    if (rest && input->sms > *groups * size) { *rest = *input; rest->sms = input->sms - *groups * size; }
    return 0;
}
#ifdef WITH_13_1
struct group { unsigned sms, coscheduled, preferred, flags, reserved[12]; };
int cuDevSmResourceSplit(struct resource *result, unsigned count, const struct resource *input, struct resource *rest, unsigned flags, struct group *groups) { FAILS;
    unsigned left = input->sms;
    printf("cuDevSmResourceSplit of %u, flags %u%s\n", input->sms, flags, result ? "" : ", to discover");
    for (unsigned i = 0; i < count; i++) {
        unsigned reserved = 0;
        for (int j = 0; j < 12; j++) reserved |= groups[i].reserved[j];
        printf("cu   group {%u, %u, %u, %u}, reserved %u\n", groups[i].sms, groups[i].coscheduled, groups[i].preferred, groups[i].flags, reserved);
        if (!groups[i].coscheduled) groups[i].coscheduled = 8;
        if (!groups[i].preferred) groups[i].preferred = groups[i].coscheduled;
        if (!groups[i].sms) groups[i].sms = left / groups[i].coscheduled * groups[i].coscheduled;
        left -= groups[i].sms;
        if (result) { result[i] = *input; result[i].sms = groups[i].sms; result[i].alignment = groups[i].coscheduled; }
    }
    fflush(stdout);
    if (rest && left) { *rest = *input; rest->sms = left; }
    return 0;
}
int cuStreamGetDevResource(handle stream, struct resource *to, unsigned type) { FAILS; say("cuStreamGetDevResource"); return resource(to, type); }
#endif
static unsigned granted;
int cuDevResourceGenerateDesc(handle *description, struct resource *resources, unsigned count) { FAILS;
    granted = 0;
    for (unsigned i = 0; i < count; i++) {
        if (resources[i].type == 1) granted += resources[i].sms;
        if (count > 1 && resources[i].type == 1) printf("cuDevResourceGenerateDesc: %u SMs\n", resources[i].sms);
        if (resources[i].type == 1000) printf("cuDevResourceGenerateDesc: workqueues, limit %u, scope %u\n", resources[i].limit, resources[i].scope);
        if (resources[i].type == 10000) printf("cuDevResourceGenerateDesc: workqueues 0x%x\n", resources[i].rest[39]);
    }
    fflush(stdout);
    *description = (handle)0x500;
    return 0;
}
int cuGreenCtxCreate(handle *green, handle description, int device, unsigned flags) { FAILS; *green = (handle)0x600; made(GREEN, 0x600); return say("cuGreenCtxCreate"); }
int cuGreenCtxDestroy(handle green) { FAILS; gone(GREEN, 0x600); return say("cuGreenCtxDestroy"); }
int cuGreenCtxGetDevResource(handle green, struct resource *to, unsigned type) { FAILS;
    int result = resource(to, type);
    if (type == 1) to->sms = granted;
    return result;
}
#ifndef WITHOUT_13_0
int cuGreenCtxGetId(handle green, unsigned long long *id) { FAILS; *id = 7; return 0; }
#endif
int cuGreenCtxRecordEvent(handle green, handle event) { FAILS; return say("cuGreenCtxRecordEvent"); }
int cuGreenCtxWaitEvent(handle green, handle event) { FAILS; return say("cuGreenCtxWaitEvent"); }
int cuStreamGetGreenCtx(handle stream, handle *green) { FAILS; *green = (uintptr_t)stream >> 8 == 7 ? (handle)0x600 : 0; return 0; }
int cuGreenCtxStreamCreate(handle *stream, handle green, unsigned flags, int priority) { FAILS;
    static uintptr_t green_streams = 0x700;
    *stream = (handle)green_streams++;
    made(STREAM, (uintptr_t)*stream);
    if (priority) { printf("cuGreenCtxStreamCreate, priority %d\n", priority); fflush(stdout); return 0; }
    return say("cuGreenCtxStreamCreate");
}
int cuCtxFromGreenCtx(handle *context, handle green) { FAILS; *context = (handle)0x601; return 0; }
#endif
