//! Checks the invariants at the top of `check/tree.rs` on a whole program.

use gridlet_lang::builtins::{Builtin, Lowering};
use gridlet_lang::chain::Chained;
use gridlet_lang::check::tree::*;
use gridlet_lang::check::visit::Child;
use gridlet_lang::source::{SourceMap, Span};
use gridlet_lang::types::{Scalar, Type};

/// Panics if a program violates an invariant of the tree.
pub(crate) fn verify(program: &Program, sources: &SourceMap) {
    for variable in &program.statics {
        assert_eq!(variable.value.ty, variable.ty, "the initial value of `{}`", variable.name);
    }
    for function in &program.functions {
        let rules = Rules { program, function, sources };
        assert!(function.parameter_count <= function.locals.len());
        assert!(function.kernel.is_none() || function.result == Type::Unit);
        rules.span(function.span);
        rules.block(&function.body, 0);
        if let Some(value) = &function.body.value {
            assert_eq!(value.ty, function.result, "the value of `{}`", function.name);
        }
    }
}

struct Rules<'a> {
    program: &'a Program,
    function: &'a Function,
    sources: &'a SourceMap,
}

fn is_integer(ty: &Type) -> bool {
    ty.as_scalar().is_some_and(Scalar::is_integer)
}

impl Rules<'_> {
    fn span(&self, span: Span) {
        let text = &self.sources.file(span.file).text;
        assert!(text.get(span.range()).is_some(), "{span:?} is not a range of the file");
    }

    /// `loops` is the number of enclosing loops.
    fn block(&self, block: &Block, loops: u32) {
        for statement in &block.statements {
            self.span(statement.span);
            self.statement(&statement.kind, loops);
        }
        if let Some(value) = &block.value {
            assert_ne!(value.ty, Type::Unit, "a block's value has a type");
            self.expr(value, loops);
        }
    }

    fn statement(&self, kind: &StatementKind, loops: u32) {
        let local = |id: &LocalId| &self.function.locals[id.0 as usize].ty;
        match kind {
            StatementKind::Let { local: id, value } => {
                if let Some(value) = value {
                    self.expr(value, loops);
                    assert_eq!(value.ty, *local(id));
                }
            }
            StatementKind::Assign { place, op, value } => {
                self.expr(place, loops);
                self.expr(value, loops);
                self.place(place);
                match op {
                    None => assert_eq!(place.ty, value.ty),
                    Some(op) => self.operands(*op, &place.ty, &value.ty, &place.ty),
                }
            }
            StatementKind::Expr(value) => self.expr(value, loops),
            StatementKind::While { condition, body, .. } => {
                self.expr(condition, loops);
                assert_eq!(condition.ty, Type::BOOL);
                self.unit_block(body, loops + 1);
            }
            StatementKind::Loop { body, .. } => self.unit_block(body, loops + 1),
            StatementKind::For { local: id, start, end, step, body, .. } => {
                assert!(is_integer(local(id)));
                for part in [Some(start), Some(end), step.as_ref()].into_iter().flatten() {
                    self.expr(part, loops);
                    assert_eq!(part.ty, *local(id));
                }
                self.unit_block(body, loops + 1);
            }
            StatementKind::Break { depth } | StatementKind::Continue { depth } => {
                assert!(*depth < loops);
            }
            StatementKind::Return(value) => {
                value.iter().for_each(|value| self.expr(value, loops));
                let ty = value.as_ref().map_or(Type::Unit, |value| value.ty.clone());
                assert_eq!(ty, self.function.result);
            }
        }
    }

    fn unit_block(&self, block: &Block, loops: u32) {
        assert!(block.value.is_none());
        self.block(block, loops);
    }

    fn place(&self, place: &Expr) {
        match &place.kind {
            ExprKind::Local(_) | ExprKind::Shared(_) | ExprKind::Static(_) | ExprKind::Deref(_) => {
            }
            ExprKind::Index { base, .. } if base.ty.is_pointer() => {}
            ExprKind::Index { base, .. } | ExprKind::Field { base, .. } => self.place(base),
            other => panic!("{other:?} is not a place"),
        }
    }

    fn operands(&self, op: BinaryOp, left: &Type, right: &Type, result: &Type) {
        match (op, left, right) {
            (BinaryOp::Shl | BinaryOp::Shr, ..) => {
                assert!(is_integer(left) && is_integer(right));
                assert_eq!(left, result);
            }
            (BinaryOp::Add | BinaryOp::Sub, Type::Pointer { .. }, right) if is_integer(right) => {
                assert_eq!(left, result);
            }
            (BinaryOp::Sub, Type::Pointer { .. }, _) => {
                assert_eq!(left, right);
                assert_eq!(*result, Type::I64);
            }
            _ => {
                assert_eq!(left, right);
                let expected = if op.is_comparison() { &Type::BOOL } else { left };
                assert_eq!(result, expected);
                let is_scalar = left.as_scalar().is_some();
                assert!(is_scalar || left.is_pointer() && op.is_comparison(), "{op:?} on {left:?}");
            }
        }
    }

    /// An operator without its left side.
    fn link(&self, e: &Expr, loops: u32) {
        self.span(e.span);
        match &e.kind {
            ExprKind::Binary(op, left, right) => {
                self.expr(right, loops);
                self.operands(*op, &left.ty, &right.ty, &e.ty);
            }
            ExprKind::Logical { left, right, .. } => {
                self.expr(right, loops);
                assert_eq!([&left.ty, &right.ty, &e.ty], [&Type::BOOL; 3]);
            }
            other => panic!("{other:?} is not a binary operator"),
        }
    }

    fn expr(&self, e: &Expr, loops: u32) {
        let mut e = e;
        while let Some(left) = e.left() {
            self.link(e, loops);
            e = left;
        }
        self.span(e.span);
        e.for_each_child(|child| match child {
            Child::Expr(part) => self.expr(part, loops),
            Child::Block(block) => self.block(block, loops),
        });
        match &e.kind {
            ExprKind::Int(value) => {
                let scalar = e.ty.as_scalar().filter(|s| s.is_integer()).expect("an integer type");
                let bits = scalar.bits();
                let fits = match scalar.is_signed() {
                    true => (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(value),
                    false => (0..1 << bits).contains(value),
                };
                assert!(fits, "{value} as {scalar:?}");
            }
            ExprKind::Float(value) => {
                let scalar = e.ty.as_scalar().filter(|s| s.is_float()).expect("a float type");
                let rounded = gridlet_lang::float::round(*value, scalar);
                assert!(
                    rounded.to_bits() == value.to_bits() || value.is_nan(),
                    "{value} as {scalar:?}"
                );
            }
            ExprKind::Bool(_) => assert_eq!(e.ty, Type::BOOL),
            ExprKind::Text(_) => assert_eq!(e.ty, Type::pointer_const(Type::Scalar(Scalar::U8))),
            ExprKind::Local(id) => assert_eq!(e.ty, self.function.locals[id.0 as usize].ty),
            ExprKind::Shared(id) => assert_eq!(e.ty, self.function.shared[id.0 as usize].ty),
            ExprKind::Static(id) => assert_eq!(e.ty, self.program.statics[id.0 as usize].ty),
            ExprKind::DynamicShared => assert!(matches!(e.ty, Type::Pointer { mutable: true, .. })),
            ExprKind::Geometry(_) => assert_eq!(e.ty, Type::DIM3),
            ExprKind::Unary(_, value) => {
                assert_eq!(value.ty, e.ty);
            }
            ExprKind::Binary(..) | ExprKind::Logical { .. } => {}
            ExprKind::Cast(value) => {
                assert_ne!(value.ty, e.ty, "a cast that changes nothing");
                let pointers = usize::from(value.ty.is_pointer()) + usize::from(e.ty.is_pointer());
                let scalars = usize::from(value.ty.as_scalar().is_some())
                    + usize::from(e.ty.as_scalar().is_some());
                let is_handle = value.ty == Type::U64 && e.ty == Type::Stream;
                assert!(pointers + scalars == 2 || is_handle, "{:?} as {:?}", value.ty, e.ty);
            }
            ExprKind::Field { base, index } => {
                let ty = match &base.ty {
                    Type::Struct(id) => {
                        self.program.structs.get(*id).fields[*index as usize].ty.clone()
                    }
                    Type::Vector(scalar, count) => {
                        assert!(*index < u32::from(*count));
                        Type::Scalar(*scalar)
                    }
                    other => panic!("a field of {other:?}"),
                };
                assert_eq!(ty, e.ty);
            }
            ExprKind::Index { base, index } => {
                assert!(is_integer(&index.ty));
                match &base.ty {
                    Type::Array(element, _) | Type::Pointer { pointee: element, .. } => {
                        assert_eq!(**element, e.ty);
                    }
                    other => panic!("an element of {other:?}"),
                }
            }
            ExprKind::Deref(pointer) => {
                assert_eq!(pointer.ty.pointee(), Some(&e.ty));
            }
            ExprKind::AddressOf(place) => {
                self.place(place);
                assert_eq!(e.ty.pointee(), Some(&place.ty));
            }
            ExprKind::If { branches, otherwise } => {
                assert!(otherwise.is_some() || e.ty == Type::Unit);
                for (condition, _) in branches {
                    assert_eq!(condition.ty, Type::BOOL);
                }
                for block in branches.iter().map(|(_, block)| block).chain(otherwise) {
                    self.typed_block(block, &e.ty);
                }
            }
            ExprKind::Block(block) => self.typed_block(block, &e.ty),
            ExprKind::CallExtern { function, arguments } => {
                let callee = &self.program.externs[function.0 as usize];
                assert_eq!(arguments.len(), callee.parameters.len(), "{}", callee.name);
                for (argument, ty) in arguments.iter().zip(&callee.parameters) {
                    assert_eq!(argument.ty, *ty, "an argument of {}", callee.name);
                }
                assert_eq!(e.ty, callee.result, "a call of {}", callee.name);
            }
            ExprKind::Call { function, arguments } => {
                let callee = &self.program.functions[function.0 as usize];
                assert!(callee.kernel.is_none());
                self.arguments(callee, arguments);
                assert_eq!(e.ty, callee.result);
            }
            ExprKind::Builtin { arguments, format, builtin } => {
                let is_printf = *builtin == Builtin::Printf;
                assert_eq!(format.is_some(), is_printf || *builtin == Builtin::Assert);
                assert_ne!(builtin.properties().lowering, Lowering::Checker);
                for argument in arguments.iter().filter(|_| is_printf) {
                    let passed = argument.ty.is_pointer()
                        || matches!(&argument.ty, Type::Scalar(Scalar::F64))
                        || is_integer(&argument.ty)
                            && argument.ty.as_scalar().is_some_and(|s| s.size() >= 4);
                    assert!(passed, "printf of {:?}", argument.ty);
                }
            }
            ExprKind::Aggregate(parts) => {
                let types: Vec<Type> = match &e.ty {
                    Type::Struct(id) => {
                        self.program.structs.get(*id).fields.iter().map(|f| f.ty.clone()).collect()
                    }
                    Type::Vector(scalar, count) => {
                        vec![Type::Scalar(*scalar); usize::from(*count)]
                    }
                    other => panic!("an aggregate {other:?}"),
                };
                assert!(parts.iter().map(|part| &part.ty).eq(types.iter()));
            }
            ExprKind::Array(parts) => {
                let Type::Array(element, length) = &e.ty else { panic!("{:?}", e.ty) };
                assert_eq!(*length, parts.len() as u64);
                for part in parts {
                    assert_eq!(part.ty, **element);
                }
            }
            ExprKind::ArrayRepeat(value) => {
                assert!(matches!(&e.ty, Type::Array(element, _) if **element == value.ty));
            }
            ExprKind::Launch(launch) => {
                let kernel = &self.program.functions[launch.kernel.0 as usize];
                assert!(kernel.kernel.is_some());
                self.arguments(kernel, &launch.arguments);
                for size in [&launch.grid, &launch.block] {
                    assert_eq!(size.ty, Type::DIM3);
                }
                if let Some(shared) = &launch.shared {
                    assert_eq!(shared.ty, Type::U32);
                }
                if let StreamExpr::Value(stream) = &launch.stream {
                    assert_eq!(stream.ty, Type::Stream);
                }
                assert_eq!(e.ty, if launch.is_try { Type::I32 } else { Type::Unit });
            }
        }
    }

    fn typed_block(&self, block: &Block, ty: &Type) {
        let value = block.value.as_ref().map_or(&Type::Unit, |value| &value.ty);
        assert_eq!(value, ty);
    }

    fn arguments(&self, callee: &Function, arguments: &[Expr]) {
        assert_eq!(callee.parameter_count, arguments.len());
        for (argument, parameter) in arguments.iter().zip(callee.parameters()) {
            assert_eq!(argument.ty, parameter.ty);
        }
    }
}
