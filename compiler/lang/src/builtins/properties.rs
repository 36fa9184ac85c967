//! The columns of the table of built-ins.

use crate::types::{Scalar, Type};

/// The row of a built-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The types of the arguments, in the order of the language.
    pub arguments: &'static [TypePattern],
    /// The type of the value.
    pub result: TypePattern,
    /// The types that `T` stands for.
    pub types: Types,
    /// What a call does beside giving its value.
    pub effect: Effect,
    /// The threads that a call waits for.
    pub waits: WaitsFor,
    /// The memory that a call touches.
    pub memory: Memory,
    /// Whether threads of one block get different values.
    pub varies: Varies,
    /// The stage that replaces it.
    pub lowering: Lowering,
}

impl Properties {
    /// The number of arguments in the language; `None` if it varies.
    pub fn arity(&self) -> Option<usize> {
        (!self.arguments.contains(&TypePattern::Rest)).then_some(self.arguments.len())
    }

    /// Whether a call names a type, as in `size_of::<T>()`.
    pub fn takes_type(&self) -> bool {
        self.types == Types::Named
    }

    /// The first argument that `T` is inferred from: a `T` or a pointer to one.
    pub fn generic_argument(&self) -> Option<usize> {
        use TypePattern::{ConstPointer, MutPointer, T};
        self.arguments.iter().position(|ty| matches!(ty, T | MutPointer | ConstPointer))
    }

    /// Whether the value follows from the arguments alone and a call does nothing else.
    pub fn is_function(&self) -> bool {
        self.effect.is_pure() && self.varies == Varies::WithArguments
    }
}

/// The type of an argument or of a value.
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
    /// The type that the built-in is generic over: one of [`Properties::types`].
    T,
    /// `*mut T`
    MutPointer,
    /// `*const T`; in the language, any pointer to `T`.
    ConstPointer,
    /// The name of an [`super::Order`], always last. The operation keeps it; the IR has no such argument.
    Order,
    /// A type that the checker and the verifier judge by a rule of their own.
    Other,
    /// Any number of further arguments, judged likewise.
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

/// The types that `T` stands for in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// None: the built-in is not generic.
    None,
    /// The type that the call names, as in `size_of::<T>()`.
    Named,
    /// Integers of 32 and 64 bits.
    WideIntegers,
    /// Numbers of 32 and 64 bits.
    WideNumbers,
    /// The same, for built-ins that look at bits instead of numbers.
    WideScalars,
    /// Numbers of 16 bits or more.
    SixteenBitsOrMore,
    /// `f32` and `f64`. `f16` and `bf16` are left out where no device rounds correctly: a `sin` of one would be the
    /// `f32`'s, rounded again, and the program says that better itself (`sin(x as f32) as f16`).
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

    /// One of them, in the words of messages.
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

/// What a call does beside giving its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing, and the checker computes it if its arguments are constants.
    Constant,
    /// Nothing: it does not matter when or whether a call runs.
    Pure,
    /// Something: a call runs where and as often as the program says.
    Acts,
    /// It does not return.
    Ends,
}

impl Effect {
    /// Whether it does not matter when or whether a call runs.
    pub fn is_pure(self) -> bool {
        matches!(self, Effect::Constant | Effect::Pure)
    }
}

/// The threads that a call waits for, or looks at. Images for the CPU run such kernels thread by thread instead of in
/// loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// None.
    No,
    /// Threads of the warp.
    Warp,
    /// All threads of the block: a barrier, which also orders their accesses to memory.
    Block,
}

/// The memory that a call touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// None.
    None,
    /// The `T` that the first argument points to. The call keeps no copy of that pointer.
    Atomic(Access),
    /// None, but it orders this thread's accesses.
    Fence,
    /// The device's heap.
    Heap,
    /// Strings that its arguments point to.
    Strings,
    /// What its arguments point to, by work in a stream: pointers to shared memory and local variables are refused.
    Stream,
}

/// An atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read; the value is what was read.
    Load,
    /// A write of the second argument.
    Store,
    /// A read and a write; the value is what was read.
    Update,
}

/// Whether threads of one block get different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varies {
    /// All get the same.
    Never,
    /// Threads with the same arguments get the same, or it is not known.
    WithArguments,
    /// Each may get another.
    WithThread,
}

/// The stage that replaces a built-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// The checker; no tree has it.
    Checker,
    /// `ir::build`, by other operations; no IR has it.
    Build,
    /// The launch stage, by calls of the device runtime.
    DeviceRuntime,
    /// `ir::expand`, by a function, for targets and types without that instruction; otherwise codegen.
    Expand(Instruction),
    /// Codegen.
    Codegen,
}

/// An instruction that not all targets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `redux.sync`
    Redux,
    /// `match.any.sync`
    MatchAny,
    /// `barrier.red`
    BarrierReduction,
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
