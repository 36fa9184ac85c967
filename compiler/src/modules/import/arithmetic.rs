//! Arithmetic, comparisons and conversions, for scalars and for each element of a vector.

use gridlet_lang::ir::{Const, InstKind, Operand};
use gridlet_lang::operators::{BinaryOp, UnaryOp};
use gridlet_lang::types::{Scalar, Type};
use inkwell::llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};

use super::Step;
use super::body::Body;
use crate::modules::kernels::signed;
use crate::nvvm::legacy::llvm::{Shape, Value};

/// The operator of an instruction, and whether its operands are signed.
fn operator(opcode: LLVMOpcode) -> Option<(BinaryOp, bool)> {
    use BinaryOp::{Add, And, Div, Mul, Or, Rem, Shl, Shr, Sub, Xor};
    Some(match opcode {
        LLVMOpcode::LLVMAdd | LLVMOpcode::LLVMFAdd => (Add, false),
        LLVMOpcode::LLVMSub | LLVMOpcode::LLVMFSub => (Sub, false),
        LLVMOpcode::LLVMMul | LLVMOpcode::LLVMFMul => (Mul, false),
        LLVMOpcode::LLVMUDiv | LLVMOpcode::LLVMFDiv => (Div, false),
        LLVMOpcode::LLVMSDiv => (Div, true),
        LLVMOpcode::LLVMURem => (Rem, false),
        LLVMOpcode::LLVMSRem => (Rem, true),
        LLVMOpcode::LLVMShl => (Shl, false),
        LLVMOpcode::LLVMLShr => (Shr, false),
        LLVMOpcode::LLVMAShr => (Shr, true),
        LLVMOpcode::LLVMAnd => (And, false),
        LLVMOpcode::LLVMOr => (Or, false),
        LLVMOpcode::LLVMXor => (Xor, false),
        _ => return None,
    })
}

/// The comparison of integers for a predicate, and whether they are signed.
fn integer_comparison(predicate: LLVMIntPredicate) -> (BinaryOp, bool) {
    match predicate {
        LLVMIntPredicate::LLVMIntEQ => (BinaryOp::Eq, false),
        LLVMIntPredicate::LLVMIntNE => (BinaryOp::Ne, false),
        LLVMIntPredicate::LLVMIntUGT => (BinaryOp::Gt, false),
        LLVMIntPredicate::LLVMIntUGE => (BinaryOp::Ge, false),
        LLVMIntPredicate::LLVMIntULT => (BinaryOp::Lt, false),
        LLVMIntPredicate::LLVMIntULE => (BinaryOp::Le, false),
        LLVMIntPredicate::LLVMIntSGT => (BinaryOp::Gt, true),
        LLVMIntPredicate::LLVMIntSGE => (BinaryOp::Ge, true),
        LLVMIntPredicate::LLVMIntSLT => (BinaryOp::Lt, true),
        LLVMIntPredicate::LLVMIntSLE => (BinaryOp::Le, true),
    }
}

/// The signed type of the same size.
pub(super) fn to_signed(ty: &Type) -> Type {
    ty.as_scalar().map_or_else(|| ty.clone(), |scalar| Type::Scalar(signed(scalar)))
}

/// An operation on scalars of a type.
type OfLanes<'a, B> = &'a mut dyn FnMut(&mut B, &[Operand], &Type) -> Step<Operand>;

impl<'m> Body<'_, 'm> {
    /// An instruction that computes a value from values; `None` if it is of another kind.
    pub(super) fn arithmetic(&mut self, value: Value<'m>) -> Step<Option<Operand>> {
        let opcode = value.opcode();
        if let Some((op, is_signed)) = operator(opcode) {
            return self.lanes(value, &mut |body, lanes, ty| {
                body.binary(op, is_signed, &lanes[0], &lanes[1], ty)
            });
        }
        match opcode {
            LLVMOpcode::LLVMFNeg => self.lanes(value, &mut |body, lanes, ty| {
                Ok(body.emit(InstKind::Unary(UnaryOp::Neg, lanes[0].clone()), ty.clone()))
            }),
            LLVMOpcode::LLVMFreeze => Ok(Some(self.operand(value.operand(0))?)),
            LLVMOpcode::LLVMICmp => {
                let (op, is_signed) = integer_comparison(value.int_predicate());
                self.compare(value, &mut |body, left, right, ty| {
                    let [left, right] = body.comparable(ty, [left, right], is_signed);
                    body.emit(InstKind::Binary(op, left, right), Type::BOOL)
                })
            }
            LLVMOpcode::LLVMFCmp => {
                let predicate = value.real_predicate();
                self.compare(value, &mut |body, left, right, _| {
                    body.compare_floats(predicate, &left, &right)
                })
            }
            LLVMOpcode::LLVMSelect => {
                let condition = value.operand(0);
                if !matches!(condition.ty().shape(), Shape::Int(1)) {
                    return Err("a choice for each element of a vector".into());
                }
                let ty = self.type_of(value)?;
                let [condition, yes, no] = [0, 1, 2].map(|at| self.operand(value.operand(at)));
                Ok(Some(self.emit(InstKind::Select(condition?, yes?, no?), ty)))
            }
            LLVMOpcode::LLVMTrunc
            | LLVMOpcode::LLVMZExt
            | LLVMOpcode::LLVMSExt
            | LLVMOpcode::LLVMFPToUI
            | LLVMOpcode::LLVMFPToSI
            | LLVMOpcode::LLVMUIToFP
            | LLVMOpcode::LLVMSIToFP
            | LLVMOpcode::LLVMFPTrunc
            | LLVMOpcode::LLVMFPExt
            | LLVMOpcode::LLVMPtrToInt
            | LLVMOpcode::LLVMIntToPtr
            | LLVMOpcode::LLVMAddrSpaceCast
            | LLVMOpcode::LLVMBitCast => self.conversion(value).map(Some),
            _ => Ok(None),
        }
    }

    /// Applies an operation to scalars, or to each element of vectors.
    fn lanes(&mut self, value: Value<'m>, apply: OfLanes<'_, Self>) -> Step<Option<Operand>> {
        let ty = self.type_of(value)?;
        let operands = value.operands().into_iter().map(|operand| self.operand(operand));
        let operands: Vec<Operand> = operands.collect::<Step<_>>()?;
        let Type::Vector(scalar, count) = ty else {
            return apply(self, &operands, &ty).map(Some);
        };
        let element = Type::Scalar(scalar);
        let mut parts = vec![];
        for index in 0..u32::from(count) {
            let lanes: Vec<Operand> = operands
                .iter()
                .map(|base| {
                    self.emit(InstKind::Extract { base: base.clone(), index }, element.clone())
                })
                .collect();
            parts.push(apply(self, &lanes, &element)?);
        }
        Ok(Some(self.emit(InstKind::Aggregate(parts), ty)))
    }

    fn compare(
        &mut self,
        value: Value<'m>,
        apply: &mut dyn FnMut(&mut Self, Operand, Operand, &Type) -> Operand,
    ) -> Step<Option<Operand>> {
        if !matches!(value.ty().shape(), Shape::Int(1)) {
            return Err("a comparison of each element of vectors".into());
        }
        let ty = self.type_of(value.operand(0))?;
        let (left, right) = (self.operand(value.operand(0))?, self.operand(value.operand(1))?);
        Ok(Some(apply(self, left, right, &ty)))
    }

    /// Operands that `<` orders as addresses, or as numbers with or without a sign.
    fn comparable<const N: usize>(
        &mut self,
        ty: &Type,
        operands: [Operand; N],
        is_signed: bool,
    ) -> [Operand; N] {
        let word = if ty.is_pointer() { Type::U64 } else { ty.clone() };
        let to = if is_signed { to_signed(&word) } else { word.clone() };
        operands.map(|operand| {
            let operand = self.cast(operand, ty, &word);
            self.cast(operand, &word, &to)
        })
    }

    /// An operator on unsigned values, whose operands it takes as signed if `is_signed`.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        is_signed: bool,
        left: &Operand,
        right: &Operand,
        ty: &Type,
    ) -> Step<Operand> {
        let scalar = ty.as_scalar().ok_or("an operator on addresses")?;
        if scalar == Scalar::Bool {
            // Arithmetic on one bit.
            let op = match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor => BinaryOp::Ne,
                BinaryOp::Mul | BinaryOp::And => BinaryOp::And,
                BinaryOp::Or => BinaryOp::Or,
                _ => return Err("this operator on one bit".into()),
            };
            return Ok(self.emit(InstKind::Binary(op, left.clone(), right.clone()), Type::BOOL));
        }
        let mut right = right.clone();
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            right = match right {
                Operand::Const(Const::Int(_, count)) if count < i128::from(scalar.bits()) => right,
                _ => {
                    let mask = Body::number(scalar, u64::from(scalar.bits() - 1));
                    self.emit(InstKind::Binary(BinaryOp::And, right, mask), ty.clone())
                }
            };
        }
        let to = if is_signed { to_signed(ty) } else { ty.clone() };
        let left = self.cast(left.clone(), ty, &to);
        if !matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            right = self.cast(right, ty, &to);
        }
        let result = match to.as_scalar() {
            // LLVM leaves a division by zero undefined; here it traps, at its own line, as in the language.
            Some(scalar) if matches!(op, BinaryOp::Div | BinaryOp::Rem) && scalar.is_integer() => {
                self.builder.divide(op, scalar, (left, right), false, self.span)
            }
            _ => self.emit(InstKind::Binary(op, left, right), to.clone()),
        };
        Ok(self.cast(result, &to, ty))
    }

    fn compare_floats(
        &mut self,
        predicate: LLVMRealPredicate,
        left: &Operand,
        right: &Operand,
    ) -> Operand {
        use LLVMRealPredicate as P;
        let mut test = |op, left: &Operand, right: &Operand| {
            self.emit(InstKind::Binary(op, left.clone(), right.clone()), Type::BOOL)
        };
        let (value, is_negated) = match predicate {
            P::LLVMRealPredicateFalse => (Operand::Const(Const::Bool(false)), false),
            P::LLVMRealPredicateTrue => (Operand::Const(Const::Bool(true)), false),
            P::LLVMRealOEQ => (test(BinaryOp::Eq, left, right), false),
            P::LLVMRealUNE => (test(BinaryOp::Ne, left, right), false),
            P::LLVMRealOGT => (test(BinaryOp::Gt, left, right), false),
            P::LLVMRealOGE => (test(BinaryOp::Ge, left, right), false),
            P::LLVMRealOLT => (test(BinaryOp::Lt, left, right), false),
            P::LLVMRealOLE => (test(BinaryOp::Le, left, right), false),
            P::LLVMRealULE => (test(BinaryOp::Gt, left, right), true),
            P::LLVMRealULT => (test(BinaryOp::Ge, left, right), true),
            P::LLVMRealUGE => (test(BinaryOp::Lt, left, right), true),
            P::LLVMRealUGT => (test(BinaryOp::Le, left, right), true),
            P::LLVMRealONE | P::LLVMRealUEQ => {
                let (less, more) =
                    (test(BinaryOp::Lt, left, right), test(BinaryOp::Gt, left, right));
                let either = test(BinaryOp::Or, &less, &more);
                (either, predicate == P::LLVMRealUEQ)
            }
            P::LLVMRealORD | P::LLVMRealUNO => {
                let (own, other) =
                    (test(BinaryOp::Eq, left, left), test(BinaryOp::Eq, right, right));
                let both = test(BinaryOp::And, &own, &other);
                (both, predicate == P::LLVMRealUNO)
            }
        };
        if is_negated { self.emit(InstKind::Unary(UnaryOp::Not, value), Type::BOOL) } else { value }
    }

    fn conversion(&mut self, value: Value<'m>) -> Step<Operand> {
        let (from, to) = (self.type_of(value.operand(0))?, self.type_of(value)?);
        let operand = self.operand(value.operand(0))?;
        self.convert(value.opcode(), operand, &from, &to)
    }

    /// A conversion by an opcode, also in a constant expression.
    pub(super) fn convert(
        &mut self,
        opcode: LLVMOpcode,
        operand: Operand,
        from: &Type,
        to: &Type,
    ) -> Step<Operand> {
        if from == to {
            return Ok(operand);
        }
        let is_scalar = |ty: &Type| ty.as_scalar().is_some() || ty.is_pointer();
        if opcode == LLVMOpcode::LLVMBitCast && !(from.is_pointer() && to.is_pointer()) {
            return Ok(self.builtin(gridlet_lang::builtins::Builtin::Bitcast, vec![operand], to));
        }
        if !is_scalar(from) || !is_scalar(to) {
            return Err("a conversion of each element of a vector".into());
        }
        match opcode {
            LLVMOpcode::LLVMSExt if *from == Type::BOOL => {
                let word = self.cast(operand, from, to);
                Ok(self.emit(InstKind::Unary(UnaryOp::Neg, word), to.clone()))
            }
            LLVMOpcode::LLVMSExt | LLVMOpcode::LLVMSIToFP => {
                let number = self.cast(operand, from, &to_signed(from));
                let wide = to_signed(to);
                let number = self.cast(number, &to_signed(from), &wide);
                Ok(self.cast(number, &wide, to))
            }
            LLVMOpcode::LLVMFPToSI => {
                let number = self.cast(operand, from, &to_signed(to));
                Ok(self.cast(number, &to_signed(to), to))
            }
            LLVMOpcode::LLVMTrunc if *to == Type::BOOL => {
                let scalar = from.as_scalar().ok_or("a pointer as one bit")?;
                let one = Body::number(scalar, 1);
                let bit = self.emit(InstKind::Binary(BinaryOp::And, operand, one), from.clone());
                let zero = Body::number(scalar, 0);
                Ok(self.emit(InstKind::Binary(BinaryOp::Ne, bit, zero), Type::BOOL))
            }
            LLVMOpcode::LLVMPtrToInt | LLVMOpcode::LLVMIntToPtr => {
                let word = self.cast(operand, from, &Type::U64);
                Ok(self.cast(word, &Type::U64, to))
            }
            _ => Ok(self.cast(operand, from, to)),
        }
    }
}
