//! The syntax tree: the source as written, before names and types are resolved.

use half::{bf16, f16};

use crate::chain::{Chained, Left};
use crate::source::{SourceMap, Span};
use crate::types::Scalar;

pub use crate::operators::{BinaryOp, UnaryOp};

/// The maximum height of a tree, and nesting depth of delimiters, where there is room ([`crate::deep`]). The links of an
/// operator chain count as siblings (see [`crate::chain`]), as do the branches of an `if`.
pub use crate::deep::MAX_HEIGHT;
/// The maximum nesting of blocks, of array literals, and of types, which later stages and LLVM walk on any thread.
pub const MAX_BLOCKS: u16 = crate::deep::SHALLOW;

/// A source file, or several of one program after [`File::extend`].
#[derive(Clone, Debug)]
pub struct File {
    /// The items, in source order.
    pub items: Vec<Item>,
    /// The whole file.
    pub span: Span,
}

impl File {
    /// A file without items.
    pub fn empty(span: Span) -> Self {
        File { items: vec![], span }
    }

    /// Adds the items of another file of the same program.
    pub fn extend(&mut self, other: File) {
        self.items.extend(other.items);
    }

    /// Each `use`, in source order.
    pub fn uses(&self) -> impl Iterator<Item = &Use> {
        self.items.iter().filter_map(|item| match item {
            Item::Use(item) => Some(item),
            _ => None,
        })
    }
}

/// An occurrence of a name; its text is in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its position.
    pub span: Span,
}

impl Name {
    /// The name itself.
    pub fn text(self, sources: &SourceMap) -> &str {
        sources.text(self.span)
    }
}

/// An item.
#[derive(Clone, Debug)]
pub enum Item {
    /// `use "path.grid";`
    Use(Use),
    /// `const NAME: T = e;`
    Const(Const),
    /// `static name: T = e;`
    Static(Static),
    /// `struct Name { … }`
    Struct(Struct),
    /// `fn`, `kernel`, `extern fn` or `extern kernel`.
    Function(Box<Function>),
    /// An item whose name was read but whose rest was not. Its error is reported; uses of the name cause no
    /// further errors.
    Opaque(Name),
}

/// `use "path.grid";`
#[derive(Clone, Debug)]
pub struct Use {
    /// The path, escapes resolved.
    pub path: Str,
    /// The span of the path, quotes included.
    pub path_span: Span,
    /// From `use` to `;`.
    pub span: Span,
}

/// `const NAME: T = e;`
#[derive(Clone, Debug)]
pub struct Const {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpr,
    /// Its value.
    pub value: Expr,
}

/// `static name: T = e;`
#[derive(Clone, Debug)]
pub struct Static {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpr,
    /// Its initial value.
    pub value: Expr,
}

/// `struct Name { … }`
#[derive(Clone, Debug)]
pub struct Struct {
    /// Its name.
    pub name: Name,
    /// Its fields.
    pub fields: Vec<Field>,
    /// Whether part of it could not be parsed.
    pub damaged: bool,
}

/// `name: T`
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpr,
}

/// `fn`, `kernel`, `extern fn` or `extern kernel`.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// `kernel`.
    pub is_kernel: bool,
    /// `#[…]` before it.
    pub attributes: Vec<Attribute>,
    /// `<const K: T, …>`
    pub const_parameters: Vec<ConstParameter>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The type after `->`.
    pub result: Option<TypeExpr>,
    /// Its body; `None` for an `extern fn` or `extern kernel`, which another module defines.
    pub body: Option<Block>,
    /// Whether part of it could not be parsed.
    pub damaged: bool,
}

/// `const K: T` between `<` and `>`.
#[derive(Clone, Debug)]
pub struct ConstParameter {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpr,
}

/// `[mut] name: T`
#[derive(Clone, Debug)]
pub struct Parameter {
    /// `mut`.
    pub mutable: bool,
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpr,
}

/// `#[name]` or `#[name(a, b)]`
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: Name,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// From `#` to `]`.
    pub span: Span,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeExpr {
    /// The kind of type.
    pub kind: TypeExprKind,
    /// Its span.
    pub span: Span,
    /// Levels from here to the deepest leaf.
    pub height: u16,
}

/// The kinds of types.
#[derive(Clone, Debug)]
pub enum TypeExprKind {
    /// `u32`, `f32x2`, `View`.
    Name(Name),
    /// `*const T`, `*mut T`.
    Pointer {
        /// `*mut`.
        mutable: bool,
        /// `T`.
        pointee: Box<TypeExpr>,
    },
    /// `[T; n]`
    Array(Box<TypeExpr>, Box<Expr>),
    /// `[T]`, only for `dynamic shared`.
    Slice(Box<TypeExpr>),
    /// A type that could not be parsed.
    Error,
}

/// `{ statements value }`
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Statement>,
    /// The last expression, if no `;` follows it.
    pub value: Option<Box<Expr>>,
    /// From `{` to `}`.
    pub span: Span,
    /// Levels from here to the deepest leaf.
    pub height: u16,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The kind of statement.
    pub kind: StatementKind,
    /// The whole statement.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `let [mut] name[: T] [= e];`
    Let {
        /// `mut`.
        mutable: bool,
        /// Its name.
        name: Name,
        /// Its type, if written.
        ty: Option<TypeExpr>,
        /// Its value, if written.
        value: Option<Expr>,
    },
    /// `shared name: T;`
    Shared {
        /// Its name.
        name: Name,
        /// Its type.
        ty: TypeExpr,
    },
    /// `dynamic shared name: [T];`
    DynamicShared {
        /// Its name.
        name: Name,
        /// `[T]`.
        ty: TypeExpr,
    },
    /// `place = e;` or `place op= e;`
    Assign {
        /// The destination.
        place: Expr,
        /// The operator of `op=`.
        op: Option<BinaryOp>,
        /// The span of the operator.
        op_span: Span,
        /// The value.
        value: Expr,
    },
    /// An expression. Without `;` it is an `if`, a block or an error.
    Expr {
        /// The expression.
        value: Expr,
        /// Whether a `;` follows.
        semicolon: bool,
    },
    /// A loop.
    Loop(Box<Loop>),
    /// `break ['label];` or `continue ['label];`
    Jump {
        /// `break`.
        is_break: bool,
        /// The label.
        label: Option<Name>,
    },
    /// `return [e];`
    Return(Option<Expr>),
}

/// A loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// `'label:`, the quote included.
    pub label: Option<Name>,
    /// `#[unroll]` before it.
    pub unroll: Option<Attribute>,
    /// The kind of loop.
    pub head: LoopHead,
    /// Its body.
    pub body: Block,
}

/// The head of a loop.
#[derive(Clone, Debug)]
pub enum LoopHead {
    /// `loop`
    Loop,
    /// `while condition`
    While(Expr),
    /// `for name in range`
    For {
        /// The variable.
        name: Name,
        /// The range, with `.step(n)` if it has one.
        range: Expr,
    },
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its span, parentheses included.
    pub span: Span,
    /// Levels from here to the deepest leaf.
    pub height: u16,
    /// Whether its type is inferred from the context.
    pub literal: Literal,
}

/// Whether an expression consists only of unsuffixed literals, so that its type is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literal {
    /// It has a type of its own.
    No,
    /// Any integer type.
    Int,
    /// Any float type.
    Float,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An expression that could not be parsed.
    Error,
    /// An integer.
    Int {
        /// Its value; saturated far above every type's range.
        value: u128,
        /// Its suffix.
        suffix: Option<Scalar>,
    },
    /// A float.
    Float {
        /// The nearest `f64`.
        double: f64,
        /// The nearest `f32`.
        single: f32,
        /// The nearest `f16`.
        half: f16,
        /// The nearest `bf16`.
        bfloat: bf16,
        /// Its suffix.
        suffix: Option<Scalar>,
    },
    /// `true`, `false`.
    Bool(bool),
    /// A string.
    Str(Box<Str>),
    /// A name.
    Name(Name),
    /// `-e`, `!e`
    Unary(UnaryOp, Box<Expr>),
    /// `*e`
    Deref(Box<Expr>),
    /// `&e`
    AddressOf(Box<Expr>),
    /// An operator on two operands.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The span of the operator.
        op_span: Span,
        /// The left operand.
        left: Left<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `&&` or `||`.
    Logical {
        /// `&&`.
        is_and: bool,
        /// The left operand.
        left: Left<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `a..b`
    Range(Box<Expr>, Box<Expr>),
    /// `e as T`
    Cast(Box<Expr>, Box<TypeExpr>),
    /// `name(a, b)`
    Call {
        /// The called function.
        callee: Name,
        /// `::<…>`
        generics: Option<Box<Generics>>,
        /// The arguments.
        arguments: Vec<Expr>,
    },
    /// `base.name(a, b)`
    MethodCall {
        /// The receiver.
        base: Box<Expr>,
        /// Its name.
        name: Name,
        /// The arguments.
        arguments: Vec<Expr>,
    },
    /// `base.name`
    Field(Box<Expr>, Name),
    /// `base[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `Name { field: e, … }`
    Struct {
        /// The struct.
        name: Name,
        /// The fields, in the order of the source.
        fields: Vec<(Name, Expr)>,
    },
    /// `[a, b]`
    Array(Vec<Expr>),
    /// `[e; n]`
    ArrayRepeat(Box<Expr>, Box<Expr>),
    /// `if … else if … else …`
    If {
        /// Each condition with its block, starting with the first `if`.
        branches: Vec<(Expr, Block)>,
        /// The final `else`.
        otherwise: Option<Block>,
    },
    /// `{ … }`
    Block(Block),
    /// `launch` or `try launch`.
    Launch(Box<Launch>),
}

/// `::<…>`
#[derive(Clone, Debug)]
pub struct Generics {
    /// The arguments between `<` and `>`.
    pub arguments: Vec<GenericArgument>,
    /// From `::` to `>`.
    pub span: Span,
}

/// An argument between `::<` and `>`.
#[derive(Clone, Debug)]
pub enum GenericArgument {
    /// A single name: of a type or of a constant.
    Name(Name),
    /// Any other type.
    Type(TypeExpr),
    /// A literal, with or without `-`, or the expression in `{ … }`.
    Value(Expr),
}

impl Generics {
    /// Levels from here to the deepest leaf.
    fn height(&self) -> u16 {
        let heights = self.arguments.iter().map(|argument| match argument {
            GenericArgument::Name(_) => 1,
            GenericArgument::Type(ty) => ty.height,
            GenericArgument::Value(value) => value.height,
        });
        heights.max().unwrap_or(0)
    }
}

impl GenericArgument {
    /// Its span.
    pub fn span(&self) -> Span {
        match self {
            GenericArgument::Name(name) => name.span,
            GenericArgument::Type(ty) => ty.span,
            GenericArgument::Value(value) => value.span,
        }
    }
}

/// A string.
#[derive(Clone, Debug)]
pub struct Str {
    /// The text, escapes resolved.
    pub text: String,
    /// For each byte of `text`, its position in the token.
    pub offsets: Vec<u32>,
    /// Whether it contains an invalid escape.
    pub damaged: bool,
}

/// `[try] launch kernel<<<config>>>(arguments)`
#[derive(Clone, Debug)]
pub struct Launch {
    /// `try`.
    pub is_try: bool,
    /// The kernel.
    pub kernel: Name,
    /// `::<…>`
    pub generics: Option<Generics>,
    /// The options between `<<<` and `>>>`.
    pub config: Vec<LaunchOption>,
    /// The span of `<<<` to `>>>`.
    pub config_span: Span,
    /// The arguments.
    pub arguments: Vec<Expr>,
    /// The span of `(` to `)`.
    pub arguments_span: Span,
}

/// `e` or `name = e` in a launch.
#[derive(Clone, Debug)]
pub struct LaunchOption {
    /// The name, if it has one.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}

impl Chained for Expr {
    fn take_left(&mut self) -> Option<Left<Self>> {
        self.left()?;
        match std::mem::replace(&mut self.kind, ExprKind::Error) {
            ExprKind::Binary { left, .. } | ExprKind::Logical { left, .. } => Some(left),
            _ => None,
        }
    }

    fn left(&self) -> Option<&Self> {
        match &self.kind {
            ExprKind::Binary { left, .. } | ExprKind::Logical { left, .. } => Some(left),
            _ => None,
        }
    }

    fn with_left(&self, left: Left<Self>) -> Self {
        let kind = match &self.kind {
            ExprKind::Binary { op, op_span, right, .. } => {
                ExprKind::Binary { op: *op, op_span: *op_span, left, right: right.clone() }
            }
            ExprKind::Logical { is_and, right, .. } => {
                ExprKind::Logical { is_and: *is_and, left, right: right.clone() }
            }
            other => other.clone(),
        };
        Expr { kind, ..*self }
    }
}

impl ExprKind {
    /// Levels from here to the deepest leaf.
    pub(super) fn height(&self) -> u16 {
        let all = |list: &[Expr]| list.iter().map(|e| e.height).max().unwrap_or(0);
        let inner = match self {
            ExprKind::Error
            | ExprKind::Int { .. }
            | ExprKind::Float { .. }
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Name(_) => 0,
            ExprKind::Unary(_, e)
            | ExprKind::Deref(e)
            | ExprKind::AddressOf(e)
            | ExprKind::Field(e, _) => e.height,
            ExprKind::Binary { left, right, .. } | ExprKind::Logical { left, right, .. } => {
                // The links of a chain count as siblings: see `crate::chain`.
                if left.left().is_some() {
                    return left.height.max(right.height.saturating_add(1));
                }
                left.height.max(right.height)
            }
            ExprKind::Range(left, right)
            | ExprKind::Index(left, right)
            | ExprKind::ArrayRepeat(left, right) => left.height.max(right.height),
            ExprKind::Cast(e, ty) => e.height.max(ty.height),
            ExprKind::Call { generics, arguments, .. } => {
                all(arguments).max(generics.as_ref().map_or(0, |generics| generics.height()))
            }
            ExprKind::Array(arguments) => all(arguments),
            ExprKind::MethodCall { base, arguments, .. } => base.height.max(all(arguments)),
            ExprKind::Struct { fields, .. } => {
                fields.iter().map(|(_, e)| e.height).max().unwrap_or(0)
            }
            ExprKind::If { branches, otherwise } => {
                let inner = branches.iter().map(|(e, block)| e.height.max(block.height)).max();
                inner.max(otherwise.as_ref().map(|block| block.height)).unwrap_or(0)
            }
            ExprKind::Block(block) => block.height,
            ExprKind::Launch(launch) => {
                let config = launch.config.iter().map(|option| option.value.height).max();
                let generics = launch.generics.as_ref().map_or(0, Generics::height);
                config.unwrap_or(0).max(all(&launch.arguments)).max(generics)
            }
        };
        inner.saturating_add(1)
    }

    /// Whether the type is still open.
    pub(super) fn literal(&self) -> Literal {
        let value = |block: &Block| block.value.as_ref().map_or(Literal::No, |e| e.literal);
        let both = |a: Literal, b: Literal| if a == b { a } else { Literal::No };
        match self {
            ExprKind::Int { suffix: None, .. } => Literal::Int,
            ExprKind::Float { suffix: None, .. } => Literal::Float,
            ExprKind::Unary(UnaryOp::Neg, e) => e.literal,
            ExprKind::Unary(UnaryOp::Not, e) if e.literal == Literal::Int => Literal::Int,
            ExprKind::Binary { op: BinaryOp::Shl | BinaryOp::Shr, left, .. } => left.literal,
            ExprKind::Binary { op, left, right, .. } if !op.is_comparison() => {
                both(left.literal, right.literal)
            }
            ExprKind::If { branches, otherwise: Some(otherwise) } => branches
                .iter()
                .fold(value(otherwise), |literal, (_, block)| both(literal, value(block))),
            ExprKind::Block(block) => value(block),
            _ => Literal::No,
        }
    }
}

impl StatementKind {
    /// Levels from here to the deepest leaf.
    pub(super) fn height(&self) -> u16 {
        match self {
            StatementKind::Let { ty, value, .. } => {
                let ty = ty.as_ref().map_or(0, |ty| ty.height);
                ty.max(value.as_ref().map_or(0, |value| value.height))
            }
            StatementKind::Shared { ty, .. } | StatementKind::DynamicShared { ty, .. } => ty.height,
            StatementKind::Assign { place, value, .. } => place.height.max(value.height),
            StatementKind::Expr { value, .. } => value.height,
            StatementKind::Loop(item) => {
                let head = match &item.head {
                    LoopHead::Loop => 0,
                    LoopHead::While(e) | LoopHead::For { range: e, .. } => e.height,
                };
                head.max(item.body.height).saturating_add(1)
            }
            StatementKind::Jump { .. } => 0,
            StatementKind::Return(value) => value.as_ref().map_or(0, |value| value.height),
        }
    }
}
