//! The callbacks, descriptors and numbers that the compiler's CPU images and the CPU device share.
//!
//! An image is a shared object. It exports [`VERSION_SYMBOL`], [`TABLE_SYMBOL`], [`KERNELS_SYMBOL`] and
//! [`KERNEL_COUNT_SYMBOL`], and the program's exported globals (the lost-launch record) by their names. The
//! loader checks the version, stores the address of a [`Callbacks`] in the table variable, and finds the
//! kernels. Everything else an image needs of its host goes through the table, so it has no undefined symbols
//! but those of the C and maths library.
//!
//! The compiler takes names, numbers and orders from here; this file is their only definition.

use std::ffi::{c_char, c_void};

/// Version of everything in this file; an image of another version is refused.
pub const ABI_VERSION: u32 = 5;

/// A constant `u32`: the [`ABI_VERSION`] that the image was compiled for.
pub const VERSION_SYMBOL: &str = "gridlet_cpu_abi_version";
/// A variable `*const Callbacks`, null until the loader sets it.
pub const TABLE_SYMBOL: &str = "gridlet_cpu_callbacks";
/// An array of [`KernelDescriptor`], in the order of the source.
pub const KERNELS_SYMBOL: &str = "gridlet_cpu_kernels";
/// A constant `u32`: how many.
pub const KERNEL_COUNT_SYMBOL: &str = "gridlet_cpu_kernel_count";

/// In checked images, an array of [`VariableDescriptor`].
pub const VARIABLES_SYMBOL: &str = "gridlet_cpu_variables";
/// In checked images, a constant `u32`: how many.
pub const VARIABLE_COUNT_SYMBOL: &str = "gridlet_cpu_variable_count";

/// Alignment of a block's static and of its dynamic shared memory, in bytes.
pub const SHARED_ALIGNMENT: usize = 128;

/// The geometry of one thread, as the layout pass lays out the compiler's `geometry` struct.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// `thread_idx`: x, y, z.
    pub thread_idx: [u32; 3],
    /// `block_idx`.
    pub block_idx: [u32; 3],
    /// `block_dim`, in threads.
    pub block_dim: [u32; 3],
    /// `grid_dim`, in blocks.
    pub grid_dim: [u32; 3],
    /// First byte of the block's dynamic shared memory.
    pub dynamic_shared: *mut u8,
}

/// An entry point: the geometry, and the packed parameter buffer, laid out as the manifest says and aligned to
/// 64 bytes. The image only reads both.
pub type Entry = unsafe extern "C-unwind" fn(geometry: *const Geometry, parameters: *const u8);

/// An entry point for that many consecutive blocks, in the order of x, then y, then z, from the geometry's
/// `block_idx` on: runs all threads of each, one after another in the same order. Ignores the geometry's `thread_idx`,
/// and says in its `block_idx` which block it runs.
pub type BlocksEntry =
    unsafe extern "C-unwind" fn(geometry: *mut Geometry, parameters: *const u8, blocks: u64);

/// The level of x86-64 processors (System V ABI, "Micro-Architecture Levels") that
/// [`KernelDescriptor::blocks_v3`] is for: those with AVX2.
pub const LEVEL_V3: &str = "x86-64-v3";

/// A kernel of an image. Its address is what the device-side launch calls a kernel.
#[repr(C)]
pub struct KernelDescriptor {
    /// NUL-terminated.
    pub name: *const c_char,
    /// Runs one thread.
    pub thread: Entry,
    /// Runs whole blocks. Null if [`NEEDS_THREADS`] is set.
    pub blocks: Option<BlocksEntry>,
    /// The same with the same results, for processors of [`LEVEL_V3`]; null if the image has none.
    pub blocks_v3: Option<BlocksEntry>,
    /// Bytes of the parameter buffer.
    pub parameter_bytes: u32,
    /// Bytes of static shared memory of a block: all shared variables of the image.
    pub static_shared_bytes: u32,
    /// A set of the flags below.
    pub flags: u32,
    /// Bytes of a block's memory in which the shared variables lie: in a checked image more than
    /// `static_shared_bytes`, with unused bytes behind each.
    pub shared_span_bytes: u32,
}

/// A variable of a checked image that kernels may reach by pointers.
#[repr(C)]
pub struct VariableDescriptor {
    /// NUL-terminated, as the source has it.
    pub name: *const c_char,
    /// Of statics.
    pub address: *const u8,
    /// Of shared variables, in the block's static shared memory; of parameters, in their buffer.
    pub offset: u64,
    /// Its size. Behind a static are [`RED_ZONE_BYTES`] that nothing uses.
    pub bytes: u64,
    /// One of the kinds below.
    pub kind: u32,
    /// Of parameters: the position of the kernel in the table of kernels.
    pub kernel: u32,
}

/// [`VariableDescriptor::kind`]: a `shared` variable.
pub const VARIABLE_SHARED: u32 = 0;
/// A `static`.
pub const VARIABLE_STATIC: u32 = 1;
/// A parameter of a kernel, or one of the numbers that it is made of.
pub const VARIABLE_PARAMETER: u32 = 2;

/// In checked images and on devices with a checker, bytes that are left unused behind a region that kernels may
/// overrun.
pub const RED_ZONE_BYTES: usize = 256;
/// The same behind a local variable that pointers may reach.
pub const LOCAL_RED_ZONE_BYTES: usize = 32;

/// Threads of a block wait for each other (barriers, warp operations, loops that wait for a write): each needs a
/// stack of its own.
pub const NEEDS_THREADS: u32 = 1;
/// An `assert` in a function that is not told its geometry: it must say which thread failed, so the device must
/// know which one runs, and calls [`KernelDescriptor::thread`] for each.
pub const NAMES_THREADS: u32 = 4;
/// The image was compiled with `--check`: memory accesses call [`Callbacks::check_access`], loops call
/// [`Callbacks::poll`].
pub const CHECKED: u32 = 2;
/// Threads ask the device for what belongs to their block (launches, streams): [`KernelDescriptor::blocks`] is
/// called for one block at a time.
pub const BLOCK_BY_BLOCK: u32 = 8;

/// A source position: file in the high 8 bits, line in the low 24; 0 is unknown.
pub type Location = u32;

/// [`Callbacks::check_access`]: a read.
pub const ACCESS_READ: u32 = 0;
/// A write.
pub const ACCESS_WRITE: u32 = 1;
/// An atomic read-modify-write.
pub const ACCESS_ATOMIC: u32 = 2;
/// An atomic load; with [`ACCESS_ACQUIRE`] if it acquires.
pub const ACCESS_ATOMIC_LOAD: u32 = 3;
/// An atomic store; with [`ACCESS_RELEASE`] if it releases.
pub const ACCESS_ATOMIC_STORE: u32 = 4;
/// A fence of any scope; the address is null and the bytes are 0.
pub const ACCESS_FENCE: u32 = 5;
/// `malloc` gave that address (null if there is no memory) for so many bytes, or as many as 32 bits can say.
pub const ACCESS_MALLOC: u32 = 6;
/// That address is about to be given to `free`; the bytes are 0.
pub const ACCESS_FREE: u32 = 7;
/// Flag of a read or write: it copies or fills bytes, whatever they are. Its address needs no alignment, and bytes
/// that nobody wrote are copied as such.
pub const ACCESS_BYTES: u32 = 0x40;
/// Flag of an atomic: it acquires.
pub const ACCESS_ACQUIRE: u32 = 0x10;
/// Flag of an atomic: it releases.
pub const ACCESS_RELEASE: u32 = 0x20;

/// [`Callbacks::shuffle`]: which lane to read from, as the compiler's `ShuffleMode` in its order.
pub const SHUFFLE_INDEX: u32 = 0;
/// The lane that many below.
pub const SHUFFLE_UP: u32 = 1;
/// The lane that many above.
pub const SHUFFLE_DOWN: u32 = 2;
/// Own lane XOR the operand.
pub const SHUFFLE_XOR: u32 = 3;

/// [`Callbacks::vote`]: one bit per lane.
pub const VOTE_BALLOT: u32 = 0;
/// 1 if any lane's predicate is true.
pub const VOTE_ANY: u32 = 1;
/// 1 if every lane's is.
pub const VOTE_ALL: u32 = 2;

/// [`Callbacks::trap`]: a function that is not told its geometry.
pub const THREAD_UNKNOWN: u32 = u32::MAX;
/// [`Callbacks::trap`]: `trap()`.
pub const TRAP_EXPLICIT: u32 = 0;
/// An integer division by zero.
pub const TRAP_DIVISION: u32 = 1;
/// Code that the compiler takes for unreachable was reached.
pub const TRAP_UNREACHABLE: u32 = 2;

/// [`Callbacks::poll`]: the loop may wait for another thread to write, so the others shall get their turn.
pub const POLL_YIELDS: u32 = 1;
/// In checked images: the loop may wait for ever.
pub const POLL_WAITS: u32 = 2;
/// In checked images: the loop ends by itself, whatever others write, though a loop in it may wait.
pub const POLL_ENDS: u32 = 4;

/// What an image can ask of its host. All functions are called on the worker thread that runs the block, within
/// the block's or the thread's coroutine. None returns by unwinding; those that end the grid never return.
#[repr(C)]
pub struct Callbacks {
    /// First byte of the block's static shared memory, aligned to [`SHARED_ALIGNMENT`].
    pub shared_base: unsafe extern "C-unwind" fn() -> *mut u8,
    /// `sync_threads()`
    pub sync_threads: unsafe extern "C-unwind" fn(Location),
    /// `sync_warp(mask)`
    pub sync_warp: unsafe extern "C-unwind" fn(mask: u32, Location),
    /// `shfl…`: mode, mask, the value in the low bits, the lane operand. Gives the value read.
    pub shuffle: unsafe extern "C-unwind" fn(u32, u32, u64, u32, Location) -> u64,
    /// `ballot`, `any`, `all`: mode, mask, predicate (0 or 1).
    pub vote: unsafe extern "C-unwind" fn(u32, u32, u32, Location) -> u32,
    /// `active_mask()`: the lanes of the warp that have not ended.
    pub active_mask: unsafe extern "C-unwind" fn() -> u32,
    /// `lane_id()`
    pub lane_id: unsafe extern "C-unwind" fn() -> u32,
    /// `cudaGetParameterBufferV2`: the descriptor, three `u32` of the grid, three of the block, dynamic shared
    /// bytes. Null if the pool of pending launches is full.
    pub get_parameter_buffer: unsafe extern "C-unwind" fn(
        *const KernelDescriptor,
        *const [u32; 3],
        *const [u32; 3],
        u32,
    ) -> *mut u8,
    /// `cudaLaunchDeviceV2`: the buffer and the stream handle (0 default, 3 tail, 4 fire and forget). Gives a
    /// `cudaError`.
    pub launch_device: unsafe extern "C-unwind" fn(*mut u8, u64, Location) -> i32,
    /// `vprintf`: the format, the packed arguments. Gives the number of arguments.
    pub printf: unsafe extern "C-unwind" fn(*const c_char, *const u8) -> i32,
    /// Ends the grid with an error. `thread`: the thread's number in its block, for blocks that run as a loop,
    /// or [`THREAD_UNKNOWN`]. Does not return.
    pub trap: unsafe extern "C-unwind" fn(kind: u32, Location, thread: u32) -> !,
    /// `clock64()`
    pub clock64: unsafe extern "C-unwind" fn() -> u64,
    /// `global_timer()`, in nanoseconds.
    pub global_timer: unsafe extern "C-unwind" fn() -> u64,
    /// `sm_id()`: the worker's number.
    pub sm_id: unsafe extern "C-unwind" fn() -> u32,
    /// In checked images, before each access through a pointer: address, bytes, kind. Each scalar and vector of
    /// a struct is an access of its own, so its size says how it must be aligned; an aggregate of more than
    /// 64 of them is one access. Local variables that are accessed by name are left out.
    pub check_access: unsafe extern "C-unwind" fn(*const c_void, u32, u32, Location),
    /// At the head of a loop: a set of the flags [`POLL_YIELDS`] and so on.
    pub poll: unsafe extern "C-unwind" fn(kind: u32, Location),
    /// `cudaStreamCreateWithFlags`: where to write the handle. Gives a `cudaError`, as all below do that give
    /// an `i32`.
    pub stream_create: unsafe extern "C-unwind" fn(*mut u64) -> i32,
    /// `cudaStreamDestroy`: the handle.
    pub stream_destroy: unsafe extern "C-unwind" fn(u64) -> i32,
    /// `cudaMemcpyAsync`: to, from, bytes, the stream's handle.
    pub memcpy_async: unsafe extern "C-unwind" fn(*mut u8, *const u8, u64, u64, Location) -> i32,
    /// `cudaMemsetAsync`: where, the byte in the low bits, how many, the stream's handle.
    pub memset_async: unsafe extern "C-unwind" fn(*mut u8, i32, u64, u64, Location) -> i32,
    /// `cudaGetLastError`: the thread's last error, which is forgotten. Kernels that may call it have
    /// [`NEEDS_THREADS`].
    pub last_error: unsafe extern "C-unwind" fn() -> i32,
    /// `malloc`: aligned to 16 bytes; null if the heap is full.
    pub malloc: unsafe extern "C-unwind" fn(u64) -> *mut u8,
    /// `free`: null, or what `malloc` gave; anything else ends the grid.
    pub free: unsafe extern "C-unwind" fn(*mut u8, Location),
    /// A failed `assert`: message, file, line and function, all but the line NUL-terminated; the thread as
    /// [`Callbacks::trap`] has it. Ends the grid.
    pub assert_fail: unsafe extern "C-unwind" fn(
        *const c_char,
        *const c_char,
        u32,
        *const c_char,
        Location,
        thread: u32,
    ) -> !,
    /// In checked images, where an array is accessed at an index that it does not have: the index, the number of
    /// elements, the kind of the access, the array's name. Ends the grid.
    pub index_out_of_bounds:
        unsafe extern "C-unwind" fn(i64, u64, u32, *const c_char, Location) -> !,
    /// In checked images, at the start of a function: a local variable that pointers may reach, its size and its
    /// name. Behind it are [`LOCAL_RED_ZONE_BYTES`] that nothing uses.
    pub local_begins: unsafe extern "C-unwind" fn(*const c_void, u32, *const c_char, Location),
    /// Before the function returns: so many of the variables that began last are gone.
    pub locals_end: unsafe extern "C-unwind" fn(u32),
}

/// Position of each callback in [`Callbacks`], counted in pointers: what the compiler indexes the table with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[expect(missing_docs, reason = "each variant is the callback of that name")]
pub enum Callback {
    SharedBase = 0,
    SyncThreads,
    SyncWarp,
    Shuffle,
    Vote,
    ActiveMask,
    LaneId,
    GetParameterBuffer,
    LaunchDevice,
    Printf,
    Trap,
    Clock64,
    GlobalTimer,
    SmId,
    CheckAccess,
    Poll,
    StreamCreate,
    StreamDestroy,
    MemcpyAsync,
    MemsetAsync,
    LastError,
    Malloc,
    Free,
    AssertFail,
    IndexOutOfBounds,
    LocalBegins,
    LocalsEnd,
}
