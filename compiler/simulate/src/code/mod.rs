//! Functions in the form in which they are run: operands are byte offsets in the frame of a call, sizes are resolved.
//!
//! A frame holds the parameters, the results of instructions and the slots of one call. A value has the form that it has in
//! memory; one of up to 8 bytes fills its 8 bytes with zeros, so that a scalar is read as a `u64`.

mod decode;
mod function;

use gridlet_lang::builtins::{AtomicOp, Builtin};
use gridlet_lang::ir::{BinaryOp, UnaryOp};
use gridlet_lang::source::Span;
use gridlet_lang::types::Scalar;

pub(crate) use decode::{Code, Entry};

/// Where an operand is: an offset in the frame, or, with the top bit, among the function's constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

const CONSTANT: u32 = 1 << 31;

impl Place {
    fn frame(offset: u32) -> Self {
        Place(offset)
    }

    fn constant(offset: u32) -> Self {
        Place(offset | CONSTANT)
    }

    /// The place `bytes` further on.
    fn plus(self, bytes: u32) -> Self {
        Place(self.0 + bytes)
    }

    /// The offset among the constants, or else in the frame.
    pub(crate) fn split(self) -> (bool, usize) {
        (self.0 & CONSTANT != 0, (self.0 & !CONSTANT) as usize)
    }
}

/// One operation. `to` is the offset of its result in the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// A value of `bytes`, as a whole result.
    Get {
        to: u32,
        from: Place,
        bytes: u32,
    },
    /// A value of `bytes`, into a part of a slot or of a result.
    Put {
        to: u32,
        from: Place,
        bytes: u32,
    },
    /// The address of a place in the frame.
    FrameAddress {
        to: u32,
        offset: u32,
    },
    /// The address of a variable in shared memory.
    SharedAddress {
        to: u32,
        offset: u32,
    },
    Load {
        to: u32,
        pointer: Place,
        bytes: u32,
        alignment: u32,
    },
    Store {
        pointer: Place,
        from: Place,
        bytes: u32,
        alignment: u32,
    },
    Unary {
        op: UnaryOp,
        scalar: Scalar,
        to: u32,
        value: Place,
    },
    Binary {
        op: BinaryOp,
        scalar: Scalar,
        to: u32,
        left: Place,
        right: Place,
    },
    Cast {
        from: Scalar,
        to_scalar: Scalar,
        to: u32,
        value: Place,
    },
    Select {
        to: u32,
        condition: Place,
        yes: Place,
        no: Place,
        bytes: u32,
    },
    /// `base + bytes`
    Offset {
        to: u32,
        base: Place,
        bytes: u32,
    },
    /// `base + index * stride`
    Element {
        to: u32,
        base: Place,
        index: Place,
        scalar: Scalar,
        stride: u32,
    },
    Difference {
        to: u32,
        left: Place,
        right: Place,
        size: u32,
    },
    Atomic {
        op: AtomicOp,
        scalar: Scalar,
        to: u32,
        pointer: Place,
        value: Place,
    },
    AtomicCas {
        to: u32,
        pointer: Place,
        expected: Place,
        new: Place,
        bytes: u32,
    },
    AtomicLoad {
        to: u32,
        pointer: Place,
        bytes: u32,
        acquire: bool,
    },
    AtomicStore {
        pointer: Place,
        value: Place,
        bytes: u32,
        release: bool,
    },
    /// Between blocks. A block sees its own accesses without.
    Fence {
        acquires: bool,
        releases: bool,
    },
    /// Index into [`Function::calls`].
    Call(u32),
    /// Index into [`Function::builtins`].
    Builtin(u32),
    Geometry {
        to: u32,
    },
    Jump(u32),
    Branch {
        condition: Place,
        then: u32,
        otherwise: u32,
    },
    Return {
        from: Place,
        bytes: u32,
    },
    Unreachable,
}

/// A call of a function of the module.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: u32,
    /// Each argument's place, offset in the callee's frame, and bytes.
    pub(crate) arguments: Vec<(Place, u32, u32)>,
    pub(crate) to: u32,
}

/// What a [`BuiltinCall`] calls.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Builtin(Builtin),
    /// `gridlet.hardware_barrier(id, threads)`
    NamedBarrier,
    /// `gridlet.hardware_acquire()`, `gridlet.hardware_release()`, and those of a block.
    Fence {
        acquires: bool,
        releases: bool,
    },
    /// `gridlet.hardware_sleep(ns)`
    Sleep,
    /// `gridlet.hardware_thread()`
    HardwareThread,
    /// `gridlet.hardware_shared()`
    DynamicShared,
    /// `gridlet.hardware_global(address)`
    GlobalPointer,
    /// Any other function that the module only declares: running it is a failure.
    Unknown(String),
}

/// An argument of a [`BuiltinCall`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    pub(crate) place: Place,
    /// Its type, if it is a scalar; `U64` for a pointer.
    pub(crate) scalar: Option<Scalar>,
}

/// A call of a built-in that is no plain operation, or of a function of the device.
#[derive(Clone, Debug)]
pub(crate) struct BuiltinCall {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) to: u32,
    /// The type of the result, if it is a scalar.
    pub(crate) scalar: Option<Scalar>,
    /// The address of `printf`'s format.
    pub(crate) format: u64,
}

/// A function in the form in which it is run.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    /// The position of each operation.
    pub(crate) spans: Vec<Span>,
    /// The first operation of each block, with its name.
    pub(crate) blocks: Vec<(u32, String)>,
    pub(crate) constants: Vec<u8>,
    pub(crate) calls: Vec<Call>,
    pub(crate) builtins: Vec<BuiltinCall>,
    /// Offset and bytes of each parameter in the frame.
    pub(crate) parameters: Vec<(u32, u32)>,
    pub(crate) frame_bytes: usize,
}
