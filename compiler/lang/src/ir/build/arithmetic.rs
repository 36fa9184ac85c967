//! Binary operators, following rule 10 of [`crate::ir`]: no integer operation has an undefined case.

use super::body::BodyBuilder;
use super::function::FunctionBuilder;
use super::nonzero;
use crate::builtins::Builtin;
use crate::check::tree::{BinaryOp, Expr, UnaryOp};
use crate::error::Result;
use crate::ir::{Const, InstKind, Operand, Terminator};
use crate::source::Span;
use crate::types::{Scalar, Type};

impl FunctionBuilder<'_, '_> {
    /// `left op right`, with the type of the left operand and the expression of the right one.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        (left, left_type): (Operand, &Type),
        (right, right_source): (Operand, &Expr),
        result: &Type,
        span: Span,
    ) -> Result<Operand> {
        let right_type = &right_source.ty;
        match op {
            BinaryOp::Add if left_type.is_pointer() => {
                let kind = InstKind::ElementAddress { base: left, index: right };
                return Ok(self.body.emit(kind, result.clone(), span));
            }
            BinaryOp::Add if right_type.is_pointer() => {
                let kind = InstKind::ElementAddress { base: right, index: left };
                return Ok(self.body.emit(kind, result.clone(), span));
            }
            BinaryOp::Sub if left_type.is_pointer() && right_type.is_pointer() => {
                return Ok(self.body.emit(
                    InstKind::PointerDifference(left, right),
                    Type::I64,
                    span,
                ));
            }
            BinaryOp::Sub if left_type.is_pointer() => {
                // Negated as 64 bits, where the smallest index of every narrower type has a negative.
                let index = match right {
                    Operand::Const(Const::Int(_, value)) => {
                        Operand::Const(Const::Int(Scalar::I64, wrap(Scalar::I64, -value)))
                    }
                    _ => {
                        let wide = self.body.emit(InstKind::Cast(right), Type::I64, span);
                        self.body.emit(InstKind::Unary(UnaryOp::Neg, wide), Type::I64, span)
                    }
                };
                let kind = InstKind::ElementAddress { base: left, index };
                return Ok(self.body.emit(kind, result.clone(), span));
            }
            _ => {}
        }
        match (op, left_type.as_scalar()) {
            (BinaryOp::Div | BinaryOp::Rem, Some(scalar)) if scalar.is_integer() => {
                let is_nonzero = nonzero::is_nonzero(right_source, &self.nonzero);
                Ok(self.body.divide(op, scalar, (left, right), is_nonzero, span))
            }
            (BinaryOp::Shl | BinaryOp::Shr, Some(scalar)) => {
                let count_type = self.scalar(right_type)?;
                let count = self.shift_count(scalar, count_type, right, span);
                Ok(self.body.emit(InstKind::Binary(op, left, count), result.clone(), span))
            }
            _ => Ok(self.body.emit(InstKind::Binary(op, left, right), result.clone(), span)),
        }
    }

    /// The count for shifting a `shifted`, modulo its width, which is a power of two.
    fn shift_count(
        &mut self,
        shifted: Scalar,
        count_type: Scalar,
        count: Operand,
        span: Span,
    ) -> Operand {
        let mask = i128::from(shifted.bits()) - 1;
        let int = |value| Operand::Const(Const::Int(count_type, value));
        match count {
            Operand::Const(Const::Int(_, value)) => int(value & mask),
            _ => {
                let kind = InstKind::Binary(BinaryOp::And, count, int(mask));
                self.body.emit(kind, Type::Scalar(count_type), span)
            }
        }
    }
}

impl BodyBuilder {
    /// `left / right` or `left % right` of integers, following rule 10.
    pub fn divide(
        &mut self,
        op: BinaryOp,
        scalar: Scalar,
        (left, right): (Operand, Operand),
        is_nonzero: bool,
        span: Span,
    ) -> Operand {
        let ty = Type::Scalar(scalar);
        let int = |value| Operand::Const(Const::Int(scalar, value));
        let constant = match &right {
            Operand::Const(constant) => constant.integer(),
            _ => None,
        };
        if let Some(divisor) = constant {
            return match wrap(scalar, divisor) {
                0 => {
                    self.trap(span);
                    Operand::Const(Const::Zero(ty))
                }
                -1 if op == BinaryOp::Div => {
                    self.emit(InstKind::Unary(UnaryOp::Neg, left), ty, span)
                }
                -1 => int(0),
                _ => self.emit(InstKind::Binary(op, left, right), ty, span),
            };
        }
        if !is_nonzero && !self.is_known_nonzero(&right) {
            let is_zero = InstKind::Binary(BinaryOp::Eq, right.clone(), int(0));
            let is_zero = self.emit(is_zero, Type::BOOL, span);
            // One trap serves the whole function: a trap does not report its position.
            let [go_on, by_zero] = self.blocks("div", ["ok", "by_zero"]);
            let (trap, _) = *self.division_trap.get_or_insert((by_zero, span));
            self.branch(is_zero, trap, go_on);
            self.place_nonzero(go_on, &right);
        }
        if scalar.is_unsigned() {
            return self.emit(InstKind::Binary(op, left, right), ty, span);
        }
        // x % -1 is x % 1. The smallest value has no positive counterpart: x / -1 is -x, which wraps.
        let is_minus_one = InstKind::Binary(BinaryOp::Eq, right.clone(), int(-1));
        let is_minus_one = self.emit(is_minus_one, Type::BOOL, span);
        let divisor = InstKind::Select(is_minus_one.clone(), int(1), right);
        let divisor = self.emit(divisor, ty.clone(), span);
        let plain = InstKind::Binary(op, left.clone(), divisor);
        let plain = self.emit(plain, ty.clone(), span);
        if op == BinaryOp::Rem {
            return plain;
        }
        let negated = self.emit(InstKind::Unary(UnaryOp::Neg, left), ty.clone(), span);
        self.emit(InstKind::Select(is_minus_one, negated, plain), ty, span)
    }

    /// Places the block for divisions by zero, if there is one; the last block of the function.
    pub fn place_division_trap(&mut self) {
        if let Some((block, span)) = self.division_trap {
            self.place(block);
            self.trap(span);
        }
    }

    /// Emits a trap, which ends the block.
    pub fn trap(&mut self, span: Span) {
        let kind = InstKind::Builtin { builtin: Builtin::Trap, arguments: vec![], format: None };
        self.emit(kind, Type::Unit, span);
        self.terminate(Terminator::Unreachable);
    }
}

/// The low bits of `value`, interpreted as a `scalar`.
pub(super) fn wrap(scalar: Scalar, value: i128) -> i128 {
    let unused = 128 - scalar.bits();
    let shifted = value << unused;
    if scalar.is_signed() { shifted >> unused } else { (shifted as u128 >> unused) as i128 }
}
