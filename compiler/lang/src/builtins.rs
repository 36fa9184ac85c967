//! The built-in operations of the language that are more than an operator.
//!
//! One table: the checker takes names and types from it, the IR names operations by it, codegen lowers it.

use crate::types::{Scalar, Type};

/// Read-modify-write operations on memory. All return the old value, relaxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the built-in `atomic_…` of that name")]
pub enum AtomicOp {
    Add,
    Sub,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
}

/// How a warp shuffle picks the lane it reads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShuffleMode {
    /// `shfl(m, v, lane)`: an absolute lane.
    Index,
    /// `shfl_up`: the lane that many below.
    Up,
    /// `shfl_down`: the lane that many above.
    Down,
    /// `shfl_xor`: own lane XOR the operand.
    Xor,
}

/// Warp votes over the lanes of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    /// `ballot`: one bit per lane, u32.
    Ballot,
    /// `any`: bool.
    Any,
    /// `all`: bool.
    All,
}

/// Whom a fence or an atomic operation takes effect for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The threads of the block: `fence_block()`, `atomic_…_block`.
    Block,
    /// All threads of the device: `fence_device()`, `atomic_…`.
    Device,
    /// The host and other devices too: `fence_system()`, `atomic_…_system`.
    System,
}

/// The order of `atomic_load` and `atomic_store`, named as their last argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// `relaxed`
    Relaxed,
    /// `acquire`: only loads.
    Acquire,
    /// `release`: only stores.
    Release,
}

impl Order {
    /// Every order with its name in the language.
    pub const ALL: [(Order, &'static str); 3] =
        [(Order::Relaxed, "relaxed"), (Order::Acquire, "acquire"), (Order::Release, "release")];

    /// The name in the language, which is PTX's too.
    pub fn name(self) -> &'static str {
        Order::ALL.iter().find(|(known, _)| *known == self).map_or("?", |(_, name)| name)
    }
}

/// What a barrier makes of a `bool` of every thread of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockReduceOp {
    /// `sync_threads_count`: for how many it is true, `u32`.
    Count,
    /// `sync_threads_and`: whether it is true for all.
    And,
    /// `sync_threads_or`: whether it is true for any.
    Or,
}

/// What a warp makes of a value of each lane of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the built-in `reduce_…` of that name")]
pub enum ReduceOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl ReduceOp {
    /// Every operation with its name in the language.
    pub const ALL: [(ReduceOp, &'static str); 6] = [
        (ReduceOp::Add, "reduce_add"),
        (ReduceOp::Min, "reduce_min"),
        (ReduceOp::Max, "reduce_max"),
        (ReduceOp::And, "reduce_and"),
        (ReduceOp::Or, "reduce_or"),
        (ReduceOp::Xor, "reduce_xor"),
    ];
}

/// Mathematical functions on `f32` and `f64`; some also on other numbers: see [`MathOp::supports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the built-in of that name in lower case")]
pub enum MathOp {
    Abs,
    Min,
    Max,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Tan,
    Exp,
    Exp2,
    Log,
    Log2,
    Log10,
    Pow,
    Floor,
    Ceil,
    Round,
    Trunc,
    Fma,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    Cbrt,
    Hypot,
    Erf,
    Clamp,
    Saturate,
}

impl MathOp {
    /// Every operation with its name in the language and its number of arguments.
    pub const ALL: [(MathOp, &'static str, usize); 31] = [
        (MathOp::Abs, "abs", 1),
        (MathOp::Min, "min", 2),
        (MathOp::Max, "max", 2),
        (MathOp::Sqrt, "sqrt", 1),
        (MathOp::Rsqrt, "rsqrt", 1),
        (MathOp::Sin, "sin", 1),
        (MathOp::Cos, "cos", 1),
        (MathOp::Tan, "tan", 1),
        (MathOp::Exp, "exp", 1),
        (MathOp::Exp2, "exp2", 1),
        (MathOp::Log, "log", 1),
        (MathOp::Log2, "log2", 1),
        (MathOp::Log10, "log10", 1),
        (MathOp::Pow, "pow", 2),
        (MathOp::Floor, "floor", 1),
        (MathOp::Ceil, "ceil", 1),
        (MathOp::Round, "round", 1),
        (MathOp::Trunc, "trunc", 1),
        (MathOp::Fma, "fma", 3),
        (MathOp::Asin, "asin", 1),
        (MathOp::Acos, "acos", 1),
        (MathOp::Atan, "atan", 1),
        (MathOp::Atan2, "atan2", 2),
        (MathOp::Sinh, "sinh", 1),
        (MathOp::Cosh, "cosh", 1),
        (MathOp::Tanh, "tanh", 1),
        (MathOp::Cbrt, "cbrt", 1),
        (MathOp::Hypot, "hypot", 2),
        (MathOp::Erf, "erf", 1),
        (MathOp::Clamp, "clamp", 3),
        (MathOp::Saturate, "saturate", 1),
    ];

    /// Whether the operation is defined on `scalar`. `f16` and `bf16` have what rounds correctly there on every
    /// device; a `sin` of one would be the `f32`'s, rounded again, which the program says better itself:
    /// `sin(x as f32) as f16`.
    pub fn supports(self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::F32 | Scalar::F64 => true,
            Scalar::F16 | Scalar::Bf16 => self.on_halves(),
            Scalar::Bool => false,
            _ => self.on_integers(),
        }
    }

    /// Whether the operation is also defined on integers.
    pub fn on_integers(self) -> bool {
        matches!(self, MathOp::Abs | MathOp::Min | MathOp::Max | MathOp::Clamp)
    }

    /// Whether the operation is also defined on `f16` and `bf16`.
    pub fn on_halves(self) -> bool {
        use MathOp::{Ceil, Floor, Fma, Round, Saturate, Sqrt, Trunc};
        self.on_integers() || matches!(self, Sqrt | Floor | Ceil | Round | Trunc | Fma | Saturate)
    }
}

/// Bit operations on integers of 32 and 64 bits. The counts return `u32`, `Brev` the operand's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the built-in of that name in lower case")]
pub enum BitOp {
    Popc,
    Clz,
    Ctz,
    Brev,
}

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

/// The three scopes of an atomic operation with the names that go with them.
macro_rules! scoped {
    ($name:literal, $make:expr) => {
        [
            ($name, $make(Scope::Device)),
            (concat!($name, "_block"), $make(Scope::Block)),
            (concat!($name, "_system"), $make(Scope::System)),
        ]
    };
}

impl Builtin {
    /// Every built-in with its name in the language, in the order of the reference. `atomic_load` and
    /// `atomic_store` are there once, whatever their order.
    pub fn all() -> Vec<(&'static str, Builtin)> {
        let mut all = vec![
            ("sync_threads", Builtin::SyncThreads),
            ("sync_threads_count", Builtin::SyncThreadsReduce(BlockReduceOp::Count)),
            ("sync_threads_and", Builtin::SyncThreadsReduce(BlockReduceOp::And)),
            ("sync_threads_or", Builtin::SyncThreadsReduce(BlockReduceOp::Or)),
            ("sync_warp", Builtin::SyncWarp),
            ("shfl", Builtin::Shuffle(ShuffleMode::Index)),
            ("shfl_up", Builtin::Shuffle(ShuffleMode::Up)),
            ("shfl_down", Builtin::Shuffle(ShuffleMode::Down)),
            ("shfl_xor", Builtin::Shuffle(ShuffleMode::Xor)),
            ("ballot", Builtin::Vote(VoteMode::Ballot)),
            ("any", Builtin::Vote(VoteMode::Any)),
            ("all", Builtin::Vote(VoteMode::All)),
            ("match_any", Builtin::MatchAny),
            ("active_mask", Builtin::ActiveMask),
            ("lane_id", Builtin::LaneId),
            ("atomic_load", Builtin::AtomicLoad(Order::Relaxed)),
            ("atomic_store", Builtin::AtomicStore(Order::Relaxed)),
            ("fence_block", Builtin::Fence(Scope::Block)),
            ("fence_device", Builtin::Fence(Scope::Device)),
            ("fence_system", Builtin::Fence(Scope::System)),
            ("popc", Builtin::Bit(BitOp::Popc)),
            ("clz", Builtin::Bit(BitOp::Clz)),
            ("ctz", Builtin::Bit(BitOp::Ctz)),
            ("brev", Builtin::Bit(BitOp::Brev)),
            ("mul_hi", Builtin::MulHi),
            ("bitcast", Builtin::Bitcast),
            ("size_of", Builtin::SizeOf),
            ("align_of", Builtin::AlignOf),
            ("printf", Builtin::Printf),
            ("assert", Builtin::Assert),
            ("trap", Builtin::Trap),
            ("clock64", Builtin::Clock64),
            ("global_timer", Builtin::GlobalTimer),
            ("sm_id", Builtin::SmId),
            ("malloc", Builtin::Malloc),
            ("free", Builtin::Free),
            ("stream_create", Builtin::StreamCreate),
            ("stream_destroy", Builtin::StreamDestroy),
            ("memcpy_async", Builtin::MemcpyAsync),
            ("memset_async", Builtin::MemsetAsync),
            ("device_last_error", Builtin::DeviceLastError),
        ];
        let atomic = |op| move |scope| Builtin::Atomic(op, scope);
        all.extend(scoped!("atomic_add", atomic(AtomicOp::Add)));
        all.extend(scoped!("atomic_sub", atomic(AtomicOp::Sub)));
        all.extend(scoped!("atomic_min", atomic(AtomicOp::Min)));
        all.extend(scoped!("atomic_max", atomic(AtomicOp::Max)));
        all.extend(scoped!("atomic_and", atomic(AtomicOp::And)));
        all.extend(scoped!("atomic_or", atomic(AtomicOp::Or)));
        all.extend(scoped!("atomic_xor", atomic(AtomicOp::Xor)));
        all.extend(scoped!("atomic_exch", atomic(AtomicOp::Exch)));
        all.extend(scoped!("atomic_cas", Builtin::AtomicCas));
        all.extend(ReduceOp::ALL.map(|(op, name)| (name, Builtin::Reduce(op))));
        all.extend(MathOp::ALL.map(|(op, name, _)| (name, Builtin::Math(op))));
        all
    }

    /// The built-in of a name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::all().into_iter().find(|(known, _)| *known == name).map(|(_, builtin)| builtin)
    }

    /// The name in the language.
    pub fn name(self) -> &'static str {
        let listed = match self {
            Builtin::AtomicLoad(_) => Builtin::AtomicLoad(Order::Relaxed),
            Builtin::AtomicStore(_) => Builtin::AtomicStore(Order::Relaxed),
            other => other,
        };
        Builtin::all().into_iter().find(|(_, known)| *known == listed).map_or("?", |(name, _)| name)
    }

    /// The types of the arguments and of the value, for what is not generic. A pointer to bytes stands for any
    /// pointer in the language: the checker converts it.
    pub fn fixed_signature(self) -> Option<(Vec<Type>, Type)> {
        let bytes = || Type::pointer_mut(Type::Scalar(Scalar::U8));
        let source = || Type::pointer_const(Type::Scalar(Scalar::U8));
        Some(match self {
            Builtin::SyncThreads | Builtin::Fence(_) | Builtin::Trap => (vec![], Type::Unit),
            Builtin::SyncThreadsReduce(op) => {
                let is_count = op == BlockReduceOp::Count;
                (vec![Type::BOOL], if is_count { Type::U32 } else { Type::BOOL })
            }
            Builtin::SyncWarp => (vec![Type::U32], Type::Unit),
            Builtin::Vote(mode) => {
                let is_ballot = mode == VoteMode::Ballot;
                (vec![Type::U32, Type::BOOL], if is_ballot { Type::U32 } else { Type::BOOL })
            }
            Builtin::ActiveMask | Builtin::LaneId | Builtin::SmId => (vec![], Type::U32),
            Builtin::Clock64 | Builtin::GlobalTimer => (vec![], Type::U64),
            Builtin::Malloc => (vec![Type::U64], bytes()),
            Builtin::Free => (vec![bytes()], Type::Unit),
            Builtin::StreamCreate => (vec![], Type::Stream),
            Builtin::StreamDestroy => (vec![Type::Stream], Type::I32),
            Builtin::MemcpyAsync => (vec![bytes(), source(), Type::U64, Type::Stream], Type::I32),
            Builtin::MemsetAsync => (vec![bytes(), Type::I32, Type::U64, Type::Stream], Type::I32),
            Builtin::DeviceLastError => (vec![], Type::I32),
            _ => return None,
        })
    }

    /// Whether the built-in takes a type, as in `size_of::<T>()`.
    pub fn takes_type(self) -> bool {
        matches!(self, Builtin::Bitcast | Builtin::SizeOf | Builtin::AlignOf)
    }

    /// Whether a constant can be made of it, if its arguments are constants.
    pub fn is_constant(self) -> bool {
        matches!(
            self,
            Builtin::SizeOf
                | Builtin::AlignOf
                | Builtin::Bit(_)
                | Builtin::Math(MathOp::Min | MathOp::Max | MathOp::Clamp | MathOp::Abs)
        )
    }

    /// Whether control does not come back from it.
    pub fn ends(self) -> bool {
        matches!(self, Builtin::Trap | Builtin::Assert)
    }
}

/// Whether `atomic_<op>` is defined on `scalar`.
pub fn atomic_supports(op: AtomicOp, scalar: Scalar) -> bool {
    match scalar {
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 => true,
        Scalar::F32 | Scalar::F64 => matches!(op, AtomicOp::Add | AtomicOp::Exch),
        _ => false,
    }
}

/// Whether `reduce_<op>` is defined on `scalar`.
pub fn reduce_supports(op: ReduceOp, scalar: Scalar) -> bool {
    match op {
        ReduceOp::Add | ReduceOp::Min | ReduceOp::Max => is_wide_number(scalar),
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => {
            scalar.is_integer() && is_wide_number(scalar)
        }
    }
}

/// Whether `shfl` moves a `scalar`: a number of 16 bits or more.
pub fn shuffle_supports(scalar: Scalar) -> bool {
    scalar.size() >= 2
}

/// Whether `scalar` is a number of 32 or 64 bits.
pub fn is_wide_number(scalar: Scalar) -> bool {
    scalar.size() >= 4
}

/// Whether `bitcast` goes between two types: different or not, scalars and vectors of numbers, of one size.
pub fn bitcast_supports(from: &Type, to: &Type) -> bool {
    let size = |ty: &Type| match ty {
        Type::Scalar(scalar) if *scalar != Scalar::Bool => Some(scalar.size()),
        Type::Vector(scalar, count) if *scalar != Scalar::Bool => {
            Some(scalar.size() * u64::from(*count))
        }
        _ => None,
    };
    size(from).is_some() && size(from) == size(to)
}
