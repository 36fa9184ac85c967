//! Values as bits, and the operands at the edges of each type.

use gridlet::float;
use gridlet::types::Scalar;
use half::{bf16, f16};

/// The bits that a scalar uses in memory.
pub(crate) fn mask(scalar: Scalar) -> u64 {
    match scalar.size() {
        8 => u64::MAX,
        size => (1 << (size * 8)) - 1,
    }
}

/// The integer, or `bool`, with these bits.
pub(crate) fn integer(bits: u64, scalar: Scalar) -> i128 {
    let unused = 64 - scalar.size() as u32 * 8;
    match scalar.is_signed() {
        true => i128::from((bits as i64) << unused >> unused),
        false => i128::from(bits & mask(scalar)),
    }
}

/// The bits of an integer, wrapped to the type.
pub(crate) fn integer_bits(value: i128, scalar: Scalar) -> u64 {
    value as u64 & mask(scalar)
}

/// The float with these bits, exactly.
pub(crate) fn float(bits: u64, scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => f64::from(f16::from_bits(bits as u16).to_f32()),
        Scalar::Bf16 => f64::from(bf16::from_bits(bits as u16).to_f32()),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The bits of a number rounded to the type.
pub(crate) fn float_bits(value: f64, scalar: Scalar) -> u64 {
    match scalar {
        Scalar::F16 => float::to_f16(value).to_bits().into(),
        Scalar::Bf16 => float::to_bf16(value).to_bits().into(),
        Scalar::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

/// The number of representable values between two floats; -0 and +0 count as one.
pub(crate) fn distance(left: u64, right: u64, scalar: Scalar) -> u64 {
    let sign = mask(scalar) ^ (mask(scalar) >> 1);
    let line = |bits: u64| match bits & sign {
        0 => i128::from(bits),
        _ => -i128::from(bits ^ sign),
    };
    (line(left) - line(right)).unsigned_abs() as u64
}

/// A value as text for messages.
pub(crate) fn show(bits: u64, scalar: Scalar) -> String {
    match scalar.is_float() {
        true => format!("{:e} ({bits:#x})", float(bits, scalar)),
        false => integer(bits, scalar).to_string(),
    }
}

/// The bits of a float's least positive normal number.
fn least_normal(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::F16 => 1 << 10,
        Scalar::Bf16 => 1 << 7,
        Scalar::F32 => 1 << 23,
        _ => 1 << 52,
    }
}

/// Reproducible pseudo-random numbers (G. Marsaglia, "Xorshift RNGs").
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Values at the boundaries of a type's operations, and some others.
pub(crate) fn edges(scalar: Scalar) -> Vec<u64> {
    let mut values = match scalar {
        Scalar::Bool => vec![0, 1],
        scalar if scalar.is_float() => float_edges(scalar),
        scalar => integer_edges(scalar),
    };
    values.sort_unstable();
    values.dedup();
    values
}

/// About a hundred of them, for binary operations.
pub(crate) fn some_edges(scalar: Scalar) -> Vec<u64> {
    let all = edges(scalar);
    let step = all.len().div_ceil(80);
    let mut values: Vec<u64> = all.into_iter().step_by(step).collect();
    if scalar != Scalar::Bool {
        values.extend(few_edges(scalar));
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// A few of them, for ternary operations.
pub(crate) fn few_edges(scalar: Scalar) -> Vec<u64> {
    if scalar.is_float() {
        let values = [0.0, 1.0, -1.5, 3.0, 1e-3, 1e30, f64::MAX, f64::INFINITY, f64::NAN];
        let mut bits: Vec<u64> = values.iter().map(|value| float_bits(*value, scalar)).collect();
        bits.extend(values.iter().map(|value| float_bits(-value, scalar)));
        let one = float_bits(1.0, scalar);
        bits.extend([1, one + 1, one - 1, mask(scalar) >> 1 ^ 1]);
        // The greatest subnormal numbers.
        let subnormal = least_normal(scalar) - 1;
        bits.extend([subnormal, (mask(scalar) ^ (mask(scalar) >> 1)) | subnormal]);
        bits.extend([7, 9].map(|n| Random(n).next() & mask(scalar)));
        return bits;
    }
    let (least, most) = bounds(scalar);
    [0, 1, 2, -1, 100, least, most].map(|value| integer_bits(value, scalar)).to_vec()
}

fn bounds(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.bits();
    match scalar.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

fn integer_edges(scalar: Scalar) -> Vec<u64> {
    let (least, most) = bounds(scalar);
    let mut values = vec![least, least + 1, most, most - 1, most / 2, most / 3, -(most / 3)];
    values.extend((-9..=9).chain([15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256]));
    let mut random = Random(scalar.bits().into());
    values.extend((0..12).map(|n| i128::from(random.next() as i64 >> (n * 5))));
    values.into_iter().map(|value| integer_bits(value, scalar)).collect()
}

fn float_edges(scalar: Scalar) -> Vec<u64> {
    let sign = mask(scalar) ^ (mask(scalar) >> 1);
    let infinity = float_bits(f64::INFINITY, scalar);
    // The least and greatest subnormal and normal numbers.
    let normal = least_normal(scalar);
    let mut bits =
        vec![0, 1, 2, normal / 2, normal - 1, normal, normal + 1, infinity - 1, infinity];
    bits.push(infinity | normal >> 1);
    let mut values =
        vec![0.1, 0.3, 1.0 / 3.0, 1.5, 2.5, 3.5, 0.75, 3.0, 5.0, 7.0, 10.0, 100.0, 1e4];
    values.extend([std::f64::consts::PI, std::f64::consts::FRAC_PI_2, std::f64::consts::E]);
    // Where exponential and hyperbolic functions overflow or underflow.
    values.extend([
        11.0, 88.7, 89.5, 103.9, 104.5, 127.9, 128.0, 149.5, 709.7, 710.4, 745.2, 1e10, 1e30, 1e300,
    ]);
    // The limits of integer types, and the sizes from which floats have no fraction.
    for power in [-1, 0, 1, 7, 8, 10, 11, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64] {
        let end = f64::from(power).exp2();
        values.extend([end, end - 0.5, end - 1.0, end + 0.5, end + 1.0, end * 1.75]);
    }
    bits.extend(values.into_iter().map(|value| float_bits(value, scalar)));
    for value in [1.0, 0.5, 128.0, 2147483648.0, 9223372036854775808.0, 18446744073709551616.0] {
        let middle = float_bits(value, scalar);
        if middle < infinity {
            bits.extend([middle - 1, middle + 1]);
        }
    }
    let mut random = Random(scalar.bits().into());
    bits.extend((0..12).map(|_| random.next() & mask(scalar) & !sign));
    bits.iter().flat_map(|bits| [*bits, bits | sign]).collect()
}
