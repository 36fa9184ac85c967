//! The operations, modes and scopes of the built-ins that come in families.

use super::{Access, Builtin};
use crate::types::Scalar;

/// Atomic read-modify-write operations. All return the old value; their order is relaxed.
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

/// How a warp shuffle selects its source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShuffleMode {
    /// `shfl(m, v, lane)`: an absolute lane.
    Index,
    /// `shfl_up`: the lane that many places below.
    Up,
    /// `shfl_down`: the lane that many places above.
    Down,
    /// `shfl_xor`: the own lane XOR the operand.
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

/// The observers of a fence or an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The threads of the block: `fence_block()`, `atomic_…_block`.
    Block,
    /// All threads of the device: `fence_device()`, `atomic_…`.
    Device,
    /// The host and other devices too: `fence_system()`, `atomic_…_system`.
    System,
}

/// The memory order of `atomic_load…` and `atomic_store…`, written as their last argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// `relaxed`
    Relaxed,
    /// `acquire`: only for loads.
    Acquire,
    /// `release`: only for stores.
    Release,
}

impl Order {
    /// Every order with its name.
    pub const ALL: [(Order, &'static str); 3] =
        [(Order::Relaxed, "relaxed"), (Order::Acquire, "acquire"), (Order::Release, "release")];

    /// Whether an access can have this order.
    pub fn suits(self, access: Access) -> bool {
        match self {
            Order::Relaxed => true,
            Order::Acquire => access == Access::Load,
            Order::Release => access == Access::Store,
        }
    }

    /// The name in the language and in PTX.
    pub fn name(self) -> &'static str {
        Order::ALL.iter().find(|(known, _)| *known == self).map_or("?", |(_, name)| name)
    }
}

/// A reduction of a `bool` per thread over the block, combined with a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockReduceOp {
    /// `sync_threads_count`: the number of threads where it is true, `u32`.
    Count,
    /// `sync_threads_and`: whether it is true in all threads.
    And,
    /// `sync_threads_or`: whether it is true in any thread.
    Or,
}

/// A reduction of a value per lane over the lanes of a mask.
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

/// Mathematical functions on floats; some also on integers: see [`MathOp::supports`].
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
    /// Every operation with its name and number of arguments.
    pub fn all() -> impl Iterator<Item = (MathOp, &'static str, usize)> {
        Builtin::ALL.iter().filter_map(|builtin| match builtin {
            Builtin::Math(op) => Some((*op, builtin.name(), builtin.properties().arguments.len())),
            _ => None,
        })
    }

    /// Whether the operation is defined on `scalar`.
    pub fn supports(self, scalar: Scalar) -> bool {
        Builtin::Math(self).properties().types.has(scalar)
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
