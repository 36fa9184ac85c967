//! Arithmetic of integers that tells of an overflow, or stops at the largest and the smallest number.

use gridlet_lang::builtins::Builtin;
use gridlet_lang::ir::{Const, InstKind, Operand};
use gridlet_lang::operators::BinaryOp;
use gridlet_lang::types::{Scalar, Type};

use super::Step;
use super::arithmetic::to_signed;
use super::body::Body;
use crate::modules::kernels::signed;
use crate::nvvm::legacy::llvm::Value;

/// An operation of two integers.
#[derive(Clone, Copy)]
struct Operation {
    op: BinaryOp,
    is_signed: bool,
}

/// The operation in a name, `sadd` for the sum of signed numbers.
fn operation(name: &str) -> Option<Operation> {
    let (is_signed, op) = match name.split_at_checked(1)? {
        ("s", op) => (true, op),
        ("u", op) => (false, op),
        _ => return None,
    };
    let op = match op {
        "add" => BinaryOp::Add,
        "sub" => BinaryOp::Sub,
        "mul" => BinaryOp::Mul,
        _ => return None,
    };
    Some(Operation { op, is_signed })
}

impl<'m> Body<'_, 'm> {
    /// `llvm.uadd.with.overflow`, `llvm.ssub.sat` and others like them; `None` for other intrinsics.
    pub(super) fn overflowing(&mut self, value: Value<'m>, name: &str) -> Step<Option<Operand>> {
        let (operation, is_pair) = if let Some(name) = name.strip_suffix(".with.overflow") {
            (operation(name.trim_start_matches("llvm.")), true)
        } else if let Some(name) = name.strip_suffix(".sat") {
            let found = operation(name.trim_start_matches("llvm."));
            (found.filter(|found| found.op != BinaryOp::Mul), false)
        } else {
            return Ok(None);
        };
        let Some(operation) = operation else { return Ok(None) };
        let ty = self.type_of(value.operand(0))?;
        let Some(scalar) = ty.as_scalar().filter(|scalar| scalar.is_integer()) else {
            return Err(format!("`{name}` on `{}`", value.operand(0).ty().print()));
        };
        let [left, right] = [0, 1].map(|at| self.operand(value.operand(at)));
        let (left, right) = (left?, right?);
        let (result, is_over) = self.with_overflow(operation, &left, &right, scalar);
        if is_pair {
            let pair = self.type_of(value)?;
            return Ok(Some(self.emit(InstKind::Aggregate(vec![result, is_over]), pair)));
        }
        let limit = self.limit(operation, &left, scalar);
        Ok(Some(self.emit(InstKind::Select(is_over, limit, result), ty)))
    }

    /// The result as far as it has bits, and whether that is all of it.
    fn with_overflow(
        &mut self,
        Operation { op, is_signed }: Operation,
        left: &Operand,
        right: &Operand,
        scalar: Scalar,
    ) -> (Operand, Operand) {
        let ty = Type::Scalar(scalar);
        let binary = |body: &mut Self, op, left: &Operand, right: &Operand, ty: &Type| {
            body.emit(InstKind::Binary(op, left.clone(), right.clone()), ty.clone())
        };
        let result = binary(self, op, left, right, &ty);
        let is_over = match (op, is_signed) {
            (BinaryOp::Add, false) => binary(self, BinaryOp::Lt, &result, left, &Type::BOOL),
            (BinaryOp::Sub, false) => binary(self, BinaryOp::Lt, left, right, &Type::BOOL),
            (BinaryOp::Mul, _) => self.product_is_over(is_signed, left, right, &result, scalar),
            // The sign of the result differs from both that lead to it.
            _ => {
                let other = if op == BinaryOp::Add { &result } else { left };
                let one = binary(self, BinaryOp::Xor, left, &result, &ty);
                let two = binary(self, BinaryOp::Xor, right, other, &ty);
                let both = binary(self, BinaryOp::And, &one, &two, &ty);
                self.is_negative(&both, &ty)
            }
        };
        (result, is_over)
    }

    fn product_is_over(
        &mut self,
        is_signed: bool,
        left: &Operand,
        right: &Operand,
        result: &Operand,
        scalar: Scalar,
    ) -> Operand {
        let ty = Type::Scalar(scalar);
        let to = if is_signed { to_signed(&ty) } else { ty.clone() };
        let (left, right) = (self.cast(left.clone(), &ty, &to), self.cast(right.clone(), &ty, &to));
        if scalar.bits() < 64 {
            // The whole product, compared with what is left of it.
            let wide = if is_signed { Type::I64 } else { Type::U64 };
            let (left, right) = (self.cast(left, &to, &wide), self.cast(right, &to, &wide));
            let whole = self.emit(InstKind::Binary(BinaryOp::Mul, left, right), wide.clone());
            let kept = self.cast(result.clone(), &ty, &to);
            let kept = self.cast(kept, &to, &wide);
            return self.emit(InstKind::Binary(BinaryOp::Ne, whole, kept), Type::BOOL);
        }
        let high = self.builtin(Builtin::MulHi, vec![left, right], &to);
        let high = self.cast(high, &to, &ty);
        let wanted = if is_signed {
            // Copies of the sign.
            let last = Operand::Const(Const::Int(signed(scalar), i128::from(scalar.bits() - 1)));
            let kept = self.cast(result.clone(), &ty, &to);
            let sign = self.emit(InstKind::Binary(BinaryOp::Shr, kept, last), to.clone());
            self.cast(sign, &to, &ty)
        } else {
            Body::number(scalar, 0)
        };
        self.emit(InstKind::Binary(BinaryOp::Ne, high, wanted), Type::BOOL)
    }

    fn is_negative(&mut self, value: &Operand, ty: &Type) -> Operand {
        let signed = to_signed(ty);
        let value = self.cast(value.clone(), ty, &signed);
        let zero = Operand::Const(Const::Zero(signed));
        self.emit(InstKind::Binary(BinaryOp::Lt, value, zero), Type::BOOL)
    }

    /// Where a sum or a difference stops that is too large or too small.
    fn limit(&mut self, operation: Operation, left: &Operand, scalar: Scalar) -> Operand {
        let all = u64::MAX >> (64 - scalar.bits());
        match (operation.op, operation.is_signed) {
            (BinaryOp::Add, false) => Body::number(scalar, all),
            (_, false) => Body::number(scalar, 0),
            (_, true) => {
                // Both operands of a sum have its sign, and a difference goes to the side of the first one.
                let ty = Type::Scalar(scalar);
                let is_negative = self.is_negative(left, &ty);
                let (least, most) =
                    (Body::number(scalar, all / 2 + 1), Body::number(scalar, all / 2));
                self.emit(InstKind::Select(is_negative, least, most), ty)
            }
        }
    }
}
