//! Helpers for building trees in tests.

use std::sync::Arc;

use super::build::build_ir;
use super::verify::verify;
use super::{LaunchBounds, Module};
use crate::builtins::Builtin;
use crate::chain::Left;
use crate::check::tree::{
    BinaryOp, Block, Declared, Expr, ExprKind, Function, FunctionId, GeometryField,
    KernelAttributes, Launch, Local, LocalId, Program, SharedId, Statement, StatementKind,
    StreamExpr, UnaryOp,
};
use crate::source::{FileId, SourceMap, Span};
use crate::types::{Field, Scalar, Struct, StructId, Structs, Type};

/// A source with a hundred lines of four bytes each.
pub(crate) fn sources() -> Arc<SourceMap> {
    Arc::new(SourceMap::single("test.grid", "abc\n".repeat(100)))
}

/// A span in a line of [`sources`], counted from 1.
pub(crate) fn line(line: usize) -> Span {
    Span::new(FileId(0), (line - 1) * 4..(line - 1) * 4 + 3)
}

/// Builds and verifies a module.
pub(crate) fn build(structs: Structs, functions: Vec<Function>) -> Module {
    let module =
        build_ir(&Program { structs, statics: vec![], externs: vec![], functions }, sources())
            .unwrap();
    verify(&module).unwrap();
    module
}

/// Adds a struct with fields `a`, `b`, …
pub(crate) fn add_struct(structs: &mut Structs, name: &str, fields: Vec<Type>) -> StructId {
    let names = ('a'..='z').map(String::from);
    let fields = names.zip(fields).map(|(name, ty)| Field { name, ty }).collect();
    structs.add(Struct { name: name.into(), fields, span: Some(line(1)) })
}

/// A function without a body yet.
pub(crate) fn device(name: &str, result: Type) -> Function {
    Function {
        name: name.into(),
        kernel: None,
        parameter_count: 0,
        locals: vec![],
        shared: vec![],
        result,
        body: block(vec![]),
        span: line(1),
    }
}

/// A kernel without a body yet.
pub(crate) fn kernel(name: &str) -> Function {
    Function { kernel: Some(KernelAttributes::default()), ..device(name, Type::Unit) }
}

/// Builder methods for functions.
pub(crate) trait FunctionParts: Sized {
    /// Adds parameters.
    fn with(self, parameters: &[(&str, Type)]) -> Self;
    /// Adds local variables.
    fn locals(self, locals: &[(&str, Type)]) -> Self;
    /// Adds shared variables.
    fn shared(self, shared: &[(&str, Type)]) -> Self;
    /// Sets the launch bounds.
    fn bounds(self, max_threads: u32, min_blocks: Option<u32>) -> Self;
    /// Sets the body.
    fn body(self, statements: Vec<Statement>) -> Self;
}

fn local_of((name, ty): &(&str, Type)) -> Local {
    Local {
        name: (*name).into(),
        ty: ty.clone(),
        span: line(1),
        scope: line(1),
        declared: Declared::Checker,
    }
}

impl FunctionParts for Function {
    fn with(mut self, parameters: &[(&str, Type)]) -> Self {
        self.locals.extend(parameters.iter().map(local_of));
        self.parameter_count = self.locals.len();
        self
    }

    fn locals(mut self, locals: &[(&str, Type)]) -> Self {
        self.locals.extend(locals.iter().map(local_of));
        self
    }

    fn shared(mut self, shared: &[(&str, Type)]) -> Self {
        self.shared.extend(shared.iter().map(local_of));
        self
    }

    fn bounds(mut self, max_threads: u32, min_blocks: Option<u32>) -> Self {
        let launch_bounds = Some(LaunchBounds { max_threads, min_blocks });
        self.kernel = Some(KernelAttributes { launch_bounds, ..Default::default() });
        self
    }

    fn body(mut self, statements: Vec<Statement>) -> Self {
        self.body = block(statements);
        self
    }
}

/// Statements without a value.
pub(crate) fn block(statements: Vec<Statement>) -> Block {
    Block { statements, value: None }
}

/// A value without statements.
pub(crate) fn value_block(value: Expr) -> Block {
    Block { statements: vec![], value: Some(Box::new(value)) }
}

pub(crate) fn statement(kind: StatementKind) -> Statement {
    Statement { kind, span: line(2) }
}

pub(crate) fn do_(expr: Expr) -> Statement {
    statement(StatementKind::Expr(expr))
}

pub(crate) fn let_(local: u32, value: Expr) -> Statement {
    statement(StatementKind::Let { local: LocalId(local), value: Some(value) })
}

pub(crate) fn assign(place: Expr, op: Option<BinaryOp>, value: Expr) -> Statement {
    statement(StatementKind::Assign { place, op, value })
}

pub(crate) fn return_(value: Expr) -> Statement {
    statement(StatementKind::Return(Some(value)))
}

pub(crate) fn return_nothing() -> Statement {
    statement(StatementKind::Return(None))
}

pub(crate) fn while_(condition: Expr, body: Vec<Statement>) -> Statement {
    statement(StatementKind::While { condition, body: block(body), unroll: None })
}

pub(crate) fn loop_(body: Vec<Statement>) -> Statement {
    statement(StatementKind::Loop { body: block(body), unroll: None })
}

pub(crate) fn for_(
    local: u32,
    start: Expr,
    end: Expr,
    step: Option<Expr>,
    body: Vec<Statement>,
) -> Statement {
    let local = LocalId(local);
    let (start, end, step) = (Box::new(start), Box::new(end), step.map(Box::new));
    statement(StatementKind::For { local, start, end, step, body: block(body), unroll: None })
}

pub(crate) fn break_(depth: u32) -> Statement {
    statement(StatementKind::Break { depth })
}

pub(crate) fn continue_(depth: u32) -> Statement {
    statement(StatementKind::Continue { depth })
}

/// An expression of a type.
pub(crate) fn expr(kind: ExprKind, ty: Type) -> Expr {
    Expr { kind, ty, span: line(3) }
}

pub(crate) fn int(scalar: Scalar, value: i128) -> Expr {
    expr(ExprKind::Int(value), Type::Scalar(scalar))
}

pub(crate) fn u32_(value: u32) -> Expr {
    int(Scalar::U32, value.into())
}

pub(crate) fn i32_(value: i32) -> Expr {
    int(Scalar::I32, value.into())
}

pub(crate) fn f32_(value: f32) -> Expr {
    expr(ExprKind::Float(value.into()), Type::F32)
}

pub(crate) fn bool_(value: bool) -> Expr {
    expr(ExprKind::Bool(value), Type::BOOL)
}

pub(crate) fn local(id: u32, ty: Type) -> Expr {
    expr(ExprKind::Local(LocalId(id)), ty)
}

pub(crate) fn shared(id: u32, ty: Type) -> Expr {
    expr(ExprKind::Shared(SharedId(id)), ty)
}

pub(crate) fn unary(op: UnaryOp, operand: Expr) -> Expr {
    let ty = operand.ty.clone();
    expr(ExprKind::Unary(op, Box::new(operand)), ty)
}

pub(crate) fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let ty = match op {
        _ if op.is_comparison() => Type::BOOL,
        BinaryOp::Sub if left.ty.is_pointer() && right.ty.is_pointer() => Type::I64,
        _ => left.ty.clone(),
    };
    expr(ExprKind::Binary(op, Left::new(left), Box::new(right)), ty)
}

pub(crate) fn logical(is_and: bool, left: Expr, right: Expr) -> Expr {
    let (left, right) = (Left::new(left), Box::new(right));
    expr(ExprKind::Logical { is_and, left, right }, Type::BOOL)
}

pub(crate) fn if_(condition: Expr, then: Block, otherwise: Option<Block>, ty: Type) -> Expr {
    expr(ExprKind::If { branches: vec![(condition, then)], otherwise }, ty)
}

pub(crate) fn cast(operand: Expr, ty: Type) -> Expr {
    expr(ExprKind::Cast(Box::new(operand)), ty)
}

pub(crate) fn field(base: Expr, index: u32, ty: Type) -> Expr {
    expr(ExprKind::Field { base: Box::new(base), index }, ty)
}

/// An element of an array, or of the memory that a pointer points to.
pub(crate) fn index(base: Expr, index: Expr) -> Expr {
    let ty = match &base.ty {
        Type::Array(element, _) => (**element).clone(),
        ty => ty.pointee().unwrap().clone(),
    };
    expr(ExprKind::Index { base: Box::new(base), index: Box::new(index) }, ty)
}

pub(crate) fn deref(pointer: Expr) -> Expr {
    let ty = pointer.ty.pointee().unwrap().clone();
    expr(ExprKind::Deref(Box::new(pointer)), ty)
}

pub(crate) fn address(place: Expr) -> Expr {
    let ty = Type::pointer_mut(place.ty.clone());
    expr(ExprKind::AddressOf(Box::new(place)), ty)
}

pub(crate) fn geometry(field_: GeometryField, index: u32) -> Expr {
    field(expr(ExprKind::Geometry(field_), Type::DIM3), index, Type::U32)
}

pub(crate) fn call(function: u32, arguments: Vec<Expr>, ty: Type) -> Expr {
    expr(ExprKind::Call { function: FunctionId(function), arguments }, ty)
}

pub(crate) fn builtin(builtin: Builtin, arguments: Vec<Expr>, ty: Type) -> Expr {
    expr(ExprKind::Builtin { builtin, arguments, format: None }, ty)
}

pub(crate) fn printf(format: &str, arguments: Vec<Expr>) -> Expr {
    let format = Some(format.into());
    expr(ExprKind::Builtin { builtin: Builtin::Printf, arguments, format }, Type::I32)
}

pub(crate) fn array_of(element: Type, count: u64) -> Type {
    Type::Array(Box::new(element), count)
}

pub(crate) fn dim3(x: u32) -> Expr {
    expr(ExprKind::Aggregate(vec![u32_(x), u32_(1), u32_(1)]), Type::DIM3)
}

/// `launch kernel<<<2, 32, stream>>>(arguments)` at a line.
pub(crate) fn launch(
    at: usize,
    kernel: u32,
    stream: StreamExpr,
    arguments: Vec<Expr>,
    is_try: bool,
) -> Expr {
    let launch = Launch {
        kernel: FunctionId(kernel),
        grid: Box::new(dim3(2)),
        block: Box::new(dim3(32)),
        shared: None,
        stream,
        arguments,
        is_try,
    };
    let ty = if is_try { Type::I32 } else { Type::Unit };
    Expr { kind: ExprKind::Launch(launch), ty, span: line(at) }
}
