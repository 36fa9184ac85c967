//! Warp operations whose result depends on the values of all lanes: reductions and matches. The lanes meet once, and the
//! last one to arrive computes the results.

use super::warp::{WARP_THREADS, bits};
use crate::abi::{
    COMBINE_ADD, COMBINE_AND, COMBINE_BITS, COMBINE_F32, COMBINE_F64, COMBINE_I32, COMBINE_I64,
    COMBINE_MATCH, COMBINE_MAX, COMBINE_MIN, COMBINE_OR, COMBINE_U32, COMBINE_U64, COMBINE_XOR,
};

type Values = [u64; WARP_THREADS as usize];

/// The operation of a mode.
const OPERATION: u32 = 0xff;

/// The result for a lane alone, of which there is only lane 0.
pub(super) fn of_one(mode: u32, value: u64) -> u64 {
    if mode & OPERATION == COMBINE_MATCH { 1 } else { value }
}

/// Replaces the values of these lanes by their results. An unknown mode changes nothing.
pub(super) fn combine(mode: u32, values: &mut Values, lanes: u32) {
    let operation = mode & OPERATION;
    if operation == COMBINE_MATCH {
        let given = *values;
        for lane in bits(lanes) {
            let same = |other: &u32| given[*other as usize] == given[lane as usize];
            let found = bits(lanes).filter(same).fold(0, |set, other| set | 1_u64 << other);
            values[lane as usize] = found;
        }
        return;
    }
    let smallest = operation == COMBINE_MIN;
    let result = match (operation, mode & !OPERATION) {
        (COMBINE_ADD, COMBINE_BITS) => fold(values, lanes, u64::wrapping_add),
        (COMBINE_ADD, COMBINE_F32) => {
            fold(values, lanes, |a, b| single(as_single(a) + as_single(b)))
        }
        (COMBINE_ADD, COMBINE_F64) => {
            fold(values, lanes, |a, b| (f64::from_bits(a) + f64::from_bits(b)).to_bits())
        }
        (COMBINE_AND, COMBINE_BITS) => fold(values, lanes, |a, b| a & b),
        (COMBINE_OR, COMBINE_BITS) => fold(values, lanes, |a, b| a | b),
        (COMBINE_XOR, COMBINE_BITS) => fold(values, lanes, |a, b| a ^ b),
        (COMBINE_MIN | COMBINE_MAX, COMBINE_I32) => {
            fold(values, lanes, |a, b| if (a as i32 <= b as i32) == smallest { a } else { b })
        }
        (COMBINE_MIN | COMBINE_MAX, COMBINE_U32) => {
            fold(values, lanes, |a, b| if (a as u32 <= b as u32) == smallest { a } else { b })
        }
        (COMBINE_MIN | COMBINE_MAX, COMBINE_I64) => fold(values, lanes, |a, b| {
            if (a.cast_signed() <= b.cast_signed()) == smallest { a } else { b }
        }),
        (COMBINE_MIN | COMBINE_MAX, COMBINE_U64) => {
            fold(values, lanes, |a, b| if (a <= b) == smallest { a } else { b })
        }
        // Every `f32` is an `f64`.
        (COMBINE_MIN | COMBINE_MAX, COMBINE_F32) => fold(values, lanes, |a, b| {
            let (x, y) = (f64::from(as_single(a)), f64::from(as_single(b)));
            if takes_first(x, y, smallest) { a } else { b }
        }),
        (COMBINE_MIN | COMBINE_MAX, COMBINE_F64) => fold(values, lanes, |a, b| {
            if takes_first(f64::from_bits(a), f64::from_bits(b), smallest) { a } else { b }
        }),
        _ => return,
    };
    for lane in bits(lanes) {
        values[lane as usize] = result;
    }
}

/// Combines the halves of a whole warp, and their halves, and so on; otherwise lane by lane. GPUs without an instruction do
/// the same, so sums of floats are equal.
fn fold(values: &Values, lanes: u32, with: impl Fn(u64, u64) -> u64) -> u64 {
    if lanes != u32::MAX {
        return bits(lanes).map(|lane| values[lane as usize]).reduce(with).unwrap_or(0);
    }
    let mut left = *values;
    for half in [16, 8, 4, 2, 1] {
        for lane in 0..half {
            left[lane] = with(left[lane], left[lane + half]);
        }
    }
    left[0]
}

fn as_single(bits: u64) -> f32 {
    // The low half is the value.
    f32::from_bits(bits as u32)
}

fn single(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// Whether `x` is the minimum, or the maximum.
fn takes_first(x: f64, y: f64, smallest: bool) -> bool {
    let below = x < y || x == y && x.is_sign_negative();
    y.is_nan() || !x.is_nan() && below == smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(mode: u32, given: &[u64], lanes: u32) -> u64 {
        let mut values = [0; WARP_THREADS as usize];
        values[..given.len()].copy_from_slice(given);
        let before = values;
        combine(mode, &mut values, lanes);
        for lane in bits(!lanes) {
            assert_eq!(values[lane as usize], before[lane as usize], "a lane that takes no part");
        }
        let first = values[lanes.trailing_zeros() as usize];
        assert!(bits(lanes).all(|lane| values[lane as usize] == first));
        first
    }

    #[test]
    fn integers_are_combined_by_their_type() {
        let minus = u64::from((-3_i32).cast_unsigned());
        let (add, min, max) = (COMBINE_ADD, COMBINE_MIN, COMBINE_MAX);
        assert_eq!(result(add | COMBINE_BITS, &[1, 9, 5, 7], 0b1101), 13);
        assert_eq!(result(add | COMBINE_BITS, &[minus, 1], 0b11) as u32, (-2_i32).cast_unsigned());
        assert_eq!(result(min | COMBINE_I32, &[4, minus, 2], 0b111), minus);
        assert_eq!(result(min | COMBINE_U32, &[4, minus, 2], 0b111), 2);
        assert_eq!(result(max | COMBINE_I32, &[4, minus, 2], 0b111), 4);
        assert_eq!(result(max | COMBINE_U32, &[4, minus, 2], 0b111), minus);
        assert_eq!(result(min | COMBINE_I64, &[4, u64::MAX], 0b11), u64::MAX);
        assert_eq!(result(max | COMBINE_I64, &[4, u64::MAX], 0b11), 4);
        assert_eq!(result(min | COMBINE_U64, &[4, u64::MAX], 0b11), 4);
        assert_eq!(result(max | COMBINE_U64, &[4, u64::MAX], 0b11), u64::MAX);
        assert_eq!(result(COMBINE_AND | COMBINE_BITS, &[0b110, 0b011], 0b11), 0b010);
        assert_eq!(result(COMBINE_OR | COMBINE_BITS, &[0b110, 0b011], 0b11), 0b111);
        assert_eq!(result(COMBINE_XOR | COMBINE_BITS, &[0b110, 0b011], 0b11), 0b101);
        let all: Vec<u64> = (1..=32).collect();
        assert_eq!(result(add | COMBINE_BITS, &all, u32::MAX), 32 * 33 / 2);
    }

    #[test]
    fn floats_are_added_in_the_order_of_the_shuffles() {
        // One is lost beside 2^24 unless it meets its like first: lanes 0 and 16 do, and lanes 0 and 1 come last.
        let mut values = [0.0_f32; 32];
        (values[0], values[16], values[1]) = (16_777_216.0, -16_777_216.0, 1.0);
        let bits_of = values.map(single);
        assert_eq!(result(COMBINE_ADD | COMBINE_F32, &bits_of, u32::MAX), single(1.0));
        // Lane by lane, it comes second.
        assert_eq!(result(COMBINE_ADD | COMBINE_F32, &bits_of, 0x7fff_ffff), single(0.0));
        let doubles = [0.5_f64, 0.25].map(f64::to_bits);
        assert_eq!(result(COMBINE_ADD | COMBINE_F64, &doubles, 0b11), 0.75_f64.to_bits());
    }

    #[test]
    fn minima_of_floats_prefer_numbers_and_minus_zero() {
        let nan = f64::NAN.to_bits();
        let [zero, minus, one] = [0.0_f64, -0.0, 1.0].map(f64::to_bits);
        for (values, min, max) in [
            ([zero, minus], minus, zero),
            ([minus, zero], minus, zero),
            ([nan, one], one, one),
            ([one, nan], one, one),
            ([one, minus], minus, one),
            ([nan, nan], nan, nan),
        ] {
            assert_eq!(result(COMBINE_MIN | COMBINE_F64, &values, 0b11), min);
            assert_eq!(result(COMBINE_MAX | COMBINE_F64, &values, 0b11), max);
        }
        let values = [f32::NAN, 2.0, -0.0, 0.0].map(single);
        assert_eq!(result(COMBINE_MIN | COMBINE_F32, &values, 0b1111), single(-0.0));
        assert_eq!(result(COMBINE_MAX | COMBINE_F32, &values, 0b1111), single(2.0));
    }

    #[test]
    fn matches_are_of_the_lanes_that_take_part() {
        let mut values = [7; WARP_THREADS as usize];
        (values[1], values[4]) = (8, 8);
        combine(COMBINE_MATCH, &mut values, 0b1_1110);
        assert_eq!(values[..6], [7, 0b1_0010, 0b1100, 0b1100, 0b1_0010, 7]);
        assert_eq!((of_one(COMBINE_MATCH, 7), of_one(COMBINE_ADD | COMBINE_BITS, 7)), (1, 7));
    }
}
