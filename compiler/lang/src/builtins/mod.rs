//! The built-in operations of the language that are more than an operator.
//!
//! [`Builtin`] names them. One table, in `table.rs`, states the name and the [`Properties`] of each; the checker, the
//! IR and codegen ask it. A built-in without a row does not compile.

mod operations;
mod properties;
mod table;
#[cfg(test)]
mod tests;

pub use operations::*;
pub use properties::*;

/// A built-in operation. The arguments of each are listed in the order of the language.
///
/// Not all of them reach the back ends: the checker replaces what only asks for a type, `ir::build` what is
/// made of others, and the `launch` stage what the device runtime or a loop of shuffles does. Each says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `sync_threads()`
    SyncThreads,
    /// `sync_threads_…(predicate: bool)`: `u32` for the count, else `bool`.
    SyncThreadsReduce(BlockReduceOp),
    /// `sync_warp(mask: u32)`
    SyncWarp,
    /// `shfl…(mask: u32, value: T, lane: u32) -> T`: see [`shuffle_supports`].
    Shuffle(ShuffleMode),
    /// `ballot`, `any`, `all` `(mask: u32, predicate: bool)`
    Vote(VoteMode),
    /// `match_any(mask: u32, value: T) -> u32`: the lanes of the mask whose value has the same bits.
    /// `T` any 32- or 64-bit scalar.
    MatchAny,
    /// `active_mask() -> u32`
    ActiveMask,
    /// `reduce_…(mask: u32, value: T) -> T`: see [`reduce_supports`]. The `launch` stage leaves only what
    /// `redux.sync` does.
    Reduce(ReduceOp),
    /// `lane_id() -> u32`
    LaneId,
    /// `atomic_…(p: *mut T, value: T) -> T`. `T`: i32, u32, u64, i64 for all; f32, f64 for add and exch.
    Atomic(AtomicOp, Scope),
    /// `atomic_cas(p: *mut T, expected: T, new: T) -> T`, `T` an integer of 32 or 64 bits.
    AtomicCas(Scope),
    /// `atomic_load(p: *const T, order) -> T`, `T` a number of 32 or 64 bits; device scope.
    AtomicLoad(Order),
    /// `atomic_store(p: *mut T, value: T, order)`, `T` as for the load.
    AtomicStore(Order),
    /// `fence_block()`, `fence_device()`, `fence_system()`
    Fence(Scope),
    /// See [`MathOp`]: all arguments and the result have one type. `ir::build` makes `min` and `max` of
    /// `clamp` and `saturate`.
    Math(MathOp),
    /// See [`BitOp`].
    Bit(BitOp),
    /// `mul_hi(a: T, b: T) -> T`: the high half of the product, `T` an integer of 32 or 64 bits.
    MulHi,
    /// `bitcast::<T>(value: U) -> T`: the same bits as another scalar or vector of the same size.
    Bitcast,
    /// `size_of::<T>() -> u64`, in bytes. The checker replaces it.
    SizeOf,
    /// `align_of::<T>() -> u64`, in bytes. The checker replaces it.
    AlignOf,
    /// `printf("…", …) -> i32`: the format is kept beside the arguments.
    Printf,
    /// What follows on a false `assert(condition, "…")`, and does not return. In the tree it has no arguments
    /// and the message beside them; from `ir::build` on, the message, the file, the line (`u32`) and the
    /// function, strings as `*const u8`.
    Assert,
    /// `trap()`: does not return.
    Trap,
    /// `clock64() -> u64`
    Clock64,
    /// `global_timer() -> u64`, in nanoseconds.
    GlobalTimer,
    /// `sm_id() -> u32`
    SmId,
    /// `malloc(bytes: u64) -> *mut u8`: from the device's heap; null if it is full.
    Malloc,
    /// `free(p: *mut u8)`: what `malloc` gave.
    Free,
    /// `stream_create() -> stream`; the default stream if there is none left. This and all that follow are
    /// calls of the device runtime after the `launch` stage.
    StreamCreate,
    /// `stream_destroy(s: stream) -> i32`: 0 or a `cudaError`.
    StreamDestroy,
    /// `memcpy_async(dst: *mut u8, src: *const u8, bytes: u64, s: stream) -> i32`
    MemcpyAsync,
    /// `memset_async(dst: *mut u8, value: i32, bytes: u64, s: stream) -> i32`: each byte becomes `value`'s
    /// lowest.
    MemsetAsync,
    /// `device_last_error() -> i32`: the last `cudaError` of this thread, which is 0 after that.
    DeviceLastError,
}

impl Builtin {
    /// The built-in of a name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::ALL.iter().copied().find(|builtin| builtin.name() == name)
    }

    /// Whether control does not come back from it.
    pub fn ends(self) -> bool {
        self.properties().effect == Effect::Ends
    }

    /// The memory order of an access that names one.
    pub fn order(self) -> Option<Order> {
        match self {
            Builtin::AtomicLoad(order) | Builtin::AtomicStore(order) => Some(order),
            _ => None,
        }
    }

    /// The same operation with another memory order, if it has one.
    #[must_use]
    pub fn with_order(self, order: Order) -> Builtin {
        match self {
            Builtin::AtomicLoad(_) => Builtin::AtomicLoad(order),
            Builtin::AtomicStore(_) => Builtin::AtomicStore(order),
            other => other,
        }
    }
}
