// A hand-written image for the CPU device that follows runtime/artifact/src/cpu/abi.rs.
#include <stdint.h>
#include <stddef.h>

typedef struct {
    uint32_t thread_idx[3], block_idx[3], block_dim[3], grid_dim[3];
    uint8_t *dynamic_shared;
} Geometry;

typedef void (*Entry)(const Geometry *, const uint8_t *);
typedef void (*BlocksEntry)(Geometry *, const uint8_t *, uint64_t);

typedef struct {
    const char *name;
    Entry thread;
    BlocksEntry blocks, blocks_v3;
    uint32_t parameter_bytes, static_shared_bytes, flags, shared_span_bytes, max_block_threads;
} Kernel;

typedef struct {
    uint8_t *(*shared_base)(void);
    void (*sync_threads)(uint32_t);
    void (*sync_warp)(uint32_t, uint32_t);
    uint64_t (*shuffle)(uint32_t, uint32_t, uint64_t, uint32_t, uint32_t);
    uint32_t (*vote)(uint32_t, uint32_t, uint32_t, uint32_t);
    uint32_t (*active_mask)(void);
    uint32_t (*lane_id)(void);
    uint8_t *(*get_parameter_buffer)(const Kernel *, const uint32_t *, const uint32_t *, uint32_t);
    int32_t (*launch_device)(uint8_t *, uint64_t, uint32_t);
    int32_t (*print)(const char *, const uint8_t *);
    void (*trap)(uint32_t, uint32_t, uint32_t);
    uint64_t (*clock64)(void);
    uint64_t (*global_timer)(void);
    uint32_t (*sm_id)(void);
    void (*check_access)(const void *, uint32_t, uint32_t, uint32_t);
    void (*poll)(uint32_t kind, uint32_t);
} Callbacks;

#ifndef VERSION
#define VERSION 12
#endif
const uint32_t gridlet_cpu_abi_version = VERSION;
const Callbacks *gridlet_cpu_callbacks;
uint32_t counters[8];
// The C library has a variable of the same name; the loader must choose this one.
uint32_t opterr = 77;

#define HOST gridlet_cpu_callbacks
#define LINE (__LINE__)
// abi::POLL_YIELDS
#define YIELDS 1
#define PARAMETERS(type) const type *p = (const type *)parameters; (void)p; (void)g
#define NEEDS_THREADS 1
#define BLOCK_BY_BLOCK 8
#define ADD(counter, n) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED)

extern const Kernel gridlet_cpu_kernels[];
enum { IOTA, REDUCE, SHUFFLES, VOTES, EARLY, LOGGER, LAUNCHER, CHAIN, TREE, BARRIERS, EMPTY, MANY, TRAPPER, WILD, DIVIDE, SPIN,
       DEEP, PRINTER, STUCK, NUMBERS, WORKERS, REFUSED, PARENT, WAITER, MIDDLE, BOUNDED, KERNELS };

static uint32_t number(const Geometry *g) {
    return g->thread_idx[0] + g->block_dim[0] * (g->thread_idx[1] + g->block_dim[1] * g->thread_idx[2]);
}
static uint32_t block_number(const Geometry *g) {
    return g->block_idx[0] + g->grid_dim[0] * (g->block_idx[1] + g->grid_dim[1] * g->block_idx[2]);
}
static uint32_t threads(const Geometry *g) { return g->block_dim[0] * g->block_dim[1] * g->block_dim[2]; }

// ---- plain work
typedef struct { uint32_t *out; uint32_t n; } Iota;
static void iota(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    uint32_t i = block_number(g) * threads(g) + number(g);
    if (i < p->n) p->out[i] += i + 1;
}
static void serially(Entry entry, const Geometry *geometry, const uint8_t *parameters) {
    Geometry g = *geometry;
    for (g.thread_idx[2] = 0; g.thread_idx[2] < g.block_dim[2]; g.thread_idx[2]++)
        for (g.thread_idx[1] = 0; g.thread_idx[1] < g.block_dim[1]; g.thread_idx[1]++)
            for (g.thread_idx[0] = 0; g.thread_idx[0] < g.block_dim[0]; g.thread_idx[0]++) entry(&g, parameters);
}
static void next_block(Geometry *g) {
    for (int axis = 0; axis < 3; axis++) {
        if (++g->block_idx[axis] < g->grid_dim[axis]) return;
        g->block_idx[axis] = 0;
    }
}
// `blocks` entries: one runs all threads of each block, the other makes one call per block.
#define SERIAL(kernel) \
    static void kernel##_blocks(Geometry *g, const uint8_t *parameters, uint64_t blocks) { \
        for (; blocks; blocks--, next_block(g)) serially(kernel, g, parameters); \
    }
#define ONCE(kernel) \
    static void kernel##_blocks(Geometry *g, const uint8_t *parameters, uint64_t blocks) { \
        for (; blocks; blocks--, next_block(g)) kernel(g, parameters); \
    }
SERIAL(iota)

// ---- threads that wait for each other
// Each block sums its threads' numbers in static shared memory and also writes them to dynamic shared memory.
static void reduce(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    uint32_t *sums = (uint32_t *)HOST->shared_base(), *copy = (uint32_t *)g->dynamic_shared;
    uint32_t me = number(g), n = threads(g);
    sums[me] = me + 1;
    copy[me] = 1;
    for (uint32_t half = n / 2; half > 0; half /= 2) {
        HOST->sync_threads(LINE);
        if (me < half) {
            sums[me] += sums[me + half];
            copy[me] += copy[me + half];
        }
    }
    if (me == 0) p->out[block_number(g)] = sums[0] + copy[0];
}
// out[4 * thread ..]: index, up, down, xor.
static void shuffles(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    uint32_t me = number(g), lane = HOST->lane_id(), *out = p->out + 4 * me;
    for (uint32_t mode = 0; mode < 4; mode++)
        out[mode] = HOST->shuffle(mode, p->n, 100 + me, mode == 0 ? 31 - lane : 1, LINE);
    HOST->sync_warp(p->n, LINE);
}
// out[5 * thread ..]: ballot, any, all, active mask; odd lanes vote yes; each half of a warp votes separately.
static void votes(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    uint32_t me = number(g), lane = HOST->lane_id(), *out = p->out + 5 * me;
    out[0] = HOST->vote(0, ~0u, lane & 1, LINE);
    out[1] = HOST->vote(1, ~0u, 0, LINE);
    out[2] = HOST->vote(2, ~0u, 1, LINE);
    out[3] = HOST->active_mask();
    out[4] = lane < 16 ? HOST->vote(0, 0xffff, 1, LINE) : HOST->vote(0, 0xffff0000, lane < 20, LINE);
    HOST->sync_warp(~0u, LINE);
}
// The upper half of the threads ends before the barrier, lane 0 of each warp before the vote.
static void early(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    uint32_t me = number(g);
    if (me >= threads(g) / 2) return;
    HOST->sync_threads(LINE);
    if (HOST->lane_id() == 0) return;
    p->out[me] = HOST->vote(0, ~0u, 1, LINE);
}
typedef struct { uint64_t n; } Count;
static void barriers(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Count);
    for (uint64_t i = 0; i < p->n; i++) HOST->sync_threads(LINE);
}
// Half of the threads wait at a barrier, the others for a vote of the whole warp.
static void stuck(const Geometry *g, const uint8_t *parameters) {
    (void)parameters;
    if (number(g) % 2) HOST->sync_threads(501);
    else HOST->sync_warp(~0u, 502);
}

// ---- launches
typedef struct { uint32_t *log; uint32_t *next; uint32_t value; uint32_t work; } Log;
// Appends its value to the log after some work.
static void logger(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Log);
    for (volatile uint32_t i = 0; i < p->work; i++) {}
    if (number(g) == 0 && block_number(g) == 0) p->log[ADD(p->next, 1)] = p->value;
}
static int32_t launch_into(const Kernel *kernel, uint32_t grid, uint32_t block, uint64_t stream, const void *from) {
    uint32_t grids[3] = {grid, 1, 1}, blocks[3] = {block, 1, 1};
    uint8_t *buffer = HOST->get_parameter_buffer(kernel, grids, blocks, 0);
    if (!buffer) return 69;
    if ((uintptr_t)buffer % 64) return -1;
    for (uint32_t i = 0; i < kernel->parameter_bytes; i++) buffer[i] = ((const uint8_t *)from)[i];
    return HOST->launch_device(buffer, stream, 7);
}
// Logs 1; launches loggers 10.. into its default stream, 20 as its tail, 30 fire and forget.
typedef struct { uint32_t *log; uint32_t *next; uint32_t count; uint32_t mode; } Launcher;
static void launcher(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Launcher);
    Log child = {p->log, p->next, 20, 0};
    if (p->mode & 1) launch_into(&gridlet_cpu_kernels[LOGGER], 1, 32, 3, &child);
    child.value = 21;
    if (p->mode & 1) launch_into(&gridlet_cpu_kernels[LOGGER], 1, 32, 3, &child);
    for (uint32_t i = 0; i < p->count; i++) {
        child.value = 10 + i;
        child.work = 20000 / (i + 1);
        launch_into(&gridlet_cpu_kernels[LOGGER], 2, 32, p->mode & 2 ? 4 : 0, &child);
    }
    p->log[ADD(p->next, 1)] = 1;
}
// counter[0] counts grids, counter[1] failed launches; counter[2] is the last error.
typedef struct { uint32_t *counter; uint64_t left; uint64_t stream; } Chain;
static void chain(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Chain);
    ADD(&p->counter[0], 1);
    Chain next = {p->counter, p->left - 1, p->stream};
    if (p->left && launch_into(&gridlet_cpu_kernels[CHAIN], 1, 1, p->stream, &next)) ADD(&p->counter[1], 1);
}
static void tree(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Chain);
    ADD(&p->counter[0], 1);
    Chain next = {p->counter, p->left - 1, p->stream};
    for (int i = 0; i < 2 && p->left; i++)
        if (launch_into(&gridlet_cpu_kernels[TREE], 1, 1, p->stream, &next)) ADD(&p->counter[1], 1);
}
static void empty(const Geometry *g, const uint8_t *parameters) { (void)g; (void)parameters; }
static void many(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Chain);
    for (uint64_t i = 0; i < p->left; i++) {
        int32_t status = launch_into(&gridlet_cpu_kernels[EMPTY], 1, 32, p->stream, 0);
        if (status) { ADD(&p->counter[1], 1); p->counter[2] = status; }
    }
    ADD(&p->counter[0], 1);
}
// The error of each invalid launch: an empty grid, a block that is too large, too much shared memory, an unknown
// stream, an unknown kernel, an invalid buffer.
static void refused(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    const Kernel *kernel = &gridlet_cpu_kernels[EMPTY];
    p->out[0] = launch_into(kernel, 0, 32, 0, 0);
    p->out[1] = launch_into(kernel, 1, 1025, 0, 0);
    uint32_t one[3] = {1, 1, 1};
    p->out[2] = HOST->launch_device(HOST->get_parameter_buffer(kernel, one, one, 300000), 0, LINE);
    p->out[3] = launch_into(kernel, 1, 1, 99, 0);
    p->out[4] = HOST->launch_device(HOST->get_parameter_buffer((const Kernel *)p, one, one, 0), 0, LINE);
    p->out[5] = HOST->launch_device((uint8_t *)p, 0, LINE);
    p->out[6] = launch_into(&gridlet_cpu_kernels[BOUNDED], 1, 65, 0, 0);
    p->out[7] = launch_into(&gridlet_cpu_kernels[BOUNDED], 1, 64, 0, 0);
    HOST->get_parameter_buffer(kernel, one, one, 0);
}

// Waits for its child; thread 1 waits for thread 0.
static void waiter(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    Log child = {p->out, p->out + 1, 5, 0};
    if (number(g) == 0) {
        launch_into(&gridlet_cpu_kernels[LOGGER], 1, 1, 4, &child);
        while (__atomic_load_n(p->out, __ATOMIC_RELAXED) != 5) HOST->poll(YIELDS, LINE);
        __atomic_store_n(p->out + 2, 7, __ATOMIC_RELAXED);
    } else {
        while (__atomic_load_n(p->out + 2, __ATOMIC_RELAXED) != 7) HOST->poll(YIELDS, LINE);
    }
}

// ---- failures
typedef struct { uint32_t thread; uint32_t block; } Where;
static void trapper(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Where);
    if (number(g) == p->thread && block_number(g) == p->block) HOST->trap(0, LINE, number(g));
    HOST->sync_threads(LINE);
}
typedef struct { uint32_t *address; } Address;
static void wild(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Address);
    if (number(g) == 1) *p->address = 1;
}
static void parent(const Geometry *g, const uint8_t *parameters) {
    (void)parameters, (void)g;
    Address bad = {(uint32_t *)16};
    launch_into(&gridlet_cpu_kernels[WILD], 1, 2, 0, &bad);
}
static void divide(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Where);
    volatile int one = 1, zero = 0;
    volatile int result = one / zero;
    (void)result;
}
static void spin(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Address);
    __atomic_store_n(&counters[6], 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(p->address, __ATOMIC_RELAXED) == 0) {}
}
SERIAL(spin)
__attribute__((noinline)) static uint32_t dive(volatile uint32_t *above, uint32_t depth) {
    volatile uint32_t here[64];
    here[depth % 64] = above[depth % 64] + 1;
    return depth == 0 ? here[0] : dive(here, depth - 1) + here[1];
}
static void deep(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Where);
    volatile uint32_t top[64] = {0};
    counters[7] = dive(top, 100000000);
}
static void printer(const Geometry *g, const uint8_t *parameters) {
    (void)parameters;
    struct { uint32_t thread; double half; } arguments = {number(g), number(g) / 2.0};
    HOST->print("thread %u: %.1f\n", (const uint8_t *)&arguments);
}
// Checks the whole geometry: out[i] = 1 for each thread whose values are all correct.
static void numbers(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    uint32_t i = block_number(g) * threads(g) + number(g);
    int right = g->thread_idx[0] < g->block_dim[0] && g->thread_idx[1] < g->block_dim[1] &&
                g->thread_idx[2] < g->block_dim[2] && g->block_idx[0] < g->grid_dim[0] &&
                g->block_idx[1] < g->grid_dim[1] && g->block_idx[2] < g->grid_dim[2];
    right = right && opterr == 77;
    right = right && number(g) % 32 == HOST->lane_id() && (uintptr_t)HOST->shared_base() % 128 == 0 &&
            (uintptr_t)g->dynamic_shared % 128 == 0 && (uintptr_t)parameters % 64 == 0;
    ADD(&p->out[i], right);
}
// out[0]: maximum number of blocks that ran at the same time.
static void workers(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Iota);
    static uint32_t running;
    uint32_t now = ADD(&running, 1) + 1, most = p->out[0];
    while (now > most && !__atomic_compare_exchange_n(&p->out[0], &most, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    for (volatile uint32_t i = 0; i < 200000; i++) {}
    ADD(&running, -1);
}

ONCE(chain)
ONCE(tree)
ONCE(empty)
ONCE(many)
ONCE(workers)
ONCE(parent)
ONCE(refused)

// ---- distinguishing blocks within one call of a `blocks` entry
typedef struct { uint32_t *out; uint32_t thread, block, how; } Middle;
// Every thread records that it ran, each entry in its own way; one thread ends its block.
static void middle(const Geometry *g, const uint8_t *parameters) {
    PARAMETERS(Middle);
    uint32_t i = block_number(g) * threads(g) + number(g);
    if (block_number(g) == p->block && number(g) == p->thread) {
        if (p->how == 1) HOST->trap(0, LINE, number(g));
        if (p->how == 2) HOST->trap(0, LINE, UINT32_MAX);
        if (p->how == 3) *(volatile uint32_t *)16 = 1;
    }
    p->out[i] += 1;
}
static void middle_blocks(Geometry *g, const uint8_t *parameters, uint64_t blocks) {
    PARAMETERS(Middle);
    for (; blocks; blocks--, next_block(g)) {
        serially(middle, g, parameters);
        p->out[block_number(g) * threads(g)] += 100;
    }
}
static void middle_blocks_v3(Geometry *g, const uint8_t *parameters, uint64_t blocks) {
    PARAMETERS(Middle);
    for (; blocks; blocks--, next_block(g)) {
        serially(middle, g, parameters);
        p->out[block_number(g) * threads(g)] += 1000;
    }
}

const Kernel gridlet_cpu_kernels[] = {
    [IOTA] = {"iota", iota, iota_blocks, 0, 12, 0, 0, 0},
    [REDUCE] = {"reduce", reduce, 0, 0, 12, 4096, NEEDS_THREADS, 4096},
    [SHUFFLES] = {"shuffles", shuffles, 0, 0, 12, 0, NEEDS_THREADS, 0},
    [VOTES] = {"votes", votes, 0, 0, 12, 0, NEEDS_THREADS, 0},
    [EARLY] = {"early", early, 0, 0, 12, 0, NEEDS_THREADS, 0},
    [LOGGER] = {"logger", logger, 0, 0, 24, 0, NEEDS_THREADS, 0},
    [LAUNCHER] = {"launcher", launcher, 0, 0, 24, 0, NEEDS_THREADS, 0},
    [CHAIN] = {"chain", chain, chain_blocks, 0, 24, 0, BLOCK_BY_BLOCK, 0},
    [TREE] = {"tree", tree, tree_blocks, 0, 24, 0, BLOCK_BY_BLOCK, 0},
    [BARRIERS] = {"barriers", barriers, 0, 0, 8, 0, NEEDS_THREADS, 0},
    [EMPTY] = {"empty", empty, empty_blocks, 0, 0, 0, 0, 0},
    [MANY] = {"many", many, many_blocks, 0, 24, 0, BLOCK_BY_BLOCK, 0},
    [TRAPPER] = {"trapper", trapper, 0, 0, 8, 0, NEEDS_THREADS, 0},
    [WILD] = {"wild", wild, 0, 0, 8, 0, NEEDS_THREADS, 0},
    [DIVIDE] = {"divide", divide, 0, 0, 8, 0, NEEDS_THREADS, 0},
    [SPIN] = {"spin", spin, spin_blocks, 0, 8, 0, 0, 0},
    [DEEP] = {"deep", deep, 0, 0, 8, 0, NEEDS_THREADS, 0},
    [PRINTER] = {"printer", printer, 0, 0, 0, 0, NEEDS_THREADS, 0},
    [STUCK] = {"stuck", stuck, 0, 0, 0, 0, NEEDS_THREADS, 0},
    [NUMBERS] = {"numbers", numbers, 0, 0, 12, 0, NEEDS_THREADS, 0},
    [WORKERS] = {"workers", workers, workers_blocks, 0, 12, 0, 0, 0},
    [WAITER] = {"waiter", waiter, 0, 0, 12, 0, NEEDS_THREADS, 0},
    [PARENT] = {"parent", parent, parent_blocks, 0, 0, 0, BLOCK_BY_BLOCK, 0},
    [MIDDLE] = {"middle", middle, middle_blocks, middle_blocks_v3, 20, 0, 0, 0},
    // `#[launch_bounds(64)]`
    [BOUNDED] = {"bounded", empty, empty_blocks, 0, 0, 0, 0, 0, 64},
    [REFUSED] = {"refused", refused, refused_blocks, 0, 12, 0, BLOCK_BY_BLOCK, 0},
};
const uint32_t gridlet_cpu_kernel_count = KERNELS;
