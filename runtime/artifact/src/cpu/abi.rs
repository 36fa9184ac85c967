//! The ABI between the compiler's CPU images and the CPU device: callbacks, descriptors and constants.
//!
//! An image is a shared object. It exports [`VERSION_SYMBOL`], [`TABLE_SYMBOL`], [`KERNELS_SYMBOL`] and
//! [`KERNEL_COUNT_SYMBOL`], and the program's variables by the symbols in the manifest. The
//! loader checks the version, stores the address of a [`Callbacks`] in the table variable, and finds the
//! kernels. An image reaches everything else through the table, so its only undefined symbols are those of the C and
//! maths libraries.
//!
//! This file is the only definition; the compiler takes names, numbers and field orders from it.

use std::ffi::{c_char, c_void};

/// Version of this ABI; the loader rejects an image with any other version.
pub const ABI_VERSION: u32 = 12;

/// A constant `u32`: the [`ABI_VERSION`] that the image was compiled for.
pub const VERSION_SYMBOL: &str = "gridlet_cpu_abi_version";
/// A variable `*const Callbacks`, null until the loader sets it.
pub const TABLE_SYMBOL: &str = "gridlet_cpu_callbacks";
/// An array of [`KernelDescriptor`], in the order of the source.
pub const KERNELS_SYMBOL: &str = "gridlet_cpu_kernels";
/// A constant `u32`: the number of kernels.
pub const KERNEL_COUNT_SYMBOL: &str = "gridlet_cpu_kernel_count";

/// In checked images, an array of [`VariableDescriptor`].
pub const VARIABLES_SYMBOL: &str = "gridlet_cpu_variables";
/// In checked images, a constant `u32`: the number of variables.
pub const VARIABLE_COUNT_SYMBOL: &str = "gridlet_cpu_variable_count";

/// Alignment in bytes of a block's static and dynamic shared memory.
pub const SHARED_ALIGNMENT: usize = 128;

/// The geometry of one thread, with the layout that the layout pass gives the compiler's `geometry` struct.
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

/// Entry point of one thread: the geometry, and the packed parameter buffer, laid out as in the manifest and aligned to
/// 64 bytes. The image only reads both.
pub type Entry = unsafe extern "C-unwind" fn(geometry: *const Geometry, parameters: *const u8);

/// Entry point of `blocks` consecutive blocks, in x, y, z order, starting at the geometry's `block_idx`. Runs all
/// threads of a block one after another in the same order before the next block. Ignores the geometry's `thread_idx`
/// and updates its `block_idx` to the running block.
pub type BlocksEntry =
    unsafe extern "C-unwind" fn(geometry: *mut Geometry, parameters: *const u8, blocks: u64);

/// The x86-64 microarchitecture level (System V ABI, "Micro-Architecture Levels") required by
/// [`KernelDescriptor::blocks_v3`]: processors with AVX2.
pub const LEVEL_V3: &str = "x86-64-v3";

/// A kernel of an image. Device-side launches identify a kernel by its descriptor's address.
#[repr(C)]
pub struct KernelDescriptor {
    /// NUL-terminated.
    pub name: *const c_char,
    /// Runs one thread.
    pub thread: Entry,
    /// Runs whole blocks. Null if [`NEEDS_THREADS`] is set.
    pub blocks: Option<BlocksEntry>,
    /// Like `blocks`, with identical results, for processors of [`LEVEL_V3`]; null if the image has none.
    pub blocks_v3: Option<BlocksEntry>,
    /// Bytes of the parameter buffer.
    pub parameter_bytes: u32,
    /// Bytes of a block's static shared memory: the shared variables that the kernel, and the functions that it calls, use.
    pub static_shared_bytes: u32,
    /// A set of the flags below.
    pub flags: u32,
    /// Bytes that the shared variables of the image occupy in memory. A checked image leaves unused bytes after each variable.
    pub shared_span_bytes: u32,
    /// The maximum number of threads in a block by `#[launch_bounds]`; 0 if the kernel has none.
    pub max_block_threads: u32,
}

/// A variable of a checked image that kernels may access through pointers.
#[repr(C)]
pub struct VariableDescriptor {
    /// Name in the source, NUL-terminated.
    pub name: *const c_char,
    /// Address; statics only.
    pub address: *const u8,
    /// Offset in the block's static shared memory (shared variables) or in the parameter buffer (parameters).
    pub offset: u64,
    /// Size. [`RED_ZONE_BYTES`] unused bytes precede and follow a static.
    pub bytes: u64,
    /// One of the `VARIABLE_` constants.
    pub kind: u32,
    /// Parameters only: index of the kernel in the kernel table.
    pub kernel: u32,
}

/// [`VariableDescriptor::kind`]: a `shared` variable.
pub const VARIABLE_SHARED: u32 = 0;
/// [`VariableDescriptor::kind`]: a `static`.
pub const VARIABLE_STATIC: u32 = 1;
/// [`VariableDescriptor::kind`]: a kernel parameter, or one of its scalar components.
pub const VARIABLE_PARAMETER: u32 = 2;

/// [`VariableDescriptor::kind`]: a string.
pub const VARIABLE_STRING: u32 = 3;

/// In checked images and on devices with a checker, the number of unused bytes after a region that kernels may
/// overrun.
pub const RED_ZONE_BYTES: usize = 256;
/// Unused bytes after a local variable that pointers may reach.
pub const LOCAL_RED_ZONE_BYTES: usize = 32;

/// Flag: threads of a block wait for each other (barriers, warp operations, loops that wait for a write), so each
/// needs its own stack.
pub const NEEDS_THREADS: u32 = 1;
/// Flag: contains an `assert` in a function that does not receive its geometry. To report which thread failed, the
/// device must know which one runs, so it calls [`KernelDescriptor::thread`] for each thread.
pub const NAMES_THREADS: u32 = 4;
/// Flag: the image was compiled with `--check`; memory accesses call [`Callbacks::check_access`], loops call
/// [`Callbacks::poll`].
pub const CHECKED: u32 = 2;
/// Flag: threads ask the device for state of their block (launches, streams), so the device calls
/// [`KernelDescriptor::blocks`] for one block at a time.
pub const BLOCK_BY_BLOCK: u32 = 8;

/// Flag: the image has code of other compilers, which may hand out pointers to data of its own.
pub const LINKED: u32 = 16;

/// Flag: the kernel has a loop that may wait for another thread's write. A device with a checker starts no other block
/// while one of its blocks runs, so that it finds the same waits with any number of workers.
pub const WAITS: u32 = 32;

/// A source position: file in the high 12 bits, line in the low 20; 0 is unknown.
pub type Location = u32;

const LINE_BITS: u32 = 20;
const MAX_LINE: u32 = (1 << LINE_BITS) - 1;

/// The position of a line, from 1 on, of a file, from 0 on; 0 if it does not fit.
pub fn location(file: u32, line: u32) -> Location {
    let fits = file <= u32::MAX >> LINE_BITS && line <= MAX_LINE;
    if fits { file << LINE_BITS | line } else { 0 }
}

/// The file and the line of a position, unless it is unknown.
pub fn file_and_line(location: Location) -> Option<(u32, u32)> {
    (location != 0).then_some((location >> LINE_BITS, location & MAX_LINE))
}

/// [`Callbacks::check_access`] kind: a read.
pub const ACCESS_READ: u32 = 0;
/// A write.
pub const ACCESS_WRITE: u32 = 1;
/// An atomic read-modify-write.
pub const ACCESS_ATOMIC: u32 = 2;
/// An atomic load; with [`ACCESS_ACQUIRE`] if it acquires.
pub const ACCESS_ATOMIC_LOAD: u32 = 3;
/// An atomic store; with [`ACCESS_RELEASE`] if it releases.
pub const ACCESS_ATOMIC_STORE: u32 = 4;
/// A fence; the address is null and the bytes are 0.
pub const ACCESS_FENCE: u32 = 5;
/// `malloc` returned this address (null if out of memory); the size is capped at `u32::MAX`.
pub const ACCESS_MALLOC: u32 = 6;
/// This address is about to be freed; the bytes are 0.
pub const ACCESS_FREE: u32 = 7;
/// This registered local variable has no value yet.
pub const ACCESS_UNSET: u32 = 8;
/// Flag of a read or write: a byte-wise copy or fill. Its address needs no alignment, and uninitialised bytes may be
/// copied.
pub const ACCESS_BYTES: u32 = 0x40;
/// Flag of an atomic: it acquires.
pub const ACCESS_ACQUIRE: u32 = 0x10;
/// Flag of an atomic: it releases.
pub const ACCESS_RELEASE: u32 = 0x20;

/// Flag of an atomic or a fence: its scope is the block.
pub const ACCESS_BLOCK: u32 = 0x80;
/// The bits of a read, write or atomic with the number, from 1, of the pointer parameter that leads to the address, in the body
/// of a kernel that promises that its pointers do not overlap.
pub const ACCESS_PARAMETER: u32 = 0xff00;
/// The lowest of these bits.
pub const ACCESS_PARAMETER_SHIFT: u32 = 8;

/// [`Callbacks::shuffle`] mode, in the order of the compiler's `ShuffleMode`: read from the lane given by the operand.
pub const SHUFFLE_INDEX: u32 = 0;
/// Read from the lane `operand` below.
pub const SHUFFLE_UP: u32 = 1;
/// Read from the lane `operand` above.
pub const SHUFFLE_DOWN: u32 = 2;
/// Read from the lane whose number is the own lane XOR the operand.
pub const SHUFFLE_XOR: u32 = 3;

/// [`Callbacks::vote`] mode: one bit per lane.
pub const VOTE_BALLOT: u32 = 0;
/// 1 if any lane's predicate is true.
pub const VOTE_ANY: u32 = 1;
/// 1 if every lane's predicate is true.
pub const VOTE_ALL: u32 = 2;

/// [`Callbacks::combine`] operation, in the order of the compiler's `ReduceOp`: the sum.
pub const COMBINE_ADD: u32 = 0;
/// The smallest value; as for `min` of two floats, a NaN counts only if there is nothing else, and -0 is below +0.
pub const COMBINE_MIN: u32 = 1;
/// The largest value, as for [`COMBINE_MIN`].
pub const COMBINE_MAX: u32 = 2;
/// The bitwise AND.
pub const COMBINE_AND: u32 = 3;
/// The bitwise OR.
pub const COMBINE_OR: u32 = 4;
/// The bitwise XOR.
pub const COMBINE_XOR: u32 = 5;
/// The lanes with the same value as the own lane; no type.
pub const COMBINE_MATCH: u32 = 6;
/// [`Callbacks::combine`] type of the values, added to the operation: an integer whose high bits do not matter.
pub const COMBINE_BITS: u32 = 0 << 8;
/// `i32`
pub const COMBINE_I32: u32 = 1 << 8;
/// `u32`
pub const COMBINE_U32: u32 = 2 << 8;
/// `i64`
pub const COMBINE_I64: u32 = 3 << 8;
/// `u64`
pub const COMBINE_U64: u32 = 4 << 8;
/// `f32`
pub const COMBINE_F32: u32 = 5 << 8;
/// `f64`
pub const COMBINE_F64: u32 = 6 << 8;

/// [`Callbacks::trap`] thread: unknown, in a function that does not receive its geometry.
pub const THREAD_UNKNOWN: u32 = u32::MAX;
/// [`Callbacks::trap`] kind: `trap()`.
pub const TRAP_EXPLICIT: u32 = 0;
/// An integer division by zero.
pub const TRAP_DIVISION: u32 = 1;
/// Execution reached code that the compiler assumed to be unreachable.
pub const TRAP_UNREACHABLE: u32 = 2;

/// [`Callbacks::poll`] flag: the loop may wait for another thread's write, so other threads must get a turn.
pub const POLL_YIELDS: u32 = 1;
/// In checked images: the loop may wait forever.
pub const POLL_WAITS: u32 = 2;
/// In checked images: the loop terminates regardless of other threads' writes, though a nested loop may wait.
pub const POLL_ENDS: u32 = 4;

/// Services of the CPU device that an image calls. All are called on the worker thread that runs the block, in the
/// block's or the thread's coroutine. None unwinds; those that end the grid do not return.
#[repr(C)]
pub struct Callbacks {
    /// First byte of the block's static shared memory, aligned to [`SHARED_ALIGNMENT`].
    pub shared_base: unsafe extern "C-unwind" fn() -> *mut u8,
    /// `sync_threads()`
    pub sync_threads: unsafe extern "C-unwind" fn(Location),
    /// `sync_warp(mask)`
    pub sync_warp: unsafe extern "C-unwind" fn(mask: u32, Location),
    /// `shfl…`: mode, mask, the value in the low bits, the lane operand. Returns the value read.
    pub shuffle: unsafe extern "C-unwind" fn(u32, u32, u64, u32, Location) -> u64,
    /// `ballot`, `any`, `all`: mode, mask, predicate (0 or 1).
    pub vote: unsafe extern "C-unwind" fn(u32, u32, u32, Location) -> u32,
    /// `active_mask()`: the lanes of the warp that have not ended.
    pub active_mask: unsafe extern "C-unwind" fn() -> u32,
    /// `lane_id()`
    pub lane_id: unsafe extern "C-unwind" fn() -> u32,
    /// `cudaGetParameterBufferV2`: the descriptor, the grid's extents, the block's extents, dynamic shared bytes.
    /// Returns null if the pool of pending launches is full.
    pub get_parameter_buffer: unsafe extern "C-unwind" fn(
        *const KernelDescriptor,
        *const [u32; 3],
        *const [u32; 3],
        u32,
    ) -> *mut u8,
    /// `cudaLaunchDeviceV2`: the buffer and the stream handle (0 default, 3 tail, 4 fire and forget). Returns a
    /// `cudaError`.
    pub launch_device: unsafe extern "C-unwind" fn(*mut u8, u64, Location) -> i32,
    /// `vprintf`: the format, the packed arguments. Returns the number of arguments.
    pub printf: unsafe extern "C-unwind" fn(*const c_char, *const u8, Location) -> i32,
    /// Ends the grid with an error and does not return. `thread` is the thread's number in its block, for blocks that
    /// run as a loop, or [`THREAD_UNKNOWN`].
    pub trap: unsafe extern "C-unwind" fn(kind: u32, Location, thread: u32) -> !,
    /// `clock64()`
    pub clock64: unsafe extern "C-unwind" fn() -> u64,
    /// `global_timer()`, in nanoseconds.
    pub global_timer: unsafe extern "C-unwind" fn() -> u64,
    /// `sm_id()`: the worker's number.
    pub sm_id: unsafe extern "C-unwind" fn() -> u32,
    /// In checked images, before each access through a pointer: address, bytes, kind. Each scalar or vector in a struct
    /// is a separate access, whose size gives the required alignment; an aggregate of more than 64 of them is one
    /// access. Excludes accesses by name of local variables that cannot have unset parts.
    pub check_access: unsafe extern "C-unwind" fn(*const c_void, u32, u32, Location),
    /// At the head of a loop: a set of `POLL_` flags.
    pub poll: unsafe extern "C-unwind" fn(kind: u32, Location),
    /// `cudaStreamCreateWithFlags`: where to write the handle. Returns a `cudaError`, like every callback below that
    /// returns `i32`.
    pub stream_create: unsafe extern "C-unwind" fn(*mut u64) -> i32,
    /// `cudaStreamDestroy`: the handle.
    pub stream_destroy: unsafe extern "C-unwind" fn(u64) -> i32,
    /// `cudaMemcpyAsync`: destination, source, bytes, stream handle.
    pub memcpy_async: unsafe extern "C-unwind" fn(*mut u8, *const u8, u64, u64, Location) -> i32,
    /// `cudaMemsetAsync`: destination, the byte in the low bits, number of bytes, stream handle.
    pub memset_async: unsafe extern "C-unwind" fn(*mut u8, i32, u64, u64, Location) -> i32,
    /// `cudaGetLastError`: returns and clears the thread's last error. Kernels that may call it have
    /// [`NEEDS_THREADS`].
    pub last_error: unsafe extern "C-unwind" fn() -> i32,
    /// `malloc`: aligned to 16 bytes; null if the heap is full.
    pub malloc: unsafe extern "C-unwind" fn(u64) -> *mut u8,
    /// `free`: null or an address from `malloc`; any other address ends the grid.
    pub free: unsafe extern "C-unwind" fn(*mut u8, Location),
    /// A failed `assert`: message, file, line and function (the strings NUL-terminated), and the thread as in
    /// [`Callbacks::trap`]. Ends the grid.
    pub assert_fail: unsafe extern "C-unwind" fn(
        *const c_char,
        *const c_char,
        u32,
        *const c_char,
        Location,
        thread: u32,
    ) -> !,
    /// In checked images, for an out-of-bounds array index: the index, the number of elements, the kind of access, the
    /// array's name. Ends the grid.
    pub index_out_of_bounds:
        unsafe extern "C-unwind" fn(i64, u64, u32, *const c_char, Location) -> !,
    /// In checked images, at the start of a function: address, size and name of a local variable that pointers may
    /// reach. [`LOCAL_RED_ZONE_BYTES`] unused bytes follow it.
    pub local_begins: unsafe extern "C-unwind" fn(*const c_void, u32, *const c_char, Location),
    /// Before the function returns: the number of most recently registered variables whose lifetime ends.
    pub locals_end: unsafe extern "C-unwind" fn(u32),
    /// In checked images, before the kernel returns from anywhere but its end. Warp operations of other lanes may name
    /// such a lane, but not one that ran to the end of the kernel without them.
    pub returns_early: unsafe extern "C-unwind" fn(),
    /// `reduce_…`, `match_any`: operation plus type, mask, the value in the low bits. Returns the result of all lanes that
    /// take part in the low bits, or for [`COMBINE_MATCH`] the lanes. Sums of floats are of halves of the warp if it is
    /// whole, otherwise lane by lane.
    pub combine: unsafe extern "C-unwind" fn(u32, u32, u64, Location) -> u64,
}

/// Index of each callback in [`Callbacks`], in pointers; the compiler indexes the table with it.
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
    ReturnsEarly,
    Combine,
}

#[cfg(test)]
mod tests {
    use super::{file_and_line, location};

    #[test]
    fn positions_that_do_not_fit_are_unknown() {
        for (file, line) in [(0, 7), (2, 7), (256, 1_000_000), (4095, (1 << 20) - 1)] {
            assert_eq!(file_and_line(location(file, line)), Some((file, line)));
        }
        for (file, line) in [(4096, 7), (0, 1 << 20), (u32::MAX, u32::MAX)] {
            assert_eq!(file_and_line(location(file, line)), None);
        }
    }
}
