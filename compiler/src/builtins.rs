//! The built-in operations of the language that are more than an operator.
//!
//! One table: the checker takes names and types from it, the IR names operations by it, codegen lowers it.

use crate::types::Scalar;

/// Read-modify-write operations on memory. All return the old value, relaxed, device scope.
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

/// The reach of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceScope {
    /// `fence_block()`
    Block,
    /// `fence_device()`
    Device,
    /// `fence_system()`
    System,
}

/// Mathematical functions on `f32` and `f64`; `Abs`, `Min`, `Max` also on integers.
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
}

impl MathOp {
    /// Every operation with its name in the language and its number of arguments.
    pub const ALL: [(MathOp, &'static str, usize); 19] = [
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
    ];

    /// Whether the operation is also defined on integers.
    pub fn on_integers(self) -> bool {
        matches!(self, MathOp::Abs | MathOp::Min | MathOp::Max)
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `sync_threads()`
    SyncThreads,
    /// `sync_warp(mask: u32)`
    SyncWarp,
    /// `shfl…(mask: u32, value: T, lane: u32) -> T`, `T` any 32- or 64-bit scalar.
    Shuffle(ShuffleMode),
    /// `ballot`, `any`, `all` `(mask: u32, predicate: bool)`
    Vote(VoteMode),
    /// `active_mask() -> u32`
    ActiveMask,
    /// `lane_id() -> u32`
    LaneId,
    /// `atomic_…(p: *mut T, value: T) -> T`. `T`: i32, u32, u64, i64 for all; f32, f64 for add and exch.
    Atomic(AtomicOp),
    /// `atomic_cas(p: *mut T, expected: T, new: T) -> T`, `T` an integer of 32 or 64 bits.
    AtomicCas,
    /// `fence_block()`, `fence_device()`, `fence_system()`
    Fence(FenceScope),
    /// See [`MathOp`]: all arguments and the result have one type.
    Math(MathOp),
    /// See [`BitOp`].
    Bit(BitOp),
    /// `printf("…", …) -> i32`: the format is kept beside the arguments.
    Printf,
    /// `trap()`: does not return.
    Trap,
    /// `clock64() -> u64`
    Clock64,
    /// `global_timer() -> u64`, in nanoseconds.
    GlobalTimer,
    /// `sm_id() -> u32`
    SmId,
}

impl Builtin {
    /// Every built-in but `printf`'s format with its name in the language, in the order of the reference.
    pub fn all() -> Vec<(&'static str, Builtin)> {
        let mut all = vec![
            ("sync_threads", Builtin::SyncThreads),
            ("sync_warp", Builtin::SyncWarp),
            ("shfl", Builtin::Shuffle(ShuffleMode::Index)),
            ("shfl_up", Builtin::Shuffle(ShuffleMode::Up)),
            ("shfl_down", Builtin::Shuffle(ShuffleMode::Down)),
            ("shfl_xor", Builtin::Shuffle(ShuffleMode::Xor)),
            ("ballot", Builtin::Vote(VoteMode::Ballot)),
            ("any", Builtin::Vote(VoteMode::Any)),
            ("all", Builtin::Vote(VoteMode::All)),
            ("active_mask", Builtin::ActiveMask),
            ("lane_id", Builtin::LaneId),
            ("atomic_add", Builtin::Atomic(AtomicOp::Add)),
            ("atomic_sub", Builtin::Atomic(AtomicOp::Sub)),
            ("atomic_min", Builtin::Atomic(AtomicOp::Min)),
            ("atomic_max", Builtin::Atomic(AtomicOp::Max)),
            ("atomic_and", Builtin::Atomic(AtomicOp::And)),
            ("atomic_or", Builtin::Atomic(AtomicOp::Or)),
            ("atomic_xor", Builtin::Atomic(AtomicOp::Xor)),
            ("atomic_exch", Builtin::Atomic(AtomicOp::Exch)),
            ("atomic_cas", Builtin::AtomicCas),
            ("fence_block", Builtin::Fence(FenceScope::Block)),
            ("fence_device", Builtin::Fence(FenceScope::Device)),
            ("fence_system", Builtin::Fence(FenceScope::System)),
            ("popc", Builtin::Bit(BitOp::Popc)),
            ("clz", Builtin::Bit(BitOp::Clz)),
            ("ctz", Builtin::Bit(BitOp::Ctz)),
            ("brev", Builtin::Bit(BitOp::Brev)),
            ("printf", Builtin::Printf),
            ("trap", Builtin::Trap),
            ("clock64", Builtin::Clock64),
            ("global_timer", Builtin::GlobalTimer),
            ("sm_id", Builtin::SmId),
        ];
        all.extend(MathOp::ALL.map(|(op, name, _)| (name, Builtin::Math(op))));
        all
    }

    /// The built-in of a name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::all().into_iter().find(|(known, _)| *known == name).map(|(_, builtin)| builtin)
    }

    /// The name in the language.
    pub fn name(self) -> &'static str {
        Builtin::all().into_iter().find(|(_, known)| *known == self).map_or("?", |(name, _)| name)
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
