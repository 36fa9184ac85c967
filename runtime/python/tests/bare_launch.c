/* Launches through the CUDA driver and nothing else, for the cost of one. The driver's functions are declared here, so that no
   CUDA headers are needed. */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int (*Init)(unsigned);
typedef int (*Retain)(void **context, int device);
typedef int (*SetCurrent)(void *context);
typedef int (*LoadData)(void **module, const void *image);
typedef int (*GetFunction)(void **function, void *module, const char *name);
typedef int (*StreamCreate)(void **stream, unsigned flags);
typedef int (*StreamSynchronize)(void *stream);
typedef int (*Launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                      void *stream, void **parameters, void **extra);

static SetCurrent set_current;
static StreamSynchronize synchronize;
static Launch launch;
static void *context, *function, *stream;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* Loads a cubin, and finds its kernel `name`. Returns the driver's error, or -1 without a driver. */
int load(int device, const void *image, const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *module;
    if (!driver) return -1;
    Init init = (Init)dlsym(driver, "cuInit");
    Retain retain = (Retain)dlsym(driver, "cuDevicePrimaryCtxRetain");
    LoadData load_data = (LoadData)dlsym(driver, "cuModuleLoadData");
    GetFunction get_function = (GetFunction)dlsym(driver, "cuModuleGetFunction");
    StreamCreate stream_create = (StreamCreate)dlsym(driver, "cuStreamCreate");
    set_current = (SetCurrent)dlsym(driver, "cuCtxSetCurrent");
    synchronize = (StreamSynchronize)dlsym(driver, "cuStreamSynchronize");
    launch = (Launch)dlsym(driver, "cuLaunchKernel");
    int error = init(0);
    if (!error) error = retain(&context, device);
    if (!error) error = set_current(context);
    if (!error) error = load_data(&module, image);
    if (!error) error = get_function(&function, module, name);
    /* Not ordered with the default stream, as those of the runtime. */
    if (!error) error = stream_create(&stream, 1);
    return error;
}

/* The mean time of `count` launches of one thread with a pointer and a number, or the negated error of the driver. */
double seconds_per_launch(uint64_t pointer, uint32_t number, int count) {
    void *parameters[] = {&pointer, &number};
    int error = set_current(context);
    double start = now();
    for (int i = 0; i < count && !error; i++)
        error = launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
    double took = now() - start;
    if (!error) error = synchronize(stream);
    return error ? -error : took / count;
}
