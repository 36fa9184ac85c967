//! The IR: a typed control-flow graph between the checked tree and LLVM.
//!
//! # Rules
//! The verifier ([`verify`]) checks these rules; later stages rely on them without further checks.
//!
//! 1. **Values are typed.** Every instruction with a result carries its [`Type`]. Types are the language's:
//!    operands have signedness, operators do not. `*mut` and `*const` are the same type here ([`same_type`]),
//!    because the checker has already enforced write access. An instruction of type `Unit` has no result.
//! 2. **Values are local.** The result of an instruction may be used only after it in its block, and in
//!    blocks that its block dominates. There are no phis: a value that crosses a join lives in a *slot*.
//! 3. **Slots** are the function's local variables, in memory, uninitialised at entry. `Operand::Slot` is the
//!    address of a slot, of type `*mut T`.
//! 4. **Blocks** end in one [`Terminator`]. Block 0 is the entry and is never branched to; every other block
//!    is reachable from it. Every instruction belongs to exactly one block. Only entries of `extern kernel`s have no blocks.
//! 5. **Memory** is accessed by [`InstKind::Load`] and [`InstKind::Store`] through generic pointers. Only
//!    [`InstKind::ByteOffset`] contains an offset in bytes; field and element addresses are symbolic, and
//!    `layout` resolves them.
//! 6. **Kernels are entry points over bodies.** A [`Kernel`] has a body function with [`Role::Body`] that
//!    does the work, and an entry function with [`Role::Entry`] that is only a wrapper: it reads the geometry
//!    from the hardware and calls the body. Other wrappers over the same body are added as further functions, never by
//!    editing the body; the `launch` stage may add device functions that call bodies. An `extern kernel`, which another
//!    module defines, has only an entry, a function without blocks, and [`Kernel::body`] is that entry too.
//! 7. **Geometry is an argument.** A function with `takes_geometry` has [`Type::GEOMETRY`] as its first
//!    parameter. Bodies always take it; a device function takes it if it, or a function that it calls,
//!    reads it. Only entry functions may use [`InstKind::HardwareGeometry`], and device functions without that parameter that the
//!    `launch` stage adds for GPUs.
//! 8. **Launches are symbolic** ([`InstKind::Launch`]) until the `launch` stage replaces them by calls of
//!    [`Extern`] functions. Afterwards no `Launch` is left and [`Module::lowered`] is true.
//! 9. **Order is deterministic**: functions, globals, slots and instructions are in source order. No order
//!    depends on hashing, so the same source always has the same text form.
//! 10. **Integer arithmetic has no undefined cases.** Addition, subtraction, multiplication and negation
//!     wrap. `build` makes the rest safe, so that every back end may use the plain machine operation: before an
//!     integer `Div` or `Rem` it branches to a trap if the divisor is zero, unless the divisor's form excludes that;
//!     a signed divisor of -1 is replaced, so that the smallest value divided by -1 wraps to itself, with
//!     remainder 0; a shift count is reduced modulo the width of the shifted value. Other front ends get the guards of
//!     divisions from `Body::binary`, and mask shift counts themselves. The verifier sees only
//!     constants: it rejects a constant divisor of zero, or of -1 for a signed type, and a constant count out
//!     of range.
//! 11. **Evaluation goes from left to right** in source order: the left operand of a binary operator first,
//!     arguments in order, and the grid, block, shared bytes and stream of a launch before its arguments. An
//!     assignment first computes the address on its left, then the value, then (with an operator) reads the old
//!     value, and finally writes.

pub mod assigned;
pub mod build;
pub mod conditions;
pub mod counters;
pub mod dominators;
pub mod expand;
pub mod graph;
pub mod guards;
pub(crate) mod held;
pub mod loop_flags;
pub mod loops;
pub mod parse;
pub(crate) mod pointed;
pub mod print;
pub(crate) mod reach;
pub mod read_only;
pub mod symbol;
pub mod tables;
#[cfg(test)]
pub(crate) mod testing;
pub mod uniform;
pub mod verify;

use std::sync::Arc;

use gridlet_artifact::manifest::Resident;

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
    /// Kernels, in source order.
    pub kernels: Vec<Kernel>,
    /// Whether the `launch` stage has run.
    pub lowered: bool,
    /// What the manifest says about the kernel that runs resident launches, if the `launch` stage has added one.
    pub resident: Option<Resident>,
}

/// The field of [`Type::GEOMETRY`] with the base of the block's dynamic shared memory.
pub const GEOMETRY_DYNAMIC_SHARED: u32 = 4;

/// The memory of a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// One copy per block; never initialised.
    Shared,
    /// Device memory.
    Device,
    /// Device memory that is never written.
    Constant,
}

/// The initial value of a global.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// Uninitialised: only for [`Space::Shared`].
    Unset,
    /// All bytes zero.
    Zero,
    /// These bytes, as many as the type has.
    Bytes(Vec<u8>),
}

/// A variable of the source, for debuggers. No other stage reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the source.
    pub name: String,
    /// The name in its declaration.
    pub span: Span,
    /// The text in which the name means this variable; `None` for that of the whole function or module.
    pub scope: Option<Span>,
    /// The parameter that starts in it, an index into [`Function::parameters`].
    pub parameter: Option<u32>,
}

/// A variable outside functions. `Operand::Global` is its address, a generic `*mut T`.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its symbol, unique in the module.
    pub name: String,
    /// Its memory.
    pub space: Space,
    /// Its type. `layout` computes its size and alignment.
    pub ty: Type,
    /// Its initial value.
    pub init: Init,
    /// Whether the host can find it by name.
    pub exported: bool,
    /// The variable of the source that it holds; `None` for those of the compiler.
    pub variable: Option<Variable>,
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
    /// The name in its declaration, for an `extern fn`, which is called with the convention of CUDA's C
    /// functions. `None` for functions that only the compiler calls.
    pub span: Option<Span>,
}

/// The purpose of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A device function.
    Device,
    /// The body of a kernel, or its copy [`Kernel::whole`].
    Body(KernelId),
    /// An entry point of a kernel, launched by the host or the device runtime.
    Entry(KernelId),
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name; [`symbol::external`] derives the symbol of its entry from it.
    pub name: String,
    /// Its parameters, without the geometry.
    pub parameters: Vec<Parameter>,
    /// The function that does the work; the entry if another module defines the kernel ([`Kernel::is_extern`]).
    pub body: FunctionId,
    /// The ordinary entry point.
    pub entry: FunctionId,
    /// In a lowered module with resident launches, a copy of the body for warps whose lanes all have a thread of the block, or for
    /// blocks as large as a worker, if there is one: see `launch/resident/whole.rs`.
    pub whole: Option<FunctionId>,
    /// `#[launch_bounds]`.
    pub launch_bounds: Option<LaunchBounds>,
    /// `#[noalias]`: a promise about each grid of the kernel. Only the ordinary entry may rely on it: a body can run in a grid
    /// that lasts longer.
    pub noalias: bool,
    /// `#[fast_math]`: on GPUs, the kernel and the functions that it calls compute with `f32` as with nvcc's `-use_fast_math`.
    pub fast_math: bool,
    /// The name in its declaration.
    pub span: Span,
}

impl Kernel {
    /// The functions that do the kernel's work.
    pub fn bodies(&self) -> impl Iterator<Item = FunctionId> {
        [Some(self.body), self.whole].into_iter().flatten()
    }

    /// Whether this is an `extern kernel`: another module defines it, and this one only launches it.
    pub fn is_extern(&self) -> bool {
        self.body == self.entry
    }

    /// The entry of an `extern kernel`, which is only declared.
    pub(crate) fn declared_entry(&self, id: KernelId) -> Function {
        Function {
            name: self.name.clone(),
            role: Role::Entry(id),
            takes_geometry: false,
            parameters: self.parameters.clone(),
            result: Type::Unit,
            slots: vec![],
            instructions: vec![],
            blocks: vec![],
            addressed: vec![],
            span: self.span,
        }
    }
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
    /// Its name, for readers; the text form makes it unique.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it starts without a value, and so it or parts of it may be read before they are set. Images with checks find that.
    pub unset: bool,
    /// The variable of the source that it holds; `None` for a temporary.
    pub variable: Option<Variable>,
}

/// A variable of the source at an address that an instruction of the entry block computes.
#[derive(Clone, Debug)]
pub struct Addressed {
    /// The variable.
    pub variable: Variable,
    /// The instruction, whose result points to it.
    pub address: InstId,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its symbol: the kernel's name for an ordinary entry, `<kernel>.body` for a body.
    pub name: String,
    /// Its purpose.
    pub role: Role,
    /// Whether the first parameter is the geometry.
    pub takes_geometry: bool,
    /// The parameters, the geometry first if it takes one.
    pub parameters: Vec<Parameter>,
    /// The result type.
    pub result: Type,
    /// Its local variables.
    pub slots: Vec<Slot>,
    /// All its instructions, in any order; blocks refer to them.
    pub instructions: Vec<Inst>,
    /// Its blocks; the first is the entry.
    pub blocks: Vec<Block>,
    /// Variables of the source that are neither in slots nor globals.
    pub addressed: Vec<Addressed>,
    /// The name in its declaration.
    pub span: Span,
}

/// A basic block.
#[derive(Clone, Debug)]
pub struct Block {
    /// A readable name, unique in the function (`entry`, `while.body`, `if.then.2`).
    pub name: String,
    /// The instructions, in order.
    pub instructions: Vec<InstId>,
    /// The end of the block.
    pub terminator: Terminator,
    /// The position of the end, where it is known; otherwise it is that of the instruction before. The printed text leaves it out.
    pub end: Option<Span>,
    /// How to unroll the loop that starts here. The blocks that jump back to it come after it.
    pub unroll: Option<Unroll>,
}

/// The end of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// Continues with a block.
    Jump(BlockId),
    /// Continues with one of two blocks.
    Branch {
        /// A `bool`.
        condition: Operand,
        /// The target if true.
        then: BlockId,
        /// The target if false.
        otherwise: BlockId,
    },
    /// Returns; `None` if the function's result is `Unit`.
    Return(Option<Operand>),
    /// Unreachable, for example after a trap.
    Unreachable,
}

/// A value that an instruction uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The value of an instruction.
    Inst(InstId),
    /// A parameter of the function, the geometry included.
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
    /// All bytes zero, for any type but `Unit`; for example the null pointer.
    Zero(Type),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// The operation.
    pub kind: InstKind,
    /// The type of its result; `Unit` if it has none.
    pub ty: Type,
    /// Its position in the source.
    pub span: Span,
}

/// The stream of a launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Stream {
    /// CUDA's NULL stream.
    Default,
    /// Fire and forget.
    FireAndForget,
    /// Tail launch.
    Tail,
    /// A stream created on the device.
    Value(Operand),
}

/// A symbolic launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The kernel.
    pub kernel: KernelId,
    /// The number of blocks, a `dim3`.
    pub grid: Operand,
    /// The number of threads per block, a `dim3`.
    pub block: Operand,
    /// The size of the dynamic shared memory in bytes, a `u32`.
    pub shared: Operand,
    /// The stream.
    pub stream: Stream,
    /// The arguments, with the types of the kernel's parameters.
    pub arguments: Vec<Operand>,
    /// Whether this is a `try launch`, whose result is the status, an `i32`. Otherwise there is no result,
    /// and a failure is recorded.
    pub is_try: bool,
}

/// The operation of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum InstKind {
    /// Reads a value of the instruction's type through a pointer.
    Load(Operand),
    /// Writes `value` through `pointer`.
    Store {
        /// The destination.
        pointer: Operand,
        /// The value.
        value: Operand,
    },
    /// An operator on one value.
    Unary(UnaryOp, Operand),
    /// An operator on two values of the same type; shifts accept any integer as the count. Pointers can only
    /// be compared.
    Binary(BinaryOp, Operand, Operand),
    /// The counter of a loop plus its step, both integers of the same type. The sum fits the type: the loop ends where it
    /// would not, and back ends may rely on that.
    Advance(Operand, Operand),
    /// Converts to the instruction's type, like `as` in the language. An integer also converts to `bool`, which is whether it is
    /// not zero, and a `bool` to a float, 0 or 1.
    Cast(Operand),
    /// The second operand if the `bool` is true, otherwise the third.
    Select(Operand, Operand, Operand),
    /// The address of a field or element of the struct or vector that `base` points to.
    FieldAddress {
        /// A pointer to a struct or vector.
        base: Operand,
        /// The index, from 0.
        index: u32,
    },
    /// `base + index`, in elements of the type that `base` points to. The result has the type of `base`, or,
    /// if `base` points to an array, may be a pointer to its element.
    ElementAddress {
        /// A pointer.
        base: Operand,
        /// Any integer; sign- or zero-extended according to its type.
        index: Operand,
    },
    /// `left - right` in elements, an `i64`.
    PointerDifference(Operand, Operand),
    /// `base + bytes`, as a pointer of the instruction's type.
    ByteOffset {
        /// A pointer.
        base: Operand,
        /// The offset in bytes.
        bytes: u32,
    },
    /// Field `index` of a struct value, or element of a vector or array value.
    Extract {
        /// The aggregate.
        base: Operand,
        /// The index, from 0.
        index: u32,
    },
    /// A struct, vector or array built from all its parts.
    Aggregate(Vec<Operand>),
    /// A call of a function in this module. If the callee takes geometry, it is the first argument.
    Call {
        /// The function.
        function: FunctionId,
        /// All arguments.
        arguments: Vec<Operand>,
    },
    /// A call of a function that is only declared.
    CallExtern {
        /// The function.
        function: ExternId,
        /// All arguments.
        arguments: Vec<Operand>,
    },
    /// A built-in operation, with its arguments in the order given by [`Builtin`].
    Builtin {
        /// The operation.
        builtin: Builtin,
        /// The arguments; for `printf`, those after the format.
        arguments: Vec<Operand>,
        /// `printf`'s format: a NUL-terminated string in [`Space::Constant`].
        format: Option<GlobalId>,
    },
    /// The thread's geometry, as read from the hardware. Only in entry functions.
    HardwareGeometry,
    /// A launch. Absent after the `launch` stage.
    Launch(Box<Launch>),
}

/// Calls `$visit` with each operand of an instruction, in the order of the fields. Both of its users differ only in whether the operands
/// may change.
macro_rules! visit_operands {
    ($kind:expr, $visit:ident, $iter:ident $(, $mutable:tt)?) => {
        match $kind {
            InstKind::HardwareGeometry => {}
            InstKind::Load(operand)
            | InstKind::Unary(_, operand)
            | InstKind::Cast(operand)
            | InstKind::FieldAddress { base: operand, .. }
            | InstKind::ByteOffset { base: operand, .. }
            | InstKind::Extract { base: operand, .. } => $visit(operand),
            InstKind::Store { pointer: first, value: second }
            | InstKind::Binary(_, first, second)
            | InstKind::Advance(first, second)
            | InstKind::ElementAddress { base: first, index: second }
            | InstKind::PointerDifference(first, second) => {
                $visit(first);
                $visit(second);
            }
            InstKind::Select(condition, yes, no) => {
                [condition, yes, no].into_iter().for_each($visit)
            }
            InstKind::Aggregate(operands)
            | InstKind::Call { arguments: operands, .. }
            | InstKind::CallExtern { arguments: operands, .. }
            | InstKind::Builtin { arguments: operands, .. } => operands.$iter().for_each($visit),
            InstKind::Launch(launch) => {
                $visit(&$($mutable)? launch.grid);
                $visit(&$($mutable)? launch.block);
                $visit(&$($mutable)? launch.shared);
                if let Stream::Value(stream) = &$($mutable)? launch.stream {
                    $visit(stream);
                }
                launch.arguments.$iter().for_each($visit);
            }
        }
    };
}

impl InstKind {
    /// Whether it may write memory, or let other threads' writes be seen.
    pub fn may_write(&self) -> bool {
        match self {
            InstKind::Builtin { builtin, .. } => !builtin.properties().effect.is_pure(),
            InstKind::Store { .. }
            | InstKind::Call { .. }
            | InstKind::CallExtern { .. }
            | InstKind::Launch(_) => true,
            _ => false,
        }
    }

    /// Calls `visit` with each operand, in the order of the fields.
    pub fn for_each_operand(&self, mut visit: impl FnMut(&Operand)) {
        visit_operands!(self, visit, iter);
    }

    /// Calls `visit` with each operand, in the order of the fields, to change it.
    pub fn for_each_operand_mut(&mut self, mut visit: impl FnMut(&mut Operand)) {
        visit_operands!(self, visit, iter_mut, mut);
    }
}

impl Terminator {
    /// The possible next blocks.
    pub fn successors(&self) -> impl Iterator<Item = BlockId> + use<> {
        let (first, second) = match self {
            Terminator::Jump(target) => (Some(*target), None),
            Terminator::Branch { then, otherwise, .. } => (Some(*then), Some(*otherwise)),
            Terminator::Return(_) | Terminator::Unreachable => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// Whether two types are the same, ignoring the mutability of pointers in them.
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
    /// The function with an id.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// The kernel with an id.
    pub fn kernel(&self, id: KernelId) -> &Kernel {
        &self.kernels[id.index()]
    }

    /// The kernels that another module defines, in source order.
    pub fn extern_kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter().filter(|kernel| kernel.is_extern())
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

    /// Its value, if its type is an integer.
    pub fn integer(&self) -> Option<i128> {
        match self {
            Const::Int(_, value) => Some(*value),
            Const::Zero(Type::Scalar(scalar)) if scalar.is_integer() => Some(0),
            _ => None,
        }
    }
}
