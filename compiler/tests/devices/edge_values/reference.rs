//! The expected result of each operation, computed in Rust.

use gridlet::builtins::{BitOp, MathOp};
use gridlet::check::tree::BinaryOp;
use gridlet::float as rounding;
use gridlet::types::Scalar;

use super::values::{float, float_bits, integer, integer_bits, mask};

// SAFETY: the C library's function takes and returns a double.
unsafe extern "C" {
    safe fn erf(value: f64) -> f64;
}

/// The expected result of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expected {
    /// Exactly these bits.
    Bits(u64),
    /// Any NaN.
    Nan,
    /// These bits or a nearby number: the maximum distance on the CPU device and on a GPU.
    Near(u64, u64, u64),
}

/// A correctly rounded float.
fn exact(value: f64, scalar: Scalar) -> Expected {
    match value.is_nan() {
        true => Expected::Nan,
        false => Expected::Bits(float_bits(value, scalar)),
    }
}

/// `left op right`, which must not divide by zero.
pub(crate) fn binary(
    op: BinaryOp,
    left: u64,
    right: u64,
    scalar: Scalar,
    count: Scalar,
) -> Expected {
    if scalar.is_float() {
        return float_binary(op, float(left, scalar), float(right, scalar), scalar);
    }
    let (a, b) = (integer(left, scalar), integer(right, count));
    let shift = b.rem_euclid(i128::from(scalar.bits())) as u32;
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a << shift,
        BinaryOp::Shr => a >> shift,
        _ => return Expected::Bits(compare(op, a, b).into()),
    };
    Expected::Bits(integer_bits(value, scalar))
}

fn compare<T: PartialOrd>(op: BinaryOp, a: T, b: T) -> bool {
    match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        _ => a >= b,
    }
}

/// The result of each narrower type is that of `f64`, rounded: `f64` has more than twice the
/// digits.
fn float_binary(op: BinaryOp, a: f64, b: f64, scalar: Scalar) -> Expected {
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        _ => return Expected::Bits(compare(op, a, b).into()),
    };
    exact(value, scalar)
}

/// `-value`, or `!value` for integers and `bool`.
pub(crate) fn unary(is_not: bool, value: u64, scalar: Scalar) -> Expected {
    Expected::Bits(match scalar {
        Scalar::Bool => value ^ 1,
        _ if is_not => !value & mask(scalar),
        _ if scalar.is_float() => return exact(-float(value, scalar), scalar),
        _ => integer_bits(-integer(value, scalar), scalar),
    })
}

/// `value as to`, using Rust's own conversions for the types that it has.
pub(crate) fn cast(value: u64, from: Scalar, to: Scalar) -> Expected {
    match (from.is_float(), to.is_float()) {
        (false, false) => Expected::Bits(integer_bits(integer(value, from), to)),
        (true, true) => exact(float(value, from), to),
        (false, true) => {
            let value = integer(value, from);
            match to {
                Scalar::F64 => exact(value as f64, to),
                Scalar::F32 => Expected::Bits((value as f32).to_bits().into()),
                _ => exact(rounding::round_integer(value, to), to),
            }
        }
        (true, false) => {
            let value = float(value, from);
            Expected::Bits(match to {
                Scalar::I8 => (value as i8) as u8 as u64,
                Scalar::I16 => (value as i16) as u16 as u64,
                Scalar::I32 => (value as i32) as u32 as u64,
                Scalar::I64 => (value as i64) as u64,
                Scalar::U8 => (value as u8).into(),
                Scalar::U16 => (value as u16).into(),
                Scalar::U32 => (value as u32).into(),
                _ => value as u64,
            })
        }
    }
}

/// A bit operation. The counts are `u32`s.
pub(crate) fn bit(op: BitOp, value: u64, scalar: Scalar) -> Expected {
    let unused = 64 - scalar.bits();
    Expected::Bits(match op {
        BitOp::Popc => value.count_ones().into(),
        BitOp::Clz => u64::from(value.leading_zeros() - unused),
        BitOp::Ctz => value.trailing_zeros().min(scalar.bits()).into(),
        BitOp::Brev => value.reverse_bits() >> unused,
    })
}

pub(crate) fn mul_hi(left: u64, right: u64, scalar: Scalar) -> Expected {
    let bits = scalar.bits();
    Expected::Bits(match scalar.is_signed() {
        true => integer_bits((integer(left, scalar) * integer(right, scalar)) >> bits, scalar),
        false => ((u128::from(left) * u128::from(right)) >> bits) as u64,
    })
}

/// A mathematical function.
pub(crate) fn math(op: MathOp, values: &[u64], scalar: Scalar) -> Expected {
    if scalar.is_integer() {
        return integer_math(op, values, scalar);
    }
    let x: Vec<f64> = values.iter().map(|value| float(*value, scalar)).collect();
    let value = match op {
        MathOp::Abs => x[0].abs(),
        MathOp::Min => least(x[0], x[1]),
        MathOp::Max => most(x[0], x[1]),
        MathOp::Clamp => least(most(x[0], x[1]), x[2]),
        MathOp::Saturate => least(most(x[0], 0.0), 1.0),
        MathOp::Sqrt => x[0].sqrt(),
        MathOp::Floor => x[0].floor(),
        MathOp::Ceil => x[0].ceil(),
        MathOp::Round => x[0].round(),
        MathOp::Trunc => x[0].trunc(),
        MathOp::Fma => return fma(&x, scalar),
        _ => return near(op, &x, scalar),
    };
    exact(value, scalar)
}

/// The other value if one is NaN; -0 is below +0.
fn least(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn most(a: f64, b: f64) -> f64 {
    -least(-a, -b)
}

fn integer_math(op: MathOp, values: &[u64], scalar: Scalar) -> Expected {
    let x: Vec<i128> = values.iter().map(|value| integer(*value, scalar)).collect();
    let value = match op {
        MathOp::Abs => x[0].abs(),
        MathOp::Min => x[0].min(x[1]),
        MathOp::Max => x[0].max(x[1]),
        _ => x[0].max(x[1]).min(x[2]),
    };
    Expected::Bits(integer_bits(value, scalar))
}

fn fma(x: &[f64], scalar: Scalar) -> Expected {
    let finite = x.iter().all(|x| x.is_finite());
    match scalar {
        Scalar::F64 => exact(x[0].mul_add(x[1], x[2]), scalar),
        Scalar::F32 => exact((x[0] as f32).mul_add(x[1] as f32, x[2] as f32).into(), scalar),
        // As integers in units of 2^-48, the least product: exact.
        Scalar::F16 if finite => {
            let whole = |x: f64| (x * 24.0_f64.exp2()) as i128;
            let sum = whole(x[0]) * whole(x[1]) + (whole(x[2]) << 24);
            if sum == 0 {
                return exact(x[0] * x[1] + x[2], scalar);
            }
            // Beyond 53 digits, the last bit records whether any lost bit is set.
            let size = sum.unsigned_abs();
            let excess = (128 - size.leading_zeros()).saturating_sub(53);
            let kept = size >> excess | u128::from(size & ((1 << excess) - 1) != 0);
            let magnitude = kept as f64 * (f64::from(excess) - 48.0).exp2();
            exact(if sum < 0 { -magnitude } else { magnitude }, scalar)
        }
        // The product is exact; a second f64 holds the rounding error of the sum.
        _ => {
            let (product, sum) = (x[0] * x[1], x[0] * x[1] + x[2]);
            let (large, small) =
                if product.abs() > x[2].abs() { (product, x[2]) } else { (x[2], product) };
            let lost = small - (sum - large);
            let sum = match lost.partial_cmp(&0.0) {
                Some(std::cmp::Ordering::Less) => sum.next_down(),
                Some(std::cmp::Ordering::Greater) => sum.next_up(),
                _ => sum,
            };
            exact(sum, scalar)
        }
    }
}

/// Functions that are not correctly rounded. The bounds on a GPU are the maximum errors in units of
/// the last place in the CUDA C++ Programming Guide 13.0, 17.1 "Standard Functions", tables 17
/// (f32) and 18 (f64), which the later CUDA Programming Guide repeats in 5.5.7; one more for f64,
/// where this reference is the C library's value. The bound on a CPU is the C library's ("Known
/// Maximum Errors in Math Functions").
fn near(op: MathOp, x: &[f64], scalar: Scalar) -> Expected {
    let (value, f32_bound, f64_bound) = match op {
        MathOp::Rsqrt => (1.0 / x[0].sqrt(), 2, 1),
        MathOp::Sin => (x[0].sin(), 2, 2),
        MathOp::Cos => (x[0].cos(), 2, 2),
        MathOp::Tan => (x[0].tan(), 4, 2),
        MathOp::Exp => (x[0].exp(), 2, 1),
        MathOp::Exp2 => (x[0].exp2(), 2, 1),
        MathOp::Log => (x[0].ln(), 1, 1),
        MathOp::Log2 => (x[0].log2(), 1, 1),
        MathOp::Log10 => (x[0].log10(), 2, 1),
        MathOp::Pow => (x[0].powf(x[1]), 4, 2),
        MathOp::Asin => (x[0].asin(), 2, 2),
        MathOp::Acos => (x[0].acos(), 2, 2),
        MathOp::Atan => (x[0].atan(), 2, 2),
        MathOp::Atan2 => (x[0].atan2(x[1]), 3, 2),
        MathOp::Sinh => (x[0].sinh(), 3, 2),
        MathOp::Cosh => (x[0].cosh(), 2, 1),
        MathOp::Tanh => (x[0].tanh(), 2, 1),
        MathOp::Cbrt => (x[0].cbrt(), 1, 1),
        MathOp::Hypot => (x[0].hypot(x[1]), 3, 2),
        _ => (erf(x[0]), 2, 2),
    };
    if value.is_nan() {
        return Expected::Nan;
    }
    let bits = float_bits(value, scalar);
    match scalar {
        Scalar::F32 => Expected::Near(bits, 2, f32_bound),
        _ => Expected::Near(bits, 2, f64_bound + 1),
    }
}
