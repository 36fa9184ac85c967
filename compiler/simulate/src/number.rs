//! Arithmetic on scalars. A scalar is a `u64` that holds its bits, zero-extended, whatever its type.
//!
//! The rules are those of `gridlet_lang::ir`: integers wrap, casts of floats saturate, `f16` and `bf16` are computed in `f32`
//! and rounded once.

use gridlet_lang::builtins::{AtomicOp, BitOp, MathOp, ReduceOp};
use gridlet_lang::float;
use gridlet_lang::ir::{BinaryOp, UnaryOp};
use gridlet_lang::types::Scalar;
use half::{bf16, f16};

/// The low bits of `value` that belong to `scalar`.
pub(crate) fn truncate(scalar: Scalar, value: u64) -> u64 {
    match scalar.size() {
        1 => value & 0xff,
        2 => value & 0xffff,
        4 => value & 0xffff_ffff,
        _ => value,
    }
}

/// The value of an integer's bits, extended by its type's sign.
pub(crate) fn extend(scalar: Scalar, bits: u64) -> u64 {
    match scalar {
        Scalar::I8 => bits as i8 as u64,
        Scalar::I16 => bits as i16 as u64,
        Scalar::I32 => bits as i32 as u64,
        _ => bits,
    }
}

/// The value of a float's bits. Exact for every type.
pub(crate) fn to_f64(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::F16 => f16::from_bits(bits as u16).to_f64(),
        Scalar::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The bits of a float, rounded to its type.
pub(crate) fn from_f64(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::F16 => float::to_f16(value).to_bits().into(),
        Scalar::Bf16 => float::to_bf16(value).to_bits().into(),
        Scalar::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

pub(crate) fn unary(op: UnaryOp, scalar: Scalar, bits: u64) -> u64 {
    match op {
        UnaryOp::Neg if scalar.is_float() => bits ^ (1 << (scalar.bits() - 1)),
        UnaryOp::Neg => truncate(scalar, bits.wrapping_neg()),
        UnaryOp::Not if scalar == Scalar::Bool => bits ^ 1,
        UnaryOp::Not => truncate(scalar, !bits),
    }
}

/// `None` if the result is undefined: a division by zero, an overflowing division, a shift count out of range.
pub(crate) fn binary(op: BinaryOp, scalar: Scalar, left: u64, right: u64) -> Option<u64> {
    if scalar.is_float() {
        return Some(binary_float(op, scalar, left, right));
    }
    let signed = scalar.is_signed();
    let (wide_left, wide_right) = (extend(scalar, left), extend(scalar, right));
    let value = match op {
        BinaryOp::Add => left.wrapping_add(right),
        BinaryOp::Sub => left.wrapping_sub(right),
        BinaryOp::Mul => left.wrapping_mul(right),
        BinaryOp::Div | BinaryOp::Rem if signed => {
            let (left, right) = (wide_left as i64, wide_right as i64);
            let overflows = right == -1 && left == i64::MIN >> (64 - scalar.bits());
            let divide = if op == BinaryOp::Div { i64::checked_div } else { i64::checked_rem };
            divide(left, right).filter(|_| !overflows)? as u64
        }
        BinaryOp::Div => left.checked_div(right)?,
        BinaryOp::Rem => left.checked_rem(right)?,
        BinaryOp::And => left & right,
        BinaryOp::Or => left | right,
        BinaryOp::Xor => left ^ right,
        // The count has a type of its own; a negative one is a large number here.
        BinaryOp::Shl | BinaryOp::Shr if right >= u64::from(scalar.bits()) => return None,
        BinaryOp::Shl => left << right,
        BinaryOp::Shr if signed => ((wide_left as i64) >> right) as u64,
        BinaryOp::Shr => left >> right,
        BinaryOp::Eq => u64::from(left == right),
        BinaryOp::Ne => u64::from(left != right),
        _ => {
            let order = match signed {
                true => (wide_left as i64).cmp(&(wide_right as i64)),
                false => left.cmp(&right),
            };
            u64::from(match op {
                BinaryOp::Lt => order.is_lt(),
                BinaryOp::Le => order.is_le(),
                BinaryOp::Gt => order.is_gt(),
                _ => order.is_ge(),
            })
        }
    };
    Some(truncate(scalar, value))
}

fn binary_float(op: BinaryOp, scalar: Scalar, left: u64, right: u64) -> u64 {
    let (l, r) = (to_f64(scalar, left), to_f64(scalar, right));
    let wide = scalar == Scalar::F64;
    let narrow = |f: fn(f32, f32) -> f32| from_f64(scalar, f64::from(f(l as f32, r as f32)));
    match op {
        BinaryOp::Add if wide => (l + r).to_bits(),
        BinaryOp::Sub if wide => (l - r).to_bits(),
        BinaryOp::Mul if wide => (l * r).to_bits(),
        BinaryOp::Div if wide => (l / r).to_bits(),
        BinaryOp::Rem if wide => (l % r).to_bits(),
        BinaryOp::Add => narrow(|l, r| l + r),
        BinaryOp::Sub => narrow(|l, r| l - r),
        BinaryOp::Mul => narrow(|l, r| l * r),
        BinaryOp::Div => narrow(|l, r| l / r),
        BinaryOp::Rem => narrow(|l, r| l % r),
        BinaryOp::Eq => u64::from(l == r),
        BinaryOp::Ne => u64::from(l != r),
        BinaryOp::Lt => u64::from(l < r),
        BinaryOp::Le => u64::from(l <= r),
        BinaryOp::Gt => u64::from(l > r),
        _ => u64::from(l >= r),
    }
}

/// `value as to`.
pub(crate) fn cast(from: Scalar, to: Scalar, bits: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        _ if from == to => bits,
        (false, false) if to == Scalar::Bool => u64::from(bits != 0),
        (false, false) => truncate(to, extend(from, bits)),
        (true, true) => from_f64(to, to_f64(from, bits)),
        (false, true) => int_to_float(from, to, bits),
        (true, false) => {
            let value = to_f64(from, bits);
            truncate(
                to,
                match to {
                    Scalar::I8 => value as i8 as u64,
                    Scalar::I16 => value as i16 as u64,
                    Scalar::I32 => value as i32 as u64,
                    Scalar::I64 => value as i64 as u64,
                    Scalar::U8 => u64::from(value as u8),
                    Scalar::U16 => u64::from(value as u16),
                    Scalar::U32 => u64::from(value as u32),
                    _ => value as u64,
                },
            )
        }
    }
}

fn int_to_float(from: Scalar, to: Scalar, bits: u64) -> u64 {
    let wide = extend(from, bits);
    let signed = from.is_signed();
    match to {
        Scalar::F32 if signed => (wide as i64 as f32).to_bits().into(),
        Scalar::F32 => (wide as f32).to_bits().into(),
        Scalar::F64 if signed => (wide as i64 as f64).to_bits(),
        Scalar::F64 => (wide as f64).to_bits(),
        _ => {
            let value = if signed { i128::from(wide as i64) } else { i128::from(wide) };
            from_f64(to, float::round_integer(value, to))
        }
    }
}

/// A mathematical function; all arguments and the result have type `scalar`. `None` for those that `ir::build` composes.
pub(crate) fn math(op: MathOp, scalar: Scalar, arguments: &[u64]) -> Option<u64> {
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
    let (left, right) = (argument(0), argument(1));
    if !scalar.is_float() {
        let is_less = binary(BinaryOp::Lt, scalar, left, right)? != 0;
        return Some(match op {
            MathOp::Abs if (extend(scalar, left) as i64) < 0 && scalar.is_signed() => {
                unary(UnaryOp::Neg, scalar, left)
            }
            MathOp::Abs => left,
            MathOp::Min => {
                if is_less {
                    left
                } else {
                    right
                }
            }
            MathOp::Max => {
                if is_less {
                    right
                } else {
                    left
                }
            }
            _ => return None,
        });
    }
    let (x, y, z) = (to_f64(scalar, left), to_f64(scalar, right), to_f64(scalar, argument(2)));
    let is_single = scalar != Scalar::F64;
    let value = match op {
        MathOp::Abs => return Some(left & !(1 << (scalar.bits() - 1))),
        MathOp::Min | MathOp::Max => {
            let smaller = op == MathOp::Min;
            // The zeros are ordered, and NaN gives way to a number.
            let picks_left = match x.partial_cmp(&y) {
                _ if x.is_nan() => false,
                None => true,
                Some(order) if order.is_eq() => x.is_sign_negative() == smaller,
                Some(order) => order.is_lt() == smaller,
            };
            return Some(if picks_left { left } else { right });
        }
        MathOp::Fma if scalar == Scalar::F32 => f64::from((x as f32).mul_add(y as f32, z as f32)),
        MathOp::Fma => x.mul_add(y, z),
        MathOp::Sqrt if is_single => f64::from((x as f32).sqrt()),
        MathOp::Sqrt => x.sqrt(),
        MathOp::Rsqrt => x.sqrt().recip(),
        MathOp::Sin => x.sin(),
        MathOp::Cos => x.cos(),
        MathOp::Tan => x.tan(),
        MathOp::Exp => x.exp(),
        MathOp::Exp2 => x.exp2(),
        MathOp::Log => x.ln(),
        MathOp::Log2 => x.log2(),
        MathOp::Log10 => x.log10(),
        MathOp::Pow => x.powf(y),
        MathOp::Floor => x.floor(),
        MathOp::Ceil => x.ceil(),
        MathOp::Round => x.round(),
        MathOp::Trunc => x.trunc(),
        MathOp::Asin => x.asin(),
        MathOp::Acos => x.acos(),
        MathOp::Atan => x.atan(),
        MathOp::Atan2 => x.atan2(y),
        MathOp::Sinh => x.sinh(),
        MathOp::Cosh => x.cosh(),
        MathOp::Tanh => x.tanh(),
        MathOp::Cbrt => x.cbrt(),
        MathOp::Hypot => x.hypot(y),
        MathOp::Erf => erf(x),
        MathOp::Clamp | MathOp::Saturate => return None,
    };
    Some(from_f64(scalar, value))
}

/// The error function, by its series of positive terms.
fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() >= 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > sum.abs() * 1e-18 {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

pub(crate) fn bit(op: BitOp, scalar: Scalar, bits: u64) -> u64 {
    let spare = 64 - scalar.bits();
    match op {
        BitOp::Popc => bits.count_ones().into(),
        BitOp::Clz => (bits.leading_zeros() - spare).into(),
        BitOp::Ctz => bits.trailing_zeros().min(scalar.bits()).into(),
        BitOp::Brev => bits.reverse_bits() >> spare,
    }
}

/// The high half of the product.
pub(crate) fn mul_hi(scalar: Scalar, left: u64, right: u64) -> u64 {
    let wide = |bits| match scalar.is_signed() {
        true => i128::from(extend(scalar, bits) as i64),
        false => i128::from(bits),
    };
    truncate(scalar, (wide(left).wrapping_mul(wide(right)) >> scalar.bits()) as u64)
}

/// The value that an atomic operation writes.
pub(crate) fn atomic(op: AtomicOp, scalar: Scalar, old: u64, value: u64) -> Option<u64> {
    let binary_op = match op {
        AtomicOp::Exch => return Some(value),
        AtomicOp::Min => return math(MathOp::Min, scalar, &[old, value]),
        AtomicOp::Max => return math(MathOp::Max, scalar, &[old, value]),
        AtomicOp::Add => BinaryOp::Add,
        AtomicOp::Sub => BinaryOp::Sub,
        AtomicOp::And => BinaryOp::And,
        AtomicOp::Or => BinaryOp::Or,
        AtomicOp::Xor => BinaryOp::Xor,
    };
    binary(binary_op, scalar, old, value)
}

/// Two values combined by a reduction.
pub(crate) fn reduce(op: ReduceOp, scalar: Scalar, left: u64, right: u64) -> Option<u64> {
    let op = match op {
        ReduceOp::Add => AtomicOp::Add,
        ReduceOp::Min => AtomicOp::Min,
        ReduceOp::Max => AtomicOp::Max,
        ReduceOp::And => AtomicOp::And,
        ReduceOp::Or => AtomicOp::Or,
        ReduceOp::Xor => AtomicOp::Xor,
    };
    atomic(op, scalar, left, right)
}
