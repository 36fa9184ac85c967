//! Rounding to the float types in a single step: to nearest, ties to even.
//!
//! Constants are kept as `f64`, which holds every value of the narrower types. Rounding twice can differ from
//! rounding once: 1 + 2^-11 + 2^-60 lies above the midpoint of two `f16`, but as an `f32` it rounds to
//! exactly that midpoint. The `half` crate's own conversions from `f64` have such a step, or drop the lower
//! bits. So values go through an `f32` that is rounded *to odd*: its last bit records whether anything was
//! lost, which keeps it off every midpoint (S. Boldo, G. Melquiond, "When double rounding is odd").

use std::cmp::Ordering;

use half::{bf16, f16};

use crate::types::Scalar;

/// The `f16` nearest to `value`.
pub fn to_f16(value: f64) -> f16 {
    f16::from_f32(to_odd(value))
}

/// The `bf16` nearest to `value`.
pub fn to_bf16(value: f64) -> bf16 {
    bf16::from_f32(to_odd(value))
}

/// The value of a float type nearest to `value`.
pub fn round(value: f64, scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => to_f16(value).to_f64(),
        Scalar::Bf16 => to_bf16(value).to_f64(),
        Scalar::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// The value of a float type nearest to an integer of up to 64 bits.
pub fn round_integer(value: i128, scalar: Scalar) -> f64 {
    match scalar {
        // Directly: going through f64 would round twice.
        Scalar::F32 => f64::from(value as f32),
        Scalar::F16 | Scalar::Bf16 => {
            let near = value as f64;
            round(beside(near, value.cmp(&(near as i128))), scalar)
        }
        _ => value as f64,
    }
}

/// The `f16` and the `bf16` nearest to a decimal without a suffix. `double` is the `f64` nearest to it.
pub(crate) fn decimal_to_halves(decimal: &str, double: f64) -> (f16, bf16) {
    // A midpoint has one bit more than the two values, so the lower 40 of its 52 bits are zero.
    let may_be_midpoint = double.is_finite() && double.to_bits().trailing_zeros() >= 40;
    let exact = match may_be_midpoint {
        true => beside(double, compare(decimal, double)),
        false => double,
    };
    (to_f16(exact), to_bf16(exact))
}

/// `near`, moved to the given side by one step of `f64`. It rounds to any narrower type as every value on
/// that side does to which `near` is the nearest `f64`.
fn beside(near: f64, side: Ordering) -> f64 {
    match side {
        Ordering::Less => near.next_down(),
        Ordering::Equal => near,
        Ordering::Greater => near.next_up(),
    }
}

/// `value` as an `f32` if that is exact; otherwise the neighbour whose last bit is set.
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    if back == value || value.is_nan() {
        return near;
    }
    let toward_zero = near.to_bits() - u32::from(back.abs() > value.abs());
    f32::from_bits(toward_zero | 1)
}

/// Compares a decimal with a number, exactly.
fn compare(decimal: &str, number: f64) -> Ordering {
    // More digits than the midpoint of two `bf16` can have: 2^-134 has 94, times a number of 9 bits.
    let exact = format!("{number:.120e}");
    let (decimal, exact) = (Scientific::read(decimal), Scientific::read(&exact));
    let by_exponent = decimal.exponent.cmp(&exact.exponent);
    match (decimal.digits.is_empty(), exact.digits.is_empty()) {
        (false, false) => by_exponent.then_with(|| decimal.digits.cmp(&exact.digits)),
        (is_zero, other) => other.cmp(&is_zero),
    }
}

/// 0.`digits` times ten to the power `exponent`; the first and the last digit are not 0.
struct Scientific {
    digits: Vec<u8>,
    exponent: i128,
}

impl Scientific {
    fn read(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..leading);
        digits.truncate(digits.len() - digits.iter().rev().take_while(|d| **d == b'0').count());
        // An exponent that does not fit made the number 0 or infinite, whatever its digits.
        let exponent: i128 = exponent.parse().unwrap_or(0);
        Scientific { digits, exponent: exponent + whole.len() as i128 - leading as i128 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_narrow_value_rounds_to_itself_and_its_neighbourhood_to_it() {
        for bits in 0..0x7c00_u16 {
            let (value, next) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            let middle = match next.is_finite() {
                true => (value.to_f64() + next.to_f64()) / 2.0,
                false => 65520.0,
            };
            let even = if bits % 2 == 0 { value } else { next };
            for (around, expected) in
                [(middle.next_down(), value), (middle, even), (middle.next_up(), next)]
            {
                assert_eq!(to_f16(around), expected, "{around:e}");
                assert_eq!(to_f16(-around), -expected, "{around:e}");
            }
            assert_eq!(to_f16(value.to_f64()), value);
        }
        for bits in 0..0x7f80_u16 {
            let (value, next) = (bf16::from_bits(bits), bf16::from_bits(bits + 1));
            let middle = match next.is_finite() {
                true => value.to_f64() / 2.0 + next.to_f64() / 2.0,
                false => 511.0 * 119.0_f64.exp2(),
            };
            let even = if bits % 2 == 0 { value } else { next };
            for (around, expected) in
                [(middle.next_down(), value), (middle, even), (middle.next_up(), next)]
            {
                assert_eq!(to_bf16(around), expected, "{around:e}");
                assert_eq!(to_bf16(-around), -expected, "{around:e}");
            }
        }
        assert!(to_f16(f64::NAN).is_nan() && to_bf16(f64::NAN).is_nan());
        assert_eq!(to_f16(f64::INFINITY), f16::INFINITY);
        assert_eq!(to_bf16(f64::NEG_INFINITY), bf16::NEG_INFINITY);
        assert_eq!(to_f16(1e300), f16::INFINITY);
        assert_eq!(to_f16(-1e-300).to_bits(), 0x8000);
    }

    #[test]
    fn integers_round_once() {
        // The midpoint of two bf16, and one more, which f64 cannot distinguish.
        let middle = (1_i128 << 63) + (1 << 55);
        assert_eq!(round_integer(middle, Scalar::Bf16), 63.0_f64.exp2());
        assert_eq!(
            round_integer(middle + 1, Scalar::Bf16),
            (63.0_f64).exp2() * (1.0 + 1.0 / 128.0)
        );
        assert_eq!(round_integer(-middle, Scalar::Bf16), -63.0_f64.exp2());
        assert_eq!(round_integer(65519, Scalar::F16), 65504.0);
        assert_eq!(round_integer(65520, Scalar::F16), f64::INFINITY);
        assert_eq!(round_integer((1 << 24) + 1, Scalar::F32), 24.0_f64.exp2());
    }

    #[test]
    fn decimals_round_once() {
        let read = |text: &str| decimal_to_halves(text, text.parse().unwrap());
        // 1 + 2^-11 is the midpoint of two f16, 1 + 2^-8 of two bf16.
        for (text, half) in [
            ("1.00048828125", 0x3c00),
            ("1.000488281250000000000000000000000000001", 0x3c01),
            ("1.000488281249999999999999999999999999999", 0x3c00),
            ("100048828125000000000000000000000000000.1e-38", 0x3c01),
            ("0.000000000000000000000000000001000488281250e30", 0x3c00),
            ("1.00146484375", 0x3c02),
            ("1.001464843749999999999999999999999999", 0x3c01),
            ("65519.999999999999999999999999", 0x7bff),
            ("65520", 0x7c00),
            ("2.98023223876953125e-8", 0),
            ("2.980232238769531250000000000000001E-8", 1),
            ("0.0", 0),
            ("1e-400", 0),
            ("1e999999999999999999999999999999999999999999", 0x7c00),
        ] {
            assert_eq!(read(text).0.to_bits(), half, "{text}");
        }
        for (text, brain) in [
            ("1.00390625", 0x3f80),
            ("1.0039062500000000000000000000000000000001", 0x3f81),
            ("1.003906249999999999999999999999999999999", 0x3f80),
            (
                "4.591774807899560578002877098524397178979162331140966880893561352650067419745028018951416015625e-41",
                0,
            ),
            (
                "4.5917748078995605780028770985243971789791623311409668808935613526500674197450280189514160156251e-41",
                1,
            ),
        ] {
            assert_eq!(read(text).1.to_bits(), brain, "{text}");
        }
    }
}
