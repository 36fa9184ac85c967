//! The typed tree: the representation of a program that passed all checks.
//!
//! Names are resolved, every expression has its type, constants are folded to literals, and nothing is left
//! to infer. Invariants, on which `ir::build` relies:
//! - A *place* is an expression whose kind is `Local`, `Shared`, `Static`, `Deref`, `Index`, or a `Field` of
//!   a place. Only places are assigned to or have their address taken.
//! - `Binary` has two operands of the same type, except shifts (any integer as the count), pointer plus or
//!   minus integer, and pointer minus pointer (an `i64`, in elements).
//! - `Assign` with an operator: the value has the type that `Binary` with that operator requires.
//! - `&&` and `||` are `Logical`: the right operand is evaluated only if it decides the result.
//! - Chains of left operands may be arbitrarily deep (see [`crate::chain`]); otherwise the tree is no higher
//!   than the syntax tree may be.
//! - Signedness is a property of the operand types; there are no separate signed and unsigned operators.

use crate::builtins::Builtin;
use crate::chain::{Chained, Left};
pub use crate::operators::{BinaryOp, UnaryOp};
use crate::source::Span;
use crate::types::{Structs, Type};

/// Index of a local variable or parameter in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub u32);

/// Index of a `shared` variable in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedId(pub u32);

/// Index of a `static` variable in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StaticId(pub u32);

/// Index of a function or kernel in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// Index of an `extern fn` in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExternId(pub u32);

/// A checked program. The functions come in source order, followed by instances of functions with const
/// parameters in the order of their first use.
#[derive(Clone, Debug)]
pub struct Program {
    /// All structs, the built-in ones first.
    pub structs: Structs,
    /// `static` variables, in source order.
    pub statics: Vec<Static>,
    /// Functions that other modules define, in source order.
    pub externs: Vec<Extern>,
    /// Device functions and kernels.
    pub functions: Vec<Function>,
}

/// An `extern fn`.
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its name, which is its symbol.
    pub name: String,
    /// The types of its parameters: numbers, `bool`, pointers, streams, vectors and structs.
    pub parameters: Vec<Type>,
    /// Its result type: `Unit`, a number, `bool`, a pointer or a stream.
    pub result: Type,
    /// The name in its declaration.
    pub span: Span,
}

/// A `static` variable, or a constant that is a vector, a struct or an array.
#[derive(Clone, Debug)]
pub struct Static {
    /// Its name, which is also the symbol of a `static` for the host.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its initial value: `Int`, `Float`, `Bool`, and `Aggregate`, `Array` and `ArrayRepeat` of these; an
    /// `Int` may be inside a `Cast` to a pointer.
    pub value: Expr,
    /// Whether it is a constant: nothing writes to it, and the host cannot see it.
    pub is_constant: bool,
    /// The name in its declaration.
    pub span: Span,
}

/// A device function or a kernel.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// `Some` for a kernel.
    pub kernel: Option<KernelAttributes>,
    /// The parameters: the first of `locals`, in order.
    pub parameter_count: usize,
    /// Parameters and local variables. Names may repeat.
    pub locals: Vec<Local>,
    /// `shared` variables, in source order.
    pub shared: Vec<Local>,
    /// The result type; `Unit` for kernels.
    pub result: Type,
    /// The body. If `result` is not `Unit`, its value or a `return` on every path provides the result.
    pub body: Block,
    /// The name in its declaration.
    pub span: Span,
}

impl Function {
    /// The parameters.
    pub fn parameters(&self) -> &[Local] {
        &self.locals[..self.parameter_count]
    }
}

/// Properties of a kernel beside its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KernelAttributes {
    /// `#[launch_bounds(threads[, blocks])]`.
    pub launch_bounds: Option<LaunchBounds>,
    /// `#[noalias]`.
    pub noalias: bool,
    /// `#[fast_math]`.
    pub fast_math: bool,
    /// Whether it is an `extern kernel`, which another module defines. Its body is empty.
    pub is_extern: bool,
}

/// `#[launch_bounds(max_threads, min_blocks)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Maximum number of threads per block.
    pub max_threads: u32,
    /// Minimum number of blocks resident per SM.
    pub min_blocks: Option<u32>,
}

impl LaunchBounds {
    /// Whether the blocks of a kernel with these bounds, if any, have one thread.
    pub fn is_one_thread(bounds: Option<LaunchBounds>) -> bool {
        bounds.is_some_and(|bounds| bounds.max_threads == 1)
    }
}

/// How to unroll a loop: `#[unroll]`, `#[unroll(n)]`, or what the compiler itself knows of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    /// All iterations, if their number is known at compile time.
    Full,
    /// Only if the number of iterations is known at compile time.
    Known,
    /// This many iterations at a time; 1 keeps the loop as it is.
    Count(u32),
}

/// A parameter, local or shared variable.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The name in its declaration.
    pub span: Span,
    /// The text in which the name means this variable: from the end of its declaration to that of the block.
    pub scope: Span,
    /// The kind of its declaration.
    pub declared: Declared,
}

/// The kinds of declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// `let`.
    Let {
        /// `mut`.
        mutable: bool,
    },
    /// A parameter of the function.
    Parameter {
        /// `mut`.
        mutable: bool,
    },
    /// `for`.
    Loop,
    /// `shared`.
    Shared,
    /// A temporary added by the checker.
    Checker,
}

/// Statements and an optional value.
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Statement>,
    /// The value; without one the block is `Unit`.
    pub value: Option<Box<Expr>>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The kind of statement.
    pub kind: StatementKind,
    /// Its span.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `let x = e;` Without a value the variable is unset until it is assigned.
    Let {
        /// The variable.
        local: LocalId,
        /// Its first value.
        value: Option<Expr>,
    },
    /// `place = value;` or `place op= value;`. The place is evaluated once.
    Assign {
        /// The destination.
        place: Expr,
        /// The operator of `op=`.
        op: Option<BinaryOp>,
        /// The value.
        value: Expr,
    },
    /// An expression whose value is dropped.
    Expr(Expr),
    /// `while condition { … }`
    While {
        /// A `bool`.
        condition: Expr,
        /// The body.
        body: Block,
        /// `#[unroll]`
        unroll: Option<Unroll>,
    },
    /// `loop { … }`
    Loop {
        /// The body.
        body: Block,
        /// `#[unroll]`
        unroll: Option<Unroll>,
    },
    /// `for local in (start..end).step(step) { … }`. All three are evaluated once, before the loop. The
    /// variable takes the values `start`, `start + step`, … below `end`; the loop stops, without wrapping,
    /// before a value that would overflow its type. The body may not assign the variable.
    For {
        /// The variable, an integer.
        local: LocalId,
        /// The first value; of the variable's type, as are `end` and `step`.
        start: Box<Expr>,
        /// One past the last value.
        end: Box<Expr>,
        /// The step; 1 by default. A step of zero or less ends the loop after the first iteration.
        step: Option<Box<Expr>>,
        /// The body.
        body: Block,
        /// `#[unroll]`
        unroll: Option<Unroll>,
    },
    /// `break` out of the loop at `depth`, counted outwards: 0 is the innermost.
    Break {
        /// The number of loops exited beside the innermost.
        depth: u32,
    },
    /// `continue` of the loop at `depth`, counted outwards: 0 is the innermost.
    Continue {
        /// The number of loops exited.
        depth: u32,
    },
    /// `return value;`
    Return(Option<Expr>),
}

/// An expression with its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Its span.
    pub span: Span,
}

impl Expr {
    /// Whether the value is known to consist of zero bytes.
    pub fn is_zero(&self) -> bool {
        match &self.kind {
            ExprKind::Int(value) => *value == 0,
            ExprKind::Float(value) => value.to_bits() == 0,
            ExprKind::Bool(value) => !value,
            ExprKind::Aggregate(parts) | ExprKind::Array(parts) => parts.iter().all(Expr::is_zero),
            ExprKind::ArrayRepeat(element) => element.is_zero(),
            ExprKind::Cast(address) => self.ty.is_pointer() && address.is_zero(),
            _ => false,
        }
    }
}

impl Chained for Expr {
    fn take_left(&mut self) -> Option<Left<Self>> {
        self.left()?;
        match std::mem::replace(&mut self.kind, ExprKind::Bool(false)) {
            ExprKind::Binary(_, left, _) | ExprKind::Logical { left, .. } => Some(left),
            _ => None,
        }
    }

    fn left(&self) -> Option<&Self> {
        match &self.kind {
            ExprKind::Binary(_, left, _) | ExprKind::Logical { left, .. } => Some(left),
            _ => None,
        }
    }

    fn with_left(&self, left: Left<Self>) -> Self {
        let kind = match &self.kind {
            ExprKind::Binary(op, _, right) => ExprKind::Binary(*op, left, right.clone()),
            ExprKind::Logical { is_and, right, .. } => {
                ExprKind::Logical { is_and: *is_and, left, right: right.clone() }
            }
            other => other.clone(),
        };
        Expr { kind, ty: self.ty.clone(), span: self.span }
    }
}

/// A field of [`Type::GEOMETRY`] with a name in the language; each is a `dim3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the built-in of that name")]
pub enum GeometryField {
    ThreadIdx,
    BlockIdx,
    BlockDim,
    GridDim,
}

/// The stream of a launch.
#[derive(Clone, Debug)]
pub enum StreamExpr {
    /// CUDA's NULL stream.
    Default,
    /// `fire_and_forget`
    FireAndForget,
    /// `tail`
    Tail,
    /// A `stream` value.
    Value(Box<Expr>),
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: FunctionId,
    /// The number of blocks, a `dim3`: the checker turns an integer `n` into `dim3(n, 1, 1)`.
    pub grid: Box<Expr>,
    /// The number of threads per block, a `dim3`.
    pub block: Box<Expr>,
    /// Dynamic shared memory in bytes, a `u32`.
    pub shared: Option<Box<Expr>>,
    /// The stream.
    pub stream: StreamExpr,
    /// The arguments, with the parameters' types.
    pub arguments: Vec<Expr>,
    /// `try launch`: the value is the status (`i32`). Otherwise the value is `Unit`.
    pub is_try: bool,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// The value of an integer of the expression's type.
    Int(i128),
    /// A float of the expression's type.
    Float(f64),
    /// `true`, `false`.
    Bool(bool),
    /// The address of a zero-terminated string, a `*const u8`: an argument of `printf`.
    Text(String),
    /// A local variable or parameter (a place).
    Local(LocalId),
    /// A `shared` variable (a place).
    Shared(SharedId),
    /// A `static` variable (a place).
    Static(StaticId),
    /// The base of the block's dynamic shared memory, as a `*mut T`: the value of a `dynamic shared` name.
    DynamicShared,
    /// `thread_idx` etc.: a `dim3` value.
    Geometry(GeometryField),
    /// An operator on one operand.
    Unary(UnaryOp, Box<Expr>),
    /// An operator on two operands.
    Binary(BinaryOp, Left<Expr>, Box<Expr>),
    /// `&&` (`is_and`) or `||`.
    Logical {
        /// `&&`.
        is_and: bool,
        /// Always evaluated.
        left: Left<Expr>,
        /// Evaluated only if it decides the result.
        right: Box<Expr>,
    },
    /// `as` between scalars, between pointers, and between pointers and 64-bit integers; also from a stream
    /// handle's number to the stream.
    Cast(Box<Expr>),
    /// Field `index` of a struct, or element `index` of a vector. The base is a value or a place, never a
    /// pointer: the checker inserts the `Deref`.
    Field {
        /// The struct or vector.
        base: Box<Expr>,
        /// The field's index, from 0.
        index: u32,
    },
    /// An element of an array (a place or a value) or of the memory that a pointer points to (a place).
    Index {
        /// An array or a pointer.
        base: Box<Expr>,
        /// Any integer.
        index: Box<Expr>,
    },
    /// `*p` (a place).
    Deref(Box<Expr>),
    /// `&place`, of type `*mut T` or `*const T`.
    AddressOf(Box<Expr>),
    /// `if` with all its `else if`; without `otherwise` the value is `Unit`.
    If {
        /// Each condition, a `bool`, with its block; the first true condition selects the block.
        branches: Vec<(Expr, Block)>,
        /// The block if all conditions are false.
        otherwise: Option<Block>,
    },
    /// A block.
    Block(Block),
    /// A call of a device function.
    Call {
        /// The function.
        function: FunctionId,
        /// The arguments, with the parameters' types.
        arguments: Vec<Expr>,
    },
    /// A call of an `extern fn`.
    CallExtern {
        /// The function.
        function: ExternId,
        /// The arguments, with the parameters' types.
        arguments: Vec<Expr>,
    },
    /// A built-in operation; `format` only for `printf` and `assert`.
    Builtin {
        /// The operation.
        builtin: Builtin,
        /// The arguments. For `printf`: those after the format, after C's promotions (i32, u32, i64, u64,
        /// f64, pointer).
        arguments: Vec<Expr>,
        /// The format of `printf` or the message of `assert`, escapes resolved.
        format: Option<String>,
    },
    /// A struct, `dim3` or vector from its fields, in declaration order regardless of source order. The
    /// checker preserves the source's evaluation order only where a field has a visible side effect.
    Aggregate(Vec<Expr>),
    /// `[a, b, c]`
    Array(Vec<Expr>),
    /// `[value; N]`, with N from the type.
    ArrayRepeat(Box<Expr>),
    /// `launch` or `try launch`.
    Launch(Launch),
}
