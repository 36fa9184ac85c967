//! The columns of the table of built-ins.

use crate::types::{Scalar, Type};

/// The row of a built-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The types of the arguments, in language order.
    pub arguments: &'static [TypePattern],
    /// The type of the result.
    pub result: TypePattern,
    /// The types that `T` may stand for.
    pub types: Types,
    /// The side effects of a call.
    pub effect: Effect,
    /// The threads that a call waits for.
    pub waits: WaitsFor,
    /// The memory that a call accesses.
    pub memory: Memory,
    /// Whether the results differ between threads of a block.
    pub varies: Varies,
    /// The stage that replaces it.
    pub lowering: Lowering,
}

impl Properties {
    /// The number of arguments in the language; `None` if it varies.
    pub fn arity(&self) -> Option<usize> {
        (!self.arguments.contains(&TypePattern::Rest)).then_some(self.arguments.len())
    }

    /// Whether a call has a type argument, as in `size_of::<T>()`.
    pub fn takes_type(&self) -> bool {
        self.types == Types::Named
    }

    /// The first argument that `T` is inferred from: a `T` or a pointer to one.
    pub fn generic_argument(&self) -> Option<usize> {
        use TypePattern::{ConstPointer, MutPointer, T};
        self.arguments.iter().position(|ty| matches!(ty, T | MutPointer | ConstPointer))
    }

    /// Whether the result depends only on the arguments and a call has no side effects.
    pub fn is_function(&self) -> bool {
        self.effect.is_pure() && self.varies == Varies::WithArguments
    }
}

/// The type of an argument or of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// No value.
    Unit,
    /// `bool`
    Bool,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `stream`
    Stream,
    /// `*mut u8`; in the language, any pointer to mutable data.
    MutBytes,
    /// `*const u8`; in the language, any pointer.
    ConstBytes,
    /// The type that the built-in is generic in: one of [`Properties::types`].
    T,
    /// `*mut T`
    MutPointer,
    /// `*const T`; in the language, any pointer to `T`.
    ConstPointer,
    /// The name of an [`super::Order`], always last. It becomes part of the operation; the IR has no such
    /// argument.
    Order,
    /// A type that the checker and the verifier check by a special rule.
    Other,
    /// Any number of further arguments, also checked by a special rule.
    Rest,
}

impl TypePattern {
    /// The type, with `generic` for `T`. `None` for [`Order`](Self::Order), [`Other`](Self::Other) and
    /// [`Rest`](Self::Rest), and for a missing `generic`.
    pub fn with(self, generic: Option<&Type>) -> Option<Type> {
        let byte = Type::Scalar(Scalar::U8);
        Some(match self {
            TypePattern::Unit => Type::Unit,
            TypePattern::Bool => Type::BOOL,
            TypePattern::I32 => Type::I32,
            TypePattern::U32 => Type::U32,
            TypePattern::U64 => Type::U64,
            TypePattern::Stream => Type::Stream,
            TypePattern::MutBytes => Type::pointer_mut(byte),
            TypePattern::ConstBytes => Type::pointer_const(byte),
            TypePattern::T => generic?.clone(),
            TypePattern::MutPointer => Type::pointer_mut(generic?.clone()),
            TypePattern::ConstPointer => Type::pointer_const(generic?.clone()),
            TypePattern::Order | TypePattern::Other | TypePattern::Rest => return None,
        })
    }
}

/// The types that `T` may stand for in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// None: the built-in is not generic.
    None,
    /// The type argument of the call, as in `size_of::<T>()`.
    Named,
    /// Integers of 32 and 64 bits.
    WideIntegers,
    /// Numbers of 32 and 64 bits.
    WideNumbers,
    /// The same, for built-ins on bit patterns rather than numbers.
    WideScalars,
    /// Numbers of 16 bits or more.
    SixteenBitsOrMore,
    /// `f32` and `f64`. `f16` and `bf16` are excluded where devices do not round correctly: a `sin` of an
    /// `f16` would be that of the `f32`, rounded again, so programs write that explicitly (`sin(x as f32) as
    /// f16`).
    WideFloats,
    /// All floats.
    Floats,
    /// All numbers.
    Numbers,
}

impl Types {
    /// Whether `scalar` is one of them.
    pub fn has(self, scalar: Scalar) -> bool {
        match self {
            Types::None | Types::Named => false,
            Types::WideIntegers => scalar.is_integer() && scalar.size() >= 4,
            Types::WideNumbers | Types::WideScalars => scalar.size() >= 4,
            Types::SixteenBitsOrMore => scalar.size() >= 2,
            Types::WideFloats => scalar.is_float() && scalar.size() >= 4,
            Types::Floats => scalar.is_float(),
            Types::Numbers => scalar != Scalar::Bool,
        }
    }

    /// The description of one of them in messages.
    pub fn describe(self) -> &'static str {
        match self {
            Types::None => "nothing",
            Types::Named => "a type",
            Types::WideIntegers => "an integer of 32 or 64 bits",
            Types::WideNumbers => "a number of 32 or 64 bits",
            Types::WideScalars => "a scalar of 32 or 64 bits",
            Types::SixteenBitsOrMore => "a number of 16, 32 or 64 bits",
            Types::WideFloats => "an `f32` or `f64`",
            Types::Floats => "a float",
            Types::Numbers => "a float or an integer",
        }
    }
}

/// The side effects of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None, and the checker folds calls with constant arguments.
    Constant,
    /// None: a call may be moved or removed.
    Pure,
    /// Some: a call runs exactly where and as often as written.
    Acts,
    /// It does not return.
    Ends,
}

impl Effect {
    /// Whether a call may be moved or removed.
    pub fn is_pure(self) -> bool {
        matches!(self, Effect::Constant | Effect::Pure)
    }
}

/// The threads that a call waits for or reads values from. CPU images run kernels with such calls thread by
/// thread instead of in loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// None.
    No,
    /// Threads of the warp.
    Warp,
    /// All threads of the block: a barrier, which also orders their memory accesses.
    Block,
}

/// The memory that a call accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// None.
    None,
    /// The `T` that the first argument points to. The call does not keep the pointer.
    Atomic(Access),
    /// None, but it orders this thread's accesses.
    Fence,
    /// The device's heap.
    Heap,
    /// The strings that its arguments point to.
    Strings,
    /// The memory that its arguments point to, accessed by work in a stream: pointers to shared memory and
    /// local variables are rejected.
    Stream,
}

/// An atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read, whose result is the value read.
    Load,
    /// A write of the second argument.
    Store,
    /// A read and a write; the result is the value read.
    Update,
}

/// Whether the results differ between threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varies {
    /// All threads get the same result.
    Never,
    /// Threads with equal arguments get equal results, or it is unknown.
    WithArguments,
    /// Each thread may get another result.
    WithThread,
}

/// The stage that replaces a built-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// The checker; it never appears in a tree.
    Checker,
    /// `ir::build`, which composes it of other operations; it never appears in IR.
    Build,
    /// The launch stage, with calls of the device runtime.
    DeviceRuntime,
    /// `ir::expand`, with a function, for targets and types without that instruction; otherwise codegen.
    Expand(Instruction),
    /// Codegen.
    Codegen,
}

/// An instruction that only some targets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `redux.sync`
    Redux,
    /// `barrier.red`
    BarrierReduction,
}

/// Whether `bitcast` converts between two types: scalars and vectors of numbers of equal size.
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
