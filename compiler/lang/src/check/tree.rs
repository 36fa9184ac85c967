//! The typed tree: what a program is after a clean check.
//!
//! Names are resolved, every expression has its type, constants are folded to literals, and nothing
//! is left to infer. Rules that hold here, and that `ir::build` relies on:
//! - A *place* is an expression whose kind is `Local`, `Shared`, `Static`, `Deref`, `Index`, or a `Field` of a place.
//!   Only places are assigned to, or taken the address of.
//! - `Binary` has two operands of one type, except shifts (any integer as the count), pointer plus or
//!   minus integer, and pointer minus pointer (an `i64`, in elements).
//! - `Assign` with an operator: the value has the type that `Binary` of that operator would want.
//! - `&&` and `||` are `Logical`: the right side runs only when it decides.
//! - The left sides of operators may go down very far (see [`crate::chain`]); all else is no higher than the
//!   syntax tree may be.
//! - Signedness is the operands' type; there are no signed or unsigned operators.

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

/// A checked program. Functions stand in the order of the source, then instances of those with const parameters
/// in the order in which they are asked for.
#[derive(Clone, Debug)]
pub struct Program {
    /// All structs, the built-in ones first.
    pub structs: Structs,
    /// `static` variables, in the order of the source.
    pub statics: Vec<Static>,
    /// Functions that other modules define, in the order of the source.
    pub externs: Vec<Extern>,
    /// Device functions and kernels.
    pub functions: Vec<Function>,
}

/// An `extern fn`.
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its name, which is its symbol.
    pub name: String,
    /// Types of its parameters: numbers, `bool`, pointers, streams, vectors and structs.
    pub parameters: Vec<Type>,
    /// What it returns: `Unit`, a number, `bool`, a pointer or a stream.
    pub result: Type,
    /// The name in its declaration.
    pub span: Span,
}

/// A `static` variable.
#[derive(Clone, Debug)]
pub struct Static {
    /// Its name, by which the host finds it.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// What it starts as: `Int`, `Float`, `Bool`, and `Aggregate`, `Array` and `ArrayRepeat` of such; an `Int`
    /// may stand in a `Cast` to a pointer.
    pub value: Expr,
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
    /// Parameters and local variables. Two may share a name.
    pub locals: Vec<Local>,
    /// `shared` variables, in the order of the source.
    pub shared: Vec<Local>,
    /// What it returns; `Unit` for kernels.
    pub result: Type,
    /// The body. If `result` is not `Unit`, its value or a `return` on every path gives the result.
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

/// What is said of a kernel beside its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KernelAttributes {
    /// `#[launch_bounds(threads[, blocks])]`.
    pub launch_bounds: Option<LaunchBounds>,
}

/// `#[launch_bounds(max_threads, min_blocks)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Most threads a block may have.
    pub max_threads: u32,
    /// Blocks that shall fit one SM at a time.
    pub min_blocks: Option<u32>,
}

/// `#[unroll]` or `#[unroll(n)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    /// All passes, where their number is known at compile time.
    Full,
    /// So many passes at a time; 1 keeps the loop as it is.
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
    /// What declares it.
    pub declared: Declared,
}

/// What declares a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// `let`.
    Let {
        /// `mut`.
        mutable: bool,
    },
    /// The head of a function.
    Parameter {
        /// `mut`.
        mutable: bool,
    },
    /// `for`.
    Loop,
    /// `shared`.
    Shared,
    /// The checker, for values in between.
    Checker,
}

/// Statements, then the value, if the block has one.
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Statement>,
    /// The value; without it the block is `Unit`.
    pub value: Option<Box<Expr>>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it does.
    pub kind: StatementKind,
    /// The whole statement.
    pub span: Span,
}

/// What a statement does.
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
        /// Where to.
        place: Expr,
        /// `op` of `op=`.
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
    /// `for local in (start..end).step(step) { … }`. All three are evaluated once, before the loop.
    /// The variable takes `start`, `start + step`, … while it is below `end`, and stops, without
    /// wrapping, when the next value would not fit its type. The body may not assign it.
    For {
        /// The variable, an integer.
        local: LocalId,
        /// First value; same type as the variable, like `end` and `step`.
        start: Box<Expr>,
        /// One past the last value.
        end: Box<Expr>,
        /// The step; 1 without it. A step of zero or less ends the loop after the first pass.
        step: Option<Box<Expr>>,
        /// The body.
        body: Block,
        /// `#[unroll]`
        unroll: Option<Unroll>,
    },
    /// `break`, out of the loop that is `depth` loops out: 0 is the innermost.
    Break {
        /// How many loops to leave beside the innermost.
        depth: u32,
    },
    /// `continue` with the loop that is `depth` loops out.
    Continue {
        /// How many loops to leave.
        depth: u32,
    },
    /// `return value;`
    Return(Option<Expr>),
}

/// An expression with its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Where it stands.
    pub span: Span,
}

impl Expr {
    /// Whether all bytes of the value are zero, as can be seen.
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

/// A field of [`Type::GEOMETRY`] that the language names, each a `dim3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the built-in of that name")]
pub enum GeometryField {
    ThreadIdx,
    BlockIdx,
    BlockDim,
    GridDim,
}

/// Where a launch goes.
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
    /// Blocks, a `dim3`: the checker turns an integer `n` into `dim3(n, 1, 1)`.
    pub grid: Box<Expr>,
    /// Threads of a block, a `dim3`.
    pub block: Box<Expr>,
    /// Dynamic shared memory in bytes, a `u32`.
    pub shared: Option<Box<Expr>>,
    /// The stream.
    pub stream: StreamExpr,
    /// The arguments, of the parameters' types.
    pub arguments: Vec<Expr>,
    /// `try launch`: the value is the status (`i32`). Otherwise the value is `Unit`.
    pub is_try: bool,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer of the expression's type, as its value (negative for negative signed ones).
    Int(i128),
    /// A float of the expression's type.
    Float(f64),
    /// `true`, `false`.
    Bool(bool),
    /// The address of a string that ends with a zero, a `*const u8`: an argument of `printf`.
    Text(String),
    /// A local variable or parameter (a place).
    Local(LocalId),
    /// A `shared` variable (a place).
    Shared(SharedId),
    /// A `static` variable (a place).
    Static(StaticId),
    /// The base of the block's dynamic shared memory, as a `*mut T`: the value of a `dynamic shared` name.
    DynamicShared,
    /// `thread_idx` and the like: a `dim3` value.
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
        /// Evaluated only when it decides.
        right: Box<Expr>,
    },
    /// `as`, between scalars, between pointers, and between pointers and 64-bit integers; and from the number
    /// of a stream's handle to the stream.
    Cast(Box<Expr>),
    /// Field `index` of a struct, or element `index` of a vector. The base is a value or a place, never a
    /// pointer: the checker writes the `Deref` out.
    Field {
        /// The struct or vector.
        base: Box<Expr>,
        /// Which field, from 0.
        index: u32,
    },
    /// Element of an array (a place or a value) or of what a pointer points to (a place).
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
    /// `if` with every `else if`; without `otherwise` the value is `Unit`.
    If {
        /// Each condition, a `bool`, with its block; the first that is true decides.
        branches: Vec<(Expr, Block)>,
        /// When none is.
        otherwise: Option<Block>,
    },
    /// A block.
    Block(Block),
    /// A call of a device function.
    Call {
        /// Which.
        function: FunctionId,
        /// Arguments of the parameters' types.
        arguments: Vec<Expr>,
    },
    /// A call of an `extern fn`.
    CallExtern {
        /// Which.
        function: ExternId,
        /// Arguments of the parameters' types.
        arguments: Vec<Expr>,
    },
    /// A built-in operation; `format` only for `printf` and `assert`.
    Builtin {
        /// Which.
        builtin: Builtin,
        /// Its arguments. For `printf`: those after the format, already of a type C passes
        /// (i32, u32, i64, u64, f64, pointer).
        arguments: Vec<Expr>,
        /// `printf`'s format or `assert`'s message, with escapes resolved.
        format: Option<String>,
    },
    /// A struct, `dim3` or vector from its fields, in declaration order, whatever order the source has.
    /// The checker keeps the source's order of evaluation only where a field has a side effect it can see.
    Aggregate(Vec<Expr>),
    /// `[a, b, c]`
    Array(Vec<Expr>),
    /// `[value; N]`, N from the type.
    ArrayRepeat(Box<Expr>),
    /// `launch` or `try launch`.
    Launch(Launch),
}
