//! Constant folding, with the results that a GPU would compute.

use super::tree::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::builtins::{BitOp, Builtin, MathOp};
use crate::float;
use crate::types::{Scalar, Type};

/// The result of folding.
#[derive(Clone, Debug)]
pub(super) enum Folded {
    /// The operands are not constant, or the operation is evaluated at run time.
    No,
    /// A value.
    Value(ExprKind),
    /// An integer that overflowed its type, wrapped.
    Wrapped(ExprKind),
}

/// The low bits of `value` as a `scalar` integer.
pub(super) fn wrap(value: i128, scalar: Scalar) -> i128 {
    let unused = 128 - scalar.bits();
    match scalar.is_signed() {
        true => (value << unused) >> unused,
        false => (((value as u128) << unused) >> unused) as i128,
    }
}

fn int(value: i128, scalar: Scalar) -> Folded {
    match wrap(value, scalar) {
        wrapped if wrapped == value => Folded::Value(ExprKind::Int(value)),
        wrapped => Folded::Wrapped(ExprKind::Int(wrapped)),
    }
}

/// `op value`, both of type `ty`.
pub(super) fn unary(op: UnaryOp, value: &ExprKind, ty: &Type) -> Folded {
    match (op, value, ty) {
        (UnaryOp::Neg, ExprKind::Int(value), Type::Scalar(scalar)) => int(-value, *scalar),
        (UnaryOp::Neg, ExprKind::Float(value), _) => Folded::Value(ExprKind::Float(-value)),
        (UnaryOp::Not, ExprKind::Int(value), Type::Scalar(scalar)) => {
            Folded::Value(ExprKind::Int(wrap(!value, *scalar)))
        }
        (UnaryOp::Not, ExprKind::Bool(value), _) => Folded::Value(ExprKind::Bool(!value)),
        _ => Folded::No,
    }
}

/// `left op right`; `ty` is the type of `left`. The caller handles division by zero.
pub(super) fn binary(op: BinaryOp, left: &ExprKind, right: &ExprKind, ty: &Type) -> Folded {
    let Type::Scalar(scalar) = ty else { return Folded::No };
    match (left, right) {
        (ExprKind::Int(left), ExprKind::Int(right)) => integers(op, *left, *right, *scalar),
        (ExprKind::Float(left), ExprKind::Float(right)) => floats(op, *left, *right, *scalar),
        (ExprKind::Bool(left), ExprKind::Bool(right)) => {
            let value = match op {
                BinaryOp::And => left & right,
                BinaryOp::Or => left | right,
                BinaryOp::Xor | BinaryOp::Ne => left != right,
                BinaryOp::Eq => left == right,
                _ => return Folded::No,
            };
            Folded::Value(ExprKind::Bool(value))
        }
        _ => Folded::No,
    }
}

/// A built-in on constants, with a result of type `ty`. Only for integers: floating-point results depend on
/// the device.
pub(super) fn builtin(builtin: Builtin, arguments: &[Expr], ty: &Type) -> Folded {
    let numbers = arguments.iter().map(|argument| match argument.kind {
        ExprKind::Int(value) => Some(value),
        _ => None,
    });
    let Some(numbers) = numbers.collect::<Option<Vec<i128>>>() else { return Folded::No };
    let (Some(from), Some(to)) =
        (arguments.first().and_then(|first| first.ty.as_scalar()), ty.as_scalar())
    else {
        return Folded::No;
    };
    let bits = from.bits();
    let pattern = |value: i128| (value as u128) & (u128::MAX >> (128 - bits));
    let value = match (builtin, &numbers[..]) {
        (Builtin::Math(MathOp::Abs), [value]) => value.abs(),
        (Builtin::Math(MathOp::Min), [left, right]) => *left.min(right),
        (Builtin::Math(MathOp::Max), [left, right]) => *left.max(right),
        (Builtin::Math(MathOp::Clamp), [value, low, high]) => *value.max(low).min(high),
        (Builtin::Bit(BitOp::Popc), [value]) => pattern(*value).count_ones().into(),
        (Builtin::Bit(BitOp::Clz), [value]) => {
            (pattern(*value).leading_zeros() - (128 - bits)).into()
        }
        (Builtin::Bit(BitOp::Ctz), [value]) => pattern(*value).trailing_zeros().min(bits).into(),
        (Builtin::Bit(BitOp::Brev), [value]) => {
            wrap((pattern(*value).reverse_bits() >> (128 - bits)) as i128, from)
        }
        _ => return Folded::No,
    };
    int(value, to)
}

fn compare<T: PartialOrd>(op: BinaryOp, left: T, right: T) -> Option<ExprKind> {
    Some(ExprKind::Bool(match op {
        BinaryOp::Eq => left == right,
        BinaryOp::Ne => left != right,
        BinaryOp::Lt => left < right,
        BinaryOp::Le => left <= right,
        BinaryOp::Gt => left > right,
        BinaryOp::Ge => left >= right,
        _ => return None,
    }))
}

fn integers(op: BinaryOp, left: i128, right: i128, scalar: Scalar) -> Folded {
    if let Some(value) = compare(op, left, right) {
        return Folded::Value(value);
    }
    // The shift count is taken modulo the width.
    let count = right.rem_euclid(i128::from(scalar.bits())) as u32;
    match op {
        BinaryOp::Add => int(left + right, scalar),
        BinaryOp::Sub => int(left - right, scalar),
        // The product of two u64 may overflow i128; its low bits are still right.
        BinaryOp::Mul => match left.checked_mul(right) {
            Some(value) => int(value, scalar),
            None => Folded::Wrapped(ExprKind::Int(wrap(left.wrapping_mul(right), scalar))),
        },
        BinaryOp::Div if right != 0 => int(left / right, scalar),
        BinaryOp::Rem if right != 0 => int(left % right, scalar),
        BinaryOp::And => int(left & right, scalar),
        BinaryOp::Or => int(left | right, scalar),
        BinaryOp::Xor => int(left ^ right, scalar),
        // Bits shifted out at the top are lost, as defined for a shift.
        BinaryOp::Shl => Folded::Value(ExprKind::Int(wrap(left << count, scalar))),
        BinaryOp::Shr => Folded::Value(ExprKind::Int(left >> count)),
        _ => Folded::No,
    }
}

fn floats(op: BinaryOp, left: f64, right: f64, scalar: Scalar) -> Folded {
    if let Some(value) = compare(op, left, right) {
        return Folded::Value(value);
    }
    // For a narrower type, one operation in f64 and one rounding give the correctly rounded result: f64 has more than
    // twice as many digits plus two (S. Figueroa, "When is double rounding innocuous?").
    let value = match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => left * right,
        BinaryOp::Div => left / right,
        BinaryOp::Rem => left % right,
        _ => return Folded::No,
    };
    Folded::Value(ExprKind::Float(float::round(value, scalar)))
}

/// `value as to`, for convertible scalar types.
pub(super) fn cast(value: &ExprKind, to: Scalar) -> Folded {
    let value = match value {
        ExprKind::Int(value) if to.is_integer() => ExprKind::Int(wrap(*value, to)),
        ExprKind::Int(value) if to.is_float() => ExprKind::Float(float::round_integer(*value, to)),
        ExprKind::Bool(value) if to.is_integer() => ExprKind::Int(i128::from(*value)),
        ExprKind::Float(value) if to.is_integer() => {
            let (min, max) = to.range();
            ExprKind::Int((*value as i128).clamp(min, max))
        }
        ExprKind::Float(value) if to.is_float() => ExprKind::Float(float::round(*value, to)),
        _ => return Folded::No,
    };
    Folded::Value(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold_int(op: BinaryOp, left: i128, right: i128, scalar: Scalar) -> (i128, bool) {
        match integers(op, left, right, scalar) {
            Folded::Value(ExprKind::Int(value)) => (value, false),
            Folded::Wrapped(ExprKind::Int(value)) => (value, true),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn integers_wrap_in_their_type_and_are_marked() {
        assert_eq!(fold_int(BinaryOp::Add, 255, 1, Scalar::U8), (0, true));
        assert_eq!(fold_int(BinaryOp::Sub, 0, 1, Scalar::U32), (0xffff_ffff, true));
        assert_eq!(fold_int(BinaryOp::Add, 127, 1, Scalar::I8), (-128, true));
        let max = i128::from(u64::MAX);
        assert_eq!(fold_int(BinaryOp::Mul, max, max, Scalar::U64), (1, true));
        assert_eq!(
            fold_int(BinaryOp::Div, i64::MIN.into(), -1, Scalar::I64),
            (i64::MIN.into(), true)
        );
        assert_eq!(fold_int(BinaryOp::Mul, 4, 4, Scalar::U32), (16, false));
    }

    #[test]
    fn shift_counts_are_taken_modulo_the_width() {
        assert_eq!(fold_int(BinaryOp::Shl, 1, 33, Scalar::U32), (2, false));
        assert_eq!(fold_int(BinaryOp::Shl, 1, -1, Scalar::I32), (i32::MIN.into(), false));
        assert_eq!(fold_int(BinaryOp::Shr, -8, 1, Scalar::I32), (-4, false));
        assert_eq!(fold_int(BinaryOp::Shl, 3, 63, Scalar::U64), (1 << 63, false));
        assert_eq!(fold_int(BinaryOp::Shr, 1 << 40, 39, Scalar::U64), (2, false));
    }

    #[test]
    fn casts_saturate_from_float_and_wrap_between_integers() {
        let value = |kind: ExprKind, to| match cast(&kind, to) {
            Folded::Value(ExprKind::Int(value)) => value,
            other => panic!("{other:?}"),
        };
        assert_eq!(value(ExprKind::Float(1e30), Scalar::I32), i32::MAX.into());
        assert_eq!(value(ExprKind::Float(-3.9), Scalar::U8), 0);
        assert_eq!(value(ExprKind::Float(f64::NAN), Scalar::I64), 0);
        assert_eq!(value(ExprKind::Int(-1), Scalar::U16), 65535);
        assert_eq!(value(ExprKind::Int(200), Scalar::I8), -56);
        assert_eq!(value(ExprKind::Bool(true), Scalar::U32), 1);
    }

    #[test]
    fn halves_round_once() {
        let value = |folded| match folded {
            Folded::Value(ExprKind::Float(value)) => value,
            other => panic!("{other:?}"),
        };
        // 2048 + 1 is the midpoint of two f16; 256 + 1 of two bf16.
        assert_eq!(value(floats(BinaryOp::Add, 2048.0, 1.0, Scalar::F16)), 2048.0);
        assert_eq!(value(floats(BinaryOp::Add, 2050.0, 1.0, Scalar::F16)), 2052.0);
        assert_eq!(value(floats(BinaryOp::Add, 256.0, 1.0, Scalar::Bf16)), 256.0);
        assert_eq!(value(floats(BinaryOp::Mul, 256.0, 256.0, Scalar::F16)), f64::INFINITY);
        // Going through f32 this would round to the midpoint, and then to 1.
        let above = 1.0 + 11.0_f64.exp2().recip() + 40.0_f64.exp2().recip();
        assert_eq!(
            value(cast(&ExprKind::Float(above), Scalar::F16)),
            1.0 + 10.0_f64.exp2().recip()
        );
        assert_eq!(value(cast(&ExprKind::Int(65520), Scalar::F16)), f64::INFINITY);
        assert_eq!(value(cast(&ExprKind::Int(257), Scalar::Bf16)), 256.0);
    }

    #[test]
    fn f32_arithmetic_rounds_to_f32() {
        let sum = floats(BinaryOp::Add, 16_777_216.0, 1.0, Scalar::F32);
        assert!(matches!(sum, Folded::Value(ExprKind::Float(16_777_216.0))), "{sum:?}");
        let sum = floats(BinaryOp::Add, 16_777_216.0, 1.0, Scalar::F64);
        assert!(matches!(sum, Folded::Value(ExprKind::Float(16_777_217.0))), "{sum:?}");
    }
}
