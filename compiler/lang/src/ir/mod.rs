//! The IR: a typed control-flow graph, between the checked tree and LLVM.
//!
//! # Rules
//! The verifier ([`verify`]) checks each of them; later stages rely on them and do not look again.
//!
//! 1. **Values are typed.** Every instruction that gives a value carries its [`Type`]. Types are the
//!    language's: signedness lies in the operands, not in the operator. `*mut` and `*const` are one type
//!    here ([`same_type`]): the checker has already said who may write. An instruction of type `Unit`
//!    gives no value.
//! 2. **Values are local.** An instruction's value may be used only in blocks that its block dominates,
//!    and after it within its block. There are no phis: what must survive a join lives in a *slot*.
//! 3. **Slots** are the function's local variables, in memory, unset at entry. `Operand::Slot` is the
//!    address of one, of type `*mut T`.
//! 4. **Blocks** end in one [`Terminator`]. Block 0 is the entry and is never branched to; every other
//!    block can be reached from it. Every instruction stands in exactly one block.
//! 5. **Memory** is reached by [`InstKind::Load`] and [`InstKind::Store`] through generic pointers.
//!    No instruction but [`InstKind::ByteOffset`] knows an offset in bytes; field and element
//!    addresses are symbolic, and `layout` says what they are.
//! 6. **Kernels are entry points over bodies.** A [`Kernel`] has a body function with
//!    [`Role::Body`] that does the work and an entry function with [`Role::Entry`], all whose
//!    instructions are wrapper: it reads the geometry from the hardware and calls the body.
//!    Other wrappers over the same body (a serial clone, a resident dispatcher) are added as more entry
//!    functions, never by editing the body.
//! 7. **Geometry is an argument.** A function with `takes_geometry` has [`Type::GEOMETRY`] as its first
//!    parameter. Bodies always take it; a device function takes it if it, or a function that it calls,
//!    reads it. Only entry functions may use [`InstKind::HardwareGeometry`].
//! 8. **Launches are symbolic** ([`InstKind::Launch`]) until the `launch` stage has replaced them by
//!    calls of [`Extern`] functions. After it, no `Launch` is left ([`Module::lowered`] is true).
//! 9. **Order is meaning**: the order of functions, globals, slots and instructions is that of the
//!    source. Nothing is hashed, so the text form is a function of the source.
//! 10. **Integer arithmetic has no undefined cases.** Addition, subtraction, multiplication and negation
//!     wrap. `build` makes the rest safe, so that every back end may use the plain machine operation:
//!     before an integer `Div` or `Rem` by anything but a non-zero constant it branches to a trap if the
//!     divisor is zero; a signed divisor of -1 is replaced, so that the smallest value divided by -1 wraps
//!     to itself, with remainder 0; the count of a shift is reduced to below the width of what is shifted.
//!     The verifier sees only constants: it refuses a constant divisor of zero, or of -1 for a signed
//!     type, and a constant count out of range.
//! 11. **Evaluation goes from left to right** as the source is written: a binary operator's left side
//!     first, arguments in order, the grid, the block, the shared bytes and the stream of a launch before
//!     its arguments. An assignment computes the address on its left, then the value, then, with an
//!     operator, reads the old value, and writes.

pub mod build;
pub mod expand;
pub mod graph;
pub mod guards;
pub mod loops;
pub mod parse;
pub mod print;
mod reach;
pub mod symbol;
#[cfg(test)]
pub(crate) mod testing;
pub mod verify;

use std::sync::Arc;

use crate::builtins::Builtin;
pub use crate::check::tree::{BinaryOp, LaunchBounds, UnaryOp, Unroll};
use crate::source::{SourceMap, Span};
use crate::types::{Scalar, Structs, Type};

/// Declares an index type.
macro_rules! index {
    ($(#[$doc:meta] $name:ident),* $(,)?) => { $(
        #[$doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The index as a `usize`.
            pub fn index(self) -> usize { self.0 as usize }
        }
    )* };
}
index! {
    /// Index into [`Module::functions`].
    FunctionId,
    /// Index into [`Module::kernels`].
    KernelId,
    /// Index into [`Module::globals`].
    GlobalId,
    /// Index into [`Module::externs`].
    ExternId,
    /// Index into [`Function::slots`].
    SlotId,
    /// Index into [`Function::instructions`].
    InstId,
    /// Index into [`Function::blocks`].
    BlockId,
}

/// A program in IR.
#[derive(Clone, Debug)]
pub struct Module {
    /// The sources, for positions in messages and in lost-launch records.
    pub sources: Arc<SourceMap>,
    /// All structs.
    pub structs: Structs,
    /// Shared variables, device globals and strings.
    pub globals: Vec<Global>,
    /// Functions that another module or the device runtime defines.
    pub externs: Vec<Extern>,
    /// Device functions, bodies and entries.
    pub functions: Vec<Function>,
    /// Kernels, in the order of the source.
    pub kernels: Vec<Kernel>,
    /// Whether the `launch` stage has run.
    pub lowered: bool,
}

/// Field of [`Type::GEOMETRY`] with the base of the block's dynamic shared memory.
pub const GEOMETRY_DYNAMIC_SHARED: u32 = 4;

/// Where a global lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// One copy per block; never initialised.
    Shared,
    /// Device memory.
    Device,
    /// Device memory that nothing writes.
    Constant,
}

/// What a global starts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// Unset: only for [`Space::Shared`].
    Unset,
    /// All bytes zero.
    Zero,
    /// These bytes: as many as the type has.
    Bytes(Vec<u8>),
}

/// A variable outside functions. `Operand::Global` is its address, a generic `*mut T`.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its symbol, unique in the module.
    pub name: String,
    /// Where it lies.
    pub space: Space,
    /// Its type. Size and alignment are `layout`'s.
    pub ty: Type,
    /// What it starts as.
    pub init: Init,
    /// Whether the host finds it by name.
    pub exported: bool,
}

/// A function that is only declared. Aggregates are passed by value, as LLVM's first-class structs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extern {
    /// Its symbol.
    pub name: String,
    /// Types of its parameters.
    pub parameters: Vec<Type>,
    /// Type of its result, or `Unit`.
    pub result: Type,
    /// The name in its declaration, for an `extern fn`: it is called as C functions of CUDA are. `None` for what
    /// the compiler calls by itself.
    pub span: Option<Span>,
}

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A device function.
    Device,
    /// The body of a kernel.
    Body(KernelId),
    /// An entry point of a kernel: what the host or the device runtime launches.
    Entry(KernelId),
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name, which [`symbol::external`] makes the symbol of its entry.
    pub name: String,
    /// Its parameters, without the geometry.
    pub parameters: Vec<Parameter>,
    /// The function with the work.
    pub body: FunctionId,
    /// The ordinary entry point.
    pub entry: FunctionId,
    /// `#[launch_bounds]`.
    pub launch_bounds: Option<LaunchBounds>,
    /// The name in its declaration.
    pub span: Span,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A local variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its name, for readers; made unique by the text form.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its symbol: the kernel's name for an ordinary entry, `<kernel>.body` for a body.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Whether the first parameter is the geometry.
    pub takes_geometry: bool,
    /// The parameters, the geometry first if it takes one.
    pub parameters: Vec<Parameter>,
    /// What it returns.
    pub result: Type,
    /// Its local variables.
    pub slots: Vec<Slot>,
    /// All its instructions; blocks say which run where.
    pub instructions: Vec<Inst>,
    /// Its blocks; the first is the entry.
    pub blocks: Vec<Block>,
    /// The name in its declaration.
    pub span: Span,
}

/// A straight run of instructions.
#[derive(Clone, Debug)]
pub struct Block {
    /// A readable name, unique in the function (`entry`, `while.body`, `if.then.2`).
    pub name: String,
    /// The instructions, in order.
    pub instructions: Vec<InstId>,
    /// What follows.
    pub terminator: Terminator,
    /// How the loop that starts here shall be unrolled. Blocks that jump back to it come after it.
    pub unroll: Option<Unroll>,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// Goes on with a block.
    Jump(BlockId),
    /// Goes on with one of two blocks.
    Branch {
        /// A `bool`.
        condition: Operand,
        /// When true.
        then: BlockId,
        /// When false.
        otherwise: BlockId,
    },
    /// Returns; `None` if the function's result is `Unit`.
    Return(Option<Operand>),
    /// Is never reached, after a trap for example.
    Unreachable,
}

/// A value that an instruction uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The value of an instruction.
    Inst(InstId),
    /// A parameter of the function, the geometry counted.
    Parameter(u32),
    /// The address of a slot.
    Slot(SlotId),
    /// The address of a global.
    Global(GlobalId),
    /// The address of a kernel's ordinary entry, a `*const u8`.
    Kernel(KernelId),
    /// A constant.
    Const(Const),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Const {
    /// An integer: the low bits of `value` in two's complement.
    Int(Scalar, i128),
    /// A float, already rounded to the type.
    Float(Scalar, f64),
    /// A `bool`.
    Bool(bool),
    /// All bytes zero, of any type but `Unit`: the null pointer, for example.
    Zero(Type),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// What it does.
    pub kind: InstKind,
    /// The type of its value; `Unit` if it gives none.
    pub ty: Type,
    /// Where in the source it comes from.
    pub span: Span,
}

/// Where a launch goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Stream {
    /// CUDA's NULL stream.
    Default,
    /// Fire and forget.
    FireAndForget,
    /// Tail launch.
    Tail,
    /// A stream made on the device.
    Value(Operand),
}

/// A launch that is not lowered yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The kernel.
    pub kernel: KernelId,
    /// Blocks: a `dim3`.
    pub grid: Operand,
    /// Threads of a block: a `dim3`.
    pub block: Operand,
    /// Dynamic shared memory in bytes: a `u32`.
    pub shared: Operand,
    /// The stream.
    pub stream: Stream,
    /// The arguments, of the kernel's parameters' types.
    pub arguments: Vec<Operand>,
    /// `try launch`: the value is the status, an `i32`. Otherwise it gives no value, and a failure is
    /// recorded.
    pub is_try: bool,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
pub enum InstKind {
    /// Reads a value of the instruction's type from a pointer to it.
    Load(Operand),
    /// Writes `value` through `pointer`.
    Store {
        /// Where to.
        pointer: Operand,
        /// What.
        value: Operand,
    },
    /// An operator on one value.
    Unary(UnaryOp, Operand),
    /// An operator on two values of one type; shifts take any integer as the count. Pointers only compare.
    Binary(BinaryOp, Operand, Operand),
    /// Converts to the instruction's type, as the language's `as` does.
    Cast(Operand),
    /// The second value if the `bool` is true, else the third.
    Select(Operand, Operand, Operand),
    /// The address of a field of the struct, or of an element of the vector, that `base` points to.
    FieldAddress {
        /// A pointer to a struct or vector.
        base: Operand,
        /// Which, from 0.
        index: u32,
    },
    /// `base + index`, in elements of what `base` points to. The result has `base`'s type, or, where
    /// `base` points to an array, may be a pointer to its element.
    ElementAddress {
        /// A pointer.
        base: Operand,
        /// Any integer; sign-extended or zero-extended by its type.
        index: Operand,
    },
    /// `left - right` in elements, an `i64`.
    PointerDifference(Operand, Operand),
    /// `base + bytes`, as a pointer of the instruction's type.
    ByteOffset {
        /// A pointer.
        base: Operand,
        /// How far, in bytes.
        bytes: u32,
    },
    /// Field `index` of a struct value, or element of a vector or array value.
    Extract {
        /// The aggregate.
        base: Operand,
        /// Which, from 0.
        index: u32,
    },
    /// A struct, vector or array from all its parts.
    Aggregate(Vec<Operand>),
    /// A call of a function in this module. If the callee takes geometry, it is the first argument.
    Call {
        /// Which.
        function: FunctionId,
        /// All its arguments.
        arguments: Vec<Operand>,
    },
    /// A call of a function that is only declared.
    CallExtern {
        /// Which.
        function: ExternId,
        /// All its arguments.
        arguments: Vec<Operand>,
    },
    /// A built-in operation on its arguments in the order of [`Builtin`].
    Builtin {
        /// Which.
        builtin: Builtin,
        /// Its arguments; for `printf` those after the format.
        arguments: Vec<Operand>,
        /// `printf`'s format: a NUL-terminated string in [`Space::Constant`].
        format: Option<GlobalId>,
    },
    /// The thread's own geometry as the hardware has it. Only in entry functions.
    HardwareGeometry,
    /// A launch. Gone after the `launch` stage.
    Launch(Box<Launch>),
}

impl InstKind {
    /// Calls `visit` with each value that the instruction uses, in the order of its fields.
    pub fn for_each_operand(&self, mut visit: impl FnMut(&Operand)) {
        match self {
            InstKind::HardwareGeometry => {}
            InstKind::Load(operand)
            | InstKind::Unary(_, operand)
            | InstKind::Cast(operand)
            | InstKind::FieldAddress { base: operand, .. }
            | InstKind::ByteOffset { base: operand, .. }
            | InstKind::Extract { base: operand, .. } => visit(operand),
            InstKind::Store { pointer: first, value: second }
            | InstKind::Binary(_, first, second)
            | InstKind::ElementAddress { base: first, index: second }
            | InstKind::PointerDifference(first, second) => {
                visit(first);
                visit(second);
            }
            InstKind::Select(condition, yes, no) => {
                [condition, yes, no].into_iter().for_each(visit)
            }
            InstKind::Aggregate(operands)
            | InstKind::Call { arguments: operands, .. }
            | InstKind::CallExtern { arguments: operands, .. }
            | InstKind::Builtin { arguments: operands, .. } => operands.iter().for_each(visit),
            InstKind::Launch(launch) => {
                [&launch.grid, &launch.block, &launch.shared].into_iter().for_each(&mut visit);
                if let Stream::Value(stream) = &launch.stream {
                    visit(stream);
                }
                launch.arguments.iter().for_each(visit);
            }
        }
    }
}

impl Terminator {
    /// The blocks that may follow.
    pub fn successors(&self) -> impl Iterator<Item = BlockId> + use<> {
        let (first, second) = match self {
            Terminator::Jump(target) => (Some(*target), None),
            Terminator::Branch { then, otherwise, .. } => (Some(*then), Some(*otherwise)),
            Terminator::Return(_) | Terminator::Unreachable => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// Whether two types are one, whatever pointers in them say of writing.
pub fn same_type(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Pointer { pointee: left, .. }, Type::Pointer { pointee: right, .. }) => {
            same_type(left, right)
        }
        (Type::Array(left, left_count), Type::Array(right, right_count)) => {
            left_count == right_count && same_type(left, right)
        }
        _ => left == right,
    }
}

impl Module {
    /// The function of an id.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// The kernel of an id.
    pub fn kernel(&self, id: KernelId) -> &Kernel {
        &self.kernels[id.index()]
    }

    /// The type of a value used in `function`.
    pub fn operand_type(&self, function: &Function, operand: &Operand) -> Type {
        match operand {
            Operand::Inst(id) => function.instructions[id.index()].ty.clone(),
            Operand::Parameter(at) => function.parameters[*at as usize].ty.clone(),
            Operand::Slot(id) => Type::pointer_mut(function.slots[id.index()].ty.clone()),
            Operand::Global(id) => Type::pointer_mut(self.globals[id.index()].ty.clone()),
            Operand::Kernel(_) => Type::pointer_const(Type::Scalar(Scalar::U8)),
            Operand::Const(constant) => constant.ty(),
        }
    }
}

impl Const {
    /// Its type.
    pub fn ty(&self) -> Type {
        match self {
            Const::Int(scalar, _) | Const::Float(scalar, _) => Type::Scalar(*scalar),
            Const::Bool(_) => Type::BOOL,
            Const::Zero(ty) => ty.clone(),
        }
    }
}
