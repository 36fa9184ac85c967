//! `f16` and `bf16` by instructions that LLVM 7 has no name for: conversions to `bf16`, its fused multiply-add, and
//! operations on two numbers at once.
//!
//! All are pure assembly. Every result is rounded once, so it is the same as in software but for the bits of a NaN: the GPU's
//! is 0x7fff (PTX ISA, "cvt", "fma", "add"). A sum of `bf16` is `a * 1 + b`, a product `a * b - 0`, because its plain sum and
//! product are newer than its `fma`.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FloatValue, IntValue};

use super::bug;
use super::function::FunctionEmitter;
use super::instruction::pointee;
use super::values::{int, pointer, result};
use crate::error::Result;
use gridlet_lang::builtins::{Builtin, MathOp};
use gridlet_lang::ir::{BinaryOp, InstKind, Operand, UnaryOp};
use gridlet_lang::types::{Scalar, Type};

/// The bits of `bf16` constants.
const ONE: u64 = 0x3f80;
const MINUS_ONE: u64 = 0xbf80;
const MINUS_ZERO: u64 = 0x8000;

/// How many operations of a pair are packed together with those of their operands.
const MOST_LEVELS: u32 = 8;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Rounds an `f32` to nearest, ties to even.
    pub(super) fn f32_to_bf16(&self, value: FloatValue<'ctx>) -> Result<IntValue<'ctx>> {
        int(self.pure_assembly("cvt.rn.bf16.f32 $0, $1;", 16, &[value.into()])?)
    }

    /// A sum, difference or product of `bf16`; `None` for other operators.
    pub(super) fn bf16_operation(
        &self,
        op: BinaryOp,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let constant = |bits| self.cx.int_type(16).const_int(bits, false).into();
        let Some(factors) = bf16_factors(op, left, right, constant) else { return Ok(None) };
        self.bf16_fma(factors).map(Some)
    }

    /// `left * right + added`, rounded once.
    pub(super) fn bf16_fma(
        &self,
        factors: [BasicValueEnum<'ctx>; 3],
    ) -> Result<BasicValueEnum<'ctx>> {
        self.pure_assembly("fma.rn.bf16 $0, $1, $2, $3;", 16, &factors)
    }

    /// A vector of two `f16` or `bf16` whose parts are results of the same operation; `None` for other vectors.
    pub(super) fn packed(
        &self,
        parts: &[Operand],
        ty: &Type,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let Type::Vector(scalar @ (Scalar::F16 | Scalar::Bf16), 2) = ty else { return Ok(None) };
        let [low, high] = parts else { return Ok(None) };
        if !self.cx.has_packed_floats() {
            return Ok(None);
        }
        let Some(word) = self.packed_operation(*scalar, low, high, MOST_LEVELS)? else {
            return Ok(None);
        };
        Ok(Some(self.build().build_bit_cast(int(word)?, self.cx.value_type(ty)?, "")?))
    }

    /// Whether GPUs read and write a value as a word: two `bf16` in functions that do not compute with `bf16`. To make an `f32` of one is
    /// a shift or a mask of the word, and more of a vector; but libNVVM does not see that the two parts of a word are the operand of a
    /// packed operation.
    pub(super) fn is_word(&self, ty: &Type) -> bool {
        *ty == Type::Vector(Scalar::Bf16, 2)
            && self.cx.cpu().is_none()
            && *self.has_words.get_or_init(|| !self.computes_with_bf16())
    }

    fn computes_with_bf16(&self) -> bool {
        let is_bf16 = |operand: &Operand| {
            matches!(
                self.type_of(operand),
                Type::Scalar(Scalar::Bf16) | Type::Vector(Scalar::Bf16, _)
            )
        };
        self.function.instructions.iter().any(|inst| match &inst.kind {
            InstKind::Unary(_, value) => is_bf16(value),
            InstKind::Binary(_, left, _) => is_bf16(left),
            InstKind::Builtin { arguments, .. } => arguments.iter().any(is_bf16),
            _ => false,
        })
    }

    /// A load of one of two `bf16` in a local variable, from the word that both are; `None` for other loads.
    pub(super) fn load_from_word(
        &self,
        from: &Operand,
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let Operand::Inst(id) = from else { return Ok(None) };
        let InstKind::FieldAddress { base, index } = &self.function.instructions[id.index()].kind
        else {
            return Ok(None);
        };
        let base_type = self.type_of(base);
        let pair = pointee(&base_type)?;
        if !self.is_word(pair) || !self.is_in_slot(base) {
            return Ok(None);
        }
        let (word, half) = (self.cx.int_type(32), self.cx.int_type(16));
        let loaded = self.load_leaf(
            pointer(self.operand(base)?)?,
            self.cx.alignment(pair),
            pair,
            word.into(),
            "",
        )?;
        let bits = word.const_int(u64::from(*index) * 16, false);
        let shifted = self.build().build_right_shift(int(loaded)?, bits, false, "")?;
        Ok(Some(self.build().build_int_truncate(shifted, half, name)?.into()))
    }

    /// Two numbers as one word, computed or loaded together where that is possible.
    fn packed_word(
        &self,
        scalar: Scalar,
        low: &Operand,
        high: &Operand,
        levels: u32,
    ) -> Result<BasicValueEnum<'ctx>> {
        if let Some(word) = self.packed_operation(scalar, low, high, levels)? {
            return Ok(word);
        }
        let pair = match self.loaded_pair(scalar, low, high)? {
            Some(pair) => pair,
            None => {
                let parts = [self.operand(low)?, self.operand(high)?];
                self.aggregate(&parts, &Type::Vector(scalar, 2))?
            }
        };
        Ok(self.build().build_bit_cast(pair, self.cx.int_type(32), "")?)
    }

    /// Two results of the same operation as one word.
    fn packed_operation(
        &self,
        scalar: Scalar,
        low: &Operand,
        high: &Operand,
        levels: u32,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let (Some(first), Some(second), Some(levels)) =
            (self.kind(low), self.kind(high), levels.checked_sub(1))
        else {
            return Ok(None);
        };
        let word = |low: &Operand, high: &Operand| self.packed_word(scalar, low, high, levels);
        let suffix = if scalar == Scalar::F16 { "f16x2" } else { "bf16x2" };
        let (text, arguments) = match (first, second) {
            (InstKind::Cast(low), InstKind::Cast(high))
                if self.type_of(low) == Type::F32 && self.type_of(high) == Type::F32 =>
            {
                let text = format!("cvt.rn.{suffix}.f32 $0, $1, $2;");
                (text, vec![self.operand(high)?, self.operand(low)?])
            }
            (InstKind::Binary(op, low_a, low_b), InstKind::Binary(other, high_a, high_b))
                if op == other && is_packed(*op) =>
            {
                let (left, right) = (word(low_a, high_a)?, word(low_b, high_b)?);
                match scalar {
                    Scalar::F16 => {
                        let name = match op {
                            BinaryOp::Add => "add",
                            BinaryOp::Sub => "sub",
                            _ => "mul",
                        };
                        (format!("{name}.rn.{suffix} $0, $1, $2;"), vec![left, right])
                    }
                    _ => {
                        let pair =
                            |bits| self.cx.int_type(32).const_int(bits << 16 | bits, false).into();
                        let factors = bf16_factors(*op, left, right, pair)
                            .ok_or_else(|| bug("a packed operator without factors"))?;
                        (format!("fma.rn.{suffix} $0, $1, $2, $3;"), factors.to_vec())
                    }
                }
            }
            (
                InstKind::Builtin { builtin: Builtin::Math(op), arguments: low, .. },
                InstKind::Builtin { builtin: Builtin::Math(other), arguments: high, .. },
            ) if op == other && matches!(op, MathOp::Fma | MathOp::Min | MathOp::Max) => {
                let text = match op {
                    MathOp::Fma => format!("fma.rn.{suffix} $0, $1, $2, $3;"),
                    _ => extreme(*op, scalar, "x2"),
                };
                let arguments = low.iter().zip(high).map(|(low, high)| word(low, high));
                (text, arguments.collect::<Result<Vec<_>>>()?)
            }
            (
                InstKind::Builtin { builtin: Builtin::Math(MathOp::Abs), arguments: low, .. },
                InstKind::Builtin { builtin: Builtin::Math(MathOp::Abs), arguments: high, .. },
            ) => {
                let mask = self.cx.int_type(32).const_int(0x7fff_7fff, false);
                let pair = int(word(&low[0], &high[0])?)?;
                return Ok(Some(self.build().build_and(pair, mask, "")?.into()));
            }
            (InstKind::Unary(UnaryOp::Neg, low), InstKind::Unary(UnaryOp::Neg, high)) => {
                let signs = self.cx.int_type(32).const_int(0x8000_8000, false);
                return Ok(Some(self.build().build_xor(int(word(low, high)?)?, signs, "")?.into()));
            }
            _ => return Ok(None),
        };
        self.pure_assembly(&text, 32, &arguments).map(Some)
    }

    /// What computes an operand.
    pub(super) fn kind(&self, operand: &Operand) -> Option<&InstKind> {
        let Operand::Inst(id) = operand else { return None };
        self.function.instructions.get(id.index()).map(|inst| &inst.kind)
    }

    /// Assembly that depends on nothing but its arguments.
    pub(super) fn pure_assembly(
        &self,
        text: &str,
        bits: u32,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let types: Vec<BasicTypeEnum<'ctx>> =
            arguments.iter().map(|argument| argument.get_type()).collect();
        let ty = self.cx.function_type(Some(self.cx.int_type(bits).into()), &types);
        let mut constraints = String::from(if bits == 16 { "=h" } else { "=r" });
        for argument in &types {
            constraints += match argument {
                BasicTypeEnum::FloatType(_) => ",f",
                BasicTypeEnum::IntType(ty) if ty.get_bit_width() == 16 => ",h",
                _ => ",r",
            };
        }
        let context = self.cx.context;
        let assembly =
            context.create_inline_asm(ty, text.into(), constraints, false, false, None, false);
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> =
            arguments.iter().map(|&argument| argument.into()).collect();
        let call = self.build().build_indirect_call(ty, assembly, &arguments, "")?;
        for name in ["nounwind", "willreturn", "memory"] {
            let kind = Attribute::get_named_enum_kind_id(name);
            call.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
        }
        result(call)
    }
}

/// The instruction for the smaller or the larger of two narrow floats, or of two pairs with `width` "x2". As for `f32`, it gives the other
/// number if one is a NaN, and orders -0 below +0 (PTX ISA, "min", "max").
pub(super) fn extreme(op: MathOp, scalar: Scalar, width: &str) -> String {
    let name = if op == MathOp::Min { "min" } else { "max" };
    format!("{name}.{}{width} $0, $1, $2;", scalar.name())
}

/// Whether two such operations on narrow floats can be one.
fn is_packed(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)
}

/// The factors and the addend that give an operator's result on `bf16`.
fn bf16_factors<T>(op: BinaryOp, left: T, right: T, constant: impl Fn(u64) -> T) -> Option<[T; 3]> {
    Some(match op {
        BinaryOp::Add => [left, constant(ONE), right],
        BinaryOp::Sub => [right, constant(MINUS_ONE), left],
        BinaryOp::Mul => [left, right, constant(MINUS_ZERO)],
        _ => return None,
    })
}
