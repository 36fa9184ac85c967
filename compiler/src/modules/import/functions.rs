//! Functions of CUDA and of LLVM that the language lacks, in terms of what it has.

use gridlet_lang::builtins::{Builtin, MathOp};
use gridlet_lang::ir::{Const, InstKind, Operand};
use gridlet_lang::operators::BinaryOp;
use gridlet_lang::types::{Scalar, Type};

use super::Step;
use super::arithmetic::to_signed;
use super::body::Body;
use crate::modules::layout::pointer;
use crate::nvvm::legacy::llvm::Value;

/// Functions that round to an integer with halves to even, without the `f` of `float`.
const TO_EVEN: [&str; 5] =
    ["__nv_nearbyint", "__nv_rint", "llvm.nearbyint", "llvm.rint", "llvm.roundeven"];

impl<'m> Body<'_, 'm> {
    /// A call of one of these functions; `None` for others.
    pub(super) fn composed(&mut self, value: Value<'m>, name: &str) -> Step<Option<Composed>> {
        let plain = name.strip_suffix('f').filter(|_| name.starts_with("__nv_")).unwrap_or(name);
        Ok(Some(match plain {
            _ if TO_EVEN.contains(&plain) => Composed::Value(self.rounded_to_even(value)?),
            "__nv_sincos" | "__nv_fast_sincos" => {
                self.sine_and_cosine(value)?;
                Composed::Nothing
            }
            "__assertfail" => {
                self.failed_assertion(value)?;
                Composed::Nothing
            }
            "llvm.scmp" => Composed::Value(self.three_ways(value, true)?),
            "llvm.ucmp" => Composed::Value(self.three_ways(value, false)?),
            "llvm.ptrmask" => Composed::Value(self.masked_address(value)?),
            _ => return Ok(None),
        }))
    }

    /// Adding a number whose last bit counts 1 rounds to an integer, and taking it away again is exact.
    fn rounded_to_even(&mut self, value: Value<'m>) -> Step<Operand> {
        let ty = self.type_of(value)?;
        let scalar = ty.as_scalar().ok_or("a function of each element of a vector")?;
        let given = self.operand(value.operand(0))?;
        let wide = if scalar == Scalar::F64 { Scalar::F64 } else { Scalar::F32 };
        let (wide_ty, bits) = match wide {
            Scalar::F64 => (Type::Scalar(wide), Scalar::U64),
            _ => (Type::Scalar(wide), Scalar::U32),
        };
        let bits_ty = Type::Scalar(bits);
        let number = self.cast(given, &ty, &wide_ty);
        let whole = self.builtin(Builtin::Bitcast, vec![number.clone()], &bits_ty);
        let sign = Body::number(bits, 1 << (bits.bits() - 1));
        let sign = self.emit(InstKind::Binary(BinaryOp::And, whole, sign), bits_ty.clone());
        let size = self.builtin(Builtin::Math(MathOp::Abs), vec![number.clone()], &wide_ty);
        let large = if wide == Scalar::F64 { 4_503_599_627_370_496.0 } else { 8_388_608.0 };
        let large = Operand::Const(Const::Float(wide, large));
        let float = |body: &mut Self, op, left: &Operand, right: &Operand| {
            body.emit(InstKind::Binary(op, left.clone(), right.clone()), wide_ty.clone())
        };
        let sum = float(self, BinaryOp::Add, &size, &large);
        let rounded = float(self, BinaryOp::Sub, &sum, &large);
        let rounded = self.builtin(Builtin::Bitcast, vec![rounded], &bits_ty);
        let rounded = self.emit(InstKind::Binary(BinaryOp::Or, rounded, sign), bits_ty);
        let rounded = self.builtin(Builtin::Bitcast, vec![rounded], &wide_ty);
        // Larger numbers are integers. A NaN is not smaller either.
        let has_fraction = self.emit(InstKind::Binary(BinaryOp::Lt, size, large), Type::BOOL);
        let result = self.emit(InstKind::Select(has_fraction, rounded, number), wide_ty.clone());
        Ok(self.cast(result, &wide_ty, &ty))
    }

    fn sine_and_cosine(&mut self, value: Value<'m>) -> Step<()> {
        let (ty, angle) = (self.type_of(value.operand(0))?, self.operand(value.operand(0))?);
        for (at, operation) in [(1, MathOp::Sin), (2, MathOp::Cos)] {
            let result = self.builtin(Builtin::Math(operation), vec![angle.clone()], &ty);
            let to = self.operand(value.operand(at))?;
            let to = self.cast(to, &pointer(), &Type::pointer_mut(ty.clone()));
            self.builder.store(to, result, self.span);
        }
        Ok(())
    }

    /// The last argument is the size of a character.
    fn failed_assertion(&mut self, value: Value<'m>) -> Step<()> {
        let text = Type::pointer_const(Type::Scalar(Scalar::U8));
        let mut arguments = vec![];
        for at in 0..4 {
            let (argument, wanted) = (value.operand(at), if at == 2 { &Type::U32 } else { &text });
            let (given, operand) = (self.type_of(argument)?, self.operand(argument)?);
            arguments.push(self.cast(operand, &given, wanted));
        }
        self.builtin(Builtin::Assert, arguments, &Type::Unit);
        Ok(())
    }

    /// -1, 0 or 1.
    fn three_ways(&mut self, value: Value<'m>, is_signed: bool) -> Step<Operand> {
        let (from, to) = (self.type_of(value.operand(0))?, self.type_of(value)?);
        let scalar = to.as_scalar().filter(|_| from.as_scalar().is_some());
        let scalar = scalar.ok_or("a comparison of each element of vectors")?;
        let compared = if is_signed { to_signed(&from) } else { from.clone() };
        let [left, right] = [0, 1].map(|at| self.operand(value.operand(at)));
        let [left, right] = [left?, right?].map(|side| self.cast(side, &from, &compared));
        let test = |body: &mut Self, op| {
            body.emit(InstKind::Binary(op, left.clone(), right.clone()), Type::BOOL)
        };
        let (is_less, is_more) = (test(self, BinaryOp::Lt), test(self, BinaryOp::Gt));
        let [minus, zero, one] =
            [u64::MAX >> (64 - scalar.bits()), 0, 1].map(|number| Body::number(scalar, number));
        let rest = self.emit(InstKind::Select(is_more, one, zero), to.clone());
        Ok(self.emit(InstKind::Select(is_less, minus, rest), to))
    }

    fn masked_address(&mut self, value: Value<'m>) -> Step<Operand> {
        let (ty, mask) = (self.type_of(value.operand(1))?, self.operand(value.operand(1))?);
        if ty != Type::U64 {
            return Err("a mask of less than 64 bits for an address".into());
        }
        let address = self.operand(value.operand(0))?;
        let address = self.cast(address, &pointer(), &Type::U64);
        let masked = self.emit(InstKind::Binary(BinaryOp::And, address, mask), Type::U64);
        Ok(self.cast(masked, &Type::U64, &pointer()))
    }
}

/// What a function gives.
pub(super) enum Composed {
    Value(Operand),
    Nothing,
}
