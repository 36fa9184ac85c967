//! Expressions: their values, and conditions as control flow.

use super::analysis::{is_place, local_of_place, speculation_cost};
use super::function::{FunctionBuilder, Storage};
use crate::check::tree::{Block, Expr, ExprKind, FunctionId, GeometryField, UnaryOp};
use crate::error::Result;
use crate::ir::{BlockId, Const, ExternId, GEOMETRY_DYNAMIC_SHARED, InstKind, Operand, same_type};
use crate::types::{Scalar, Type};

/// Most operators that are worth computing in vain to do without a branch.
const SPECULATION_LIMIT: u32 = 2;

impl FunctionBuilder<'_, '_> {
    /// The value of an expression that has one.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Operand> {
        match self.lower(expr)? {
            Some(value) => Ok(value),
            None => self.placeholder(&expr.ty),
        }
    }

    /// The values of expressions, in order.
    pub(super) fn values<'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Vec<Operand>> {
        expressions.into_iter().map(|expr| self.value(expr)).collect()
    }

    /// Evaluates an expression; `None` if its type is `Unit`, or if it never ends.
    pub(super) fn lower(&mut self, expr: &Expr) -> Result<Option<Operand>> {
        let span = expr.span;
        let value = match &expr.kind {
            ExprKind::Int(value) => Operand::Const(Const::Int(self.scalar(&expr.ty)?, *value)),
            ExprKind::Float(value) => match self.scalar(&expr.ty)? {
                Scalar::F32 => Operand::Const(Const::Float(Scalar::F32, (*value as f32).into())),
                scalar => Operand::Const(Const::Float(scalar, *value)),
            },
            ExprKind::Bool(value) => Operand::Const(Const::Bool(*value)),
            ExprKind::Local(local) => match self.storage(*local)? {
                Storage::Value(value) => value,
                Storage::Memory(slot) => self.body.load(slot, &expr.ty, span),
                Storage::Unused => return Err(self.broken("a local variable without a slot")),
            },
            ExprKind::Shared(_)
            | ExprKind::Static(_)
            | ExprKind::Deref(_)
            | ExprKind::Index { .. } => {
                let address = self.address(expr)?;
                self.body.load(address, &expr.ty, span)
            }
            ExprKind::Field { base, index } => {
                if self.is_in_memory(base) {
                    let address = self.address(expr)?;
                    self.body.load(address, &expr.ty, span)
                } else {
                    let base = self.value(base)?;
                    let kind = InstKind::Extract { base, index: *index };
                    self.body.emit(kind, expr.ty.clone(), span)
                }
            }
            ExprKind::DynamicShared => {
                let base = self.geometry()?;
                let kind = InstKind::Extract { base, index: GEOMETRY_DYNAMIC_SHARED };
                let bytes = Type::pointer_mut(Type::Scalar(Scalar::U8));
                let base = self.body.emit(kind, bytes.clone(), span);
                self.cast(base, &bytes, expr)
            }
            ExprKind::Geometry(field) => {
                let index = match field {
                    GeometryField::ThreadIdx => 0,
                    GeometryField::BlockIdx => 1,
                    GeometryField::BlockDim => 2,
                    GeometryField::GridDim => 3,
                };
                let kind = InstKind::Extract { base: self.geometry()?, index };
                self.body.emit(kind, expr.ty.clone(), span)
            }
            ExprKind::Unary(op, operand) => {
                let operand = self.value(operand)?;
                self.body.emit(InstKind::Unary(*op, operand), expr.ty.clone(), span)
            }
            ExprKind::Binary(op, left, right) => {
                let (left_type, right_type) = (&left.ty, &right.ty);
                let left = self.value(left)?;
                let right = self.value(right)?;
                self.binary(*op, (left, left_type), (right, right_type), &expr.ty, span)?
            }
            ExprKind::Logical { is_and, left, right } => {
                return self.logical(*is_and, left, right, expr).map(Some);
            }
            ExprKind::Cast(operand) => {
                let value = self.value(operand)?;
                self.cast(value, &operand.ty, expr)
            }
            ExprKind::AddressOf(place) => self.address(place)?,
            ExprKind::If { condition, then, otherwise } => {
                return self.if_expression(expr, condition, then, otherwise.as_ref());
            }
            ExprKind::Block(block) => return self.block(block),
            ExprKind::CallExtern { function, arguments } => {
                let arguments = self.values(arguments)?;
                let function = ExternId(function.0);
                let kind = InstKind::CallExtern { function, arguments };
                self.body.emit(kind, expr.ty.clone(), span)
            }
            ExprKind::Call { function, arguments } => {
                return self.call(expr, *function, arguments);
            }
            ExprKind::Builtin { builtin, arguments, format } => {
                return self.builtin(expr, *builtin, arguments, format.as_deref());
            }
            ExprKind::Aggregate(parts) | ExprKind::Array(parts) => {
                let parts = self.values(parts)?;
                self.body.emit(InstKind::Aggregate(parts), expr.ty.clone(), span)
            }
            ExprKind::ArrayRepeat(element) => self.array_repeat(expr, element)?,
            ExprKind::Launch(launch) => return self.launch(expr, launch),
        };
        Ok(Some(value))
    }

    /// The value as the type of `expr`: nothing to do between types that the IR does not tell apart.
    fn cast(&mut self, value: Operand, from: &Type, expr: &Expr) -> Operand {
        if same_type(from, &expr.ty) {
            value
        } else {
            self.body.emit(InstKind::Cast(value), expr.ty.clone(), expr.span)
        }
    }

    pub(super) fn scalar(&self, ty: &Type) -> Result<Scalar> {
        ty.as_scalar().ok_or_else(|| self.broken("a scalar is wanted"))
    }

    /// Whether an expression is a place with an address: all but parameters that are plain values.
    fn is_in_memory(&self, expr: &Expr) -> bool {
        let storage = local_of_place(expr).and_then(|local| self.locals.get(local.0 as usize));
        is_place(expr) && !matches!(storage, Some(Storage::Value(_)))
    }

    /// Branches on a condition. `&&`, `||` and `!` become control flow, without a value.
    pub(super) fn condition(&mut self, expr: &Expr, yes: BlockId, no: BlockId) -> Result<()> {
        match &expr.kind {
            ExprKind::Unary(UnaryOp::Not, operand) => self.condition(operand, no, yes),
            ExprKind::Logical { is_and, left, right } => {
                let [more] = self.body.blocks(if *is_and { "and" } else { "or" }, ["right"]);
                if *is_and {
                    self.condition(left, more, no)?;
                } else {
                    self.condition(left, yes, more)?;
                }
                self.body.place(more);
                self.condition(right, yes, no)
            }
            _ => {
                let condition = self.value(expr)?;
                self.body.branch(condition, yes, no);
                Ok(())
            }
        }
    }

    fn logical(&mut self, is_and: bool, left: &Expr, right: &Expr, expr: &Expr) -> Result<Operand> {
        if speculation_cost(right).is_some_and(|cost| cost <= SPECULATION_LIMIT) {
            let left = self.value(left)?;
            let right = self.value(right)?;
            let decided = Operand::Const(Const::Bool(!is_and));
            let kind = if is_and {
                InstKind::Select(left, right, decided)
            } else {
                InstKind::Select(left, decided, right)
            };
            return Ok(self.body.emit(kind, Type::BOOL, expr.span));
        }
        let name = if is_and { "and" } else { "or" };
        let [more, end] = self.body.blocks(name, ["right", "end"]);
        let slot = self.body.slot(name, Type::BOOL);
        let left = self.value(left)?;
        self.body.store(slot.clone(), left.clone(), expr.span);
        if is_and {
            self.body.branch(left, more, end);
        } else {
            self.body.branch(left, end, more);
        }
        self.body.place(more);
        let right = self.value(right)?;
        self.body.store(slot.clone(), right, expr.span);
        self.body.jump(end);
        self.body.place(end);
        Ok(self.body.load(slot, &Type::BOOL, expr.span))
    }

    fn if_expression(
        &mut self,
        expr: &Expr,
        condition: &Expr,
        then: &Block,
        otherwise: Option<&Block>,
    ) -> Result<Option<Operand>> {
        if let (Some(yes), Some(no)) = (simple_value(then), otherwise.and_then(simple_value))
            && expr.ty != Type::Unit
        {
            let condition = self.value(condition)?;
            let yes = self.value(yes)?;
            let no = self.value(no)?;
            let kind = InstKind::Select(condition, yes, no);
            return Ok(Some(self.body.emit(kind, expr.ty.clone(), expr.span)));
        }
        let slot = (expr.ty != Type::Unit).then(|| self.body.slot("if", expr.ty.clone()));
        let [yes, other, end] = self.body.blocks("if", ["then", "else", "end"]);
        let no = if otherwise.is_some() { other } else { end };
        self.condition(condition, yes, no)?;
        for (block, start) in std::iter::once((then, yes)).chain(otherwise.map(|block| (block, no)))
        {
            self.body.place(start);
            let value = self.block(block)?;
            match (&slot, value) {
                (Some(slot), Some(value)) => self.body.store(slot.clone(), value, expr.span),
                (Some(_), None) => drop(self.placeholder(&expr.ty)?),
                (None, _) => {}
            }
            self.body.jump(end);
        }
        self.body.place(end);
        Ok(slot.map(|slot| self.body.load(slot, &expr.ty, expr.span)))
    }

    fn call(
        &mut self,
        expr: &Expr,
        callee: FunctionId,
        arguments: &[Expr],
    ) -> Result<Option<Operand>> {
        let mut values = self.values(arguments)?;
        let Some(target) = self.program.targets.get(callee.0 as usize) else {
            return Err(self.broken("a call of a function that is not there"));
        };
        if target.kernel.is_some() {
            return Err(self.broken("a call of a kernel"));
        }
        let function = target.function;
        if target.takes_geometry {
            values.insert(0, self.geometry()?);
        }
        let kind = InstKind::Call { function, arguments: values };
        let value = self.body.emit(kind, expr.ty.clone(), expr.span);
        Ok((expr.ty != Type::Unit).then_some(value))
    }
}

/// The value of a block that is nothing but a value which may be computed in vain.
fn simple_value(block: &Block) -> Option<&Expr> {
    let value = block.value.as_deref().filter(|_| block.statements.is_empty())?;
    // `else if` is a block around another `if`, and a value in a block of its own may be in another.
    let value = match &value.kind {
        ExprKind::Block(inner) => simple_value(inner)?,
        _ => value,
    };
    speculation_cost(value).filter(|cost| *cost <= SPECULATION_LIMIT)?;
    Some(value)
}
