//! The built-in operations of the language.
//!
//! [`Builtin`] lists them. One table, in `table.rs`, states the name and the [`Properties`] of each; the
//! checker, the IR and codegen all read it. A built-in without a row does not compile.

mod operations;
mod properties;
mod table;
#[cfg(test)]
mod tests;

pub use operations::*;
pub use properties::*;

/// A built-in operation, documented with its arguments in language order.
///
/// Not all of them reach the back ends: the checker replaces those that only query a type, `ir::build` those
/// composed of others, and the `launch` stage those implemented by the device runtime or by loops of
/// shuffles. Each variant says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `sync_threads()`
    SyncThreads,
    /// `sync_threads_…(predicate: bool)`: `u32` for the count, else `bool`.
    SyncThreadsReduce(BlockReduceOp),
    /// `sync_warp(mask: u32)`
    SyncWarp,
    /// `shfl…(mask: u32, value: T, lane: u32) -> T`; [`Properties::types`] says which `T`.
    Shuffle(ShuffleMode),
    /// `ballot`, `any`, `all` `(mask: u32, predicate: bool)`
    Vote(VoteMode),
    /// `match_any(mask: u32, value: T) -> u32`: the lanes of the mask whose value has the same bits.
    /// `T` any 32- or 64-bit scalar.
    MatchAny,
    /// `active_mask() -> u32`
    ActiveMask,
    /// `reduce_…(mask: u32, value: T) -> T`; [`Properties::types`] says which `T`. After the `launch` stage, only those
    /// that `redux.sync` implements are left.
    Reduce(ReduceOp),
    /// `lane_id() -> u32`
    LaneId,
    /// `atomic_…(p: *mut T, value: T) -> T`. `T`: i32, u32, u64, i64 for all; f32, f64 for add and exch.
    Atomic(AtomicOp, Scope),
    /// `atomic_cas(p: *mut T, expected: T, new: T) -> T`, `T` an integer of 32 or 64 bits.
    AtomicCas(Scope),
    /// `atomic_load…(p: *const T, order) -> T`, `T` a number of 32 or 64 bits.
    AtomicLoad(Order, Scope),
    /// `atomic_store…(p: *mut T, value: T, order)`, `T` as for the load.
    AtomicStore(Order, Scope),
    /// `fence_block()`, `fence_device()`, `fence_system()`
    Fence(Scope),
    /// See [`MathOp`]: all arguments and the result have the same type. `ir::build` composes `clamp` and
    /// `saturate` of `min` and `max`.
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
    /// `printf("…", …) -> i32`: the format is stored beside the arguments.
    Printf,
    /// The failure branch of `assert(condition, "…")`; does not return. In the tree it has no arguments, and
    /// the message is stored beside them; from `ir::build` on, the arguments are the message, the file, the
    /// line (`u32`) and the function, strings as `*const u8`.
    Assert,
    /// `trap()`: does not return.
    Trap,
    /// `clock64() -> u64`
    Clock64,
    /// `global_timer() -> u64`, in nanoseconds.
    GlobalTimer,
    /// `sm_id() -> u32`
    SmId,
    /// `malloc(bytes: u64) -> *mut u8`: from the device heap; null if it is full.
    Malloc,
    /// `free(p: *mut u8)`: frees a pointer from `malloc`.
    Free,
    /// `stream_create() -> stream`; the default stream if no stream is available. This and the following
    /// operations become calls of the device runtime in the `launch` stage.
    StreamCreate,
    /// `stream_destroy(s: stream) -> i32`: 0 or a `cudaError`.
    StreamDestroy,
    /// `memcpy_async(dst: *mut u8, src: *const u8, bytes: u64, s: stream) -> i32`
    MemcpyAsync,
    /// `memset_async(dst: *mut u8, value: i32, bytes: u64, s: stream) -> i32`: sets each byte to the lowest
    /// byte of `value`.
    MemsetAsync,
    /// `device_last_error() -> i32`: returns the thread's last `cudaError` and resets it to 0.
    DeviceLastError,
}

impl Builtin {
    /// The built-in with a name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::ALL.iter().copied().find(|builtin| builtin.name() == name)
    }

    /// Whether it never returns.
    pub fn ends(self) -> bool {
        self.properties().effect == Effect::Ends
    }

    /// The memory order, for an access that has one.
    pub fn order(self) -> Option<Order> {
        match self {
            Builtin::AtomicLoad(order, _) | Builtin::AtomicStore(order, _) => Some(order),
            _ => None,
        }
    }

    /// The scope, for an atomic or a fence.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Builtin::Atomic(_, scope)
            | Builtin::AtomicCas(scope)
            | Builtin::AtomicLoad(_, scope)
            | Builtin::AtomicStore(_, scope)
            | Builtin::Fence(scope) => Some(scope),
            _ => None,
        }
    }

    /// The same operation with another memory order, if it has one.
    #[must_use]
    pub fn with_order(self, order: Order) -> Builtin {
        match self {
            Builtin::AtomicLoad(_, scope) => Builtin::AtomicLoad(order, scope),
            Builtin::AtomicStore(_, scope) => Builtin::AtomicStore(order, scope),
            other => other,
        }
    }
}
