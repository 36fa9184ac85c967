//! Kernels with types narrower than 32 bits.

use gridlet::float::to_f16;

use super::memory::length;
use super::{Array, Case, Plain, Size, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("half_sort", "sorts columns of sixteen in half precision", half_sort, sorted_columns),
    plain!("half_ratio", "quotients in half precision", half_ratio, half_quotients),
    plain!("half_clamp", "limits in half precision", half_clamp, limited),
    plain!("half_layer", "layer of a network in half precision", half_layer, neurons),
    plain!("short_ratio", "quotients of 16-bit integers", short_ratio, quotients),
    plain!("int8_gemv", "matrix of bytes times vector", int8_gemv, products),
    plain!("bf16_dot", "matrix of bf16 times vector", bf16_dot, brain_products),
    plain!("ising", "half a sweep of the Ising model", ising, turned),
    plain!("resize", "an image in another size", resize, resized),
];

pub(super) fn bytes(n: usize, seed: u32, limit: u32) -> Vec<u8> {
    words(n, seed).iter().map(|word| (word % limit) as u8).collect()
}

/// Numbers in half precision from a quarter to a half, and their negatives.
fn halves(n: usize, seed: u32) -> Vec<u16> {
    words(n, seed).iter().map(|word| 0x3400 | (word & 0x83ff) as u16).collect()
}

/// The value of a finite number in half precision.
fn value(half: &u16) -> f64 {
    let exponent = i32::from(half >> 10 & 31);
    let hidden = if exponent == 0 { 0 } else { 1_024 };
    let size = f64::from(hidden + (half & 1_023)) * 2f64.powi(exponent.max(1) - 25);
    if half >> 15 == 0 { size } else { -size }
}

/// The number in half precision nearest to `x`.
fn rounded(x: f64) -> u16 {
    to_f16(x).to_bits()
}

fn half_sort(size: Size) -> Case {
    let n = length(size, 300, 1 << 22);
    let all = n as usize * 32;
    Case::threads(n, 256).u32(n).input(halves(all, 1)).output(vec![0u16; all])
}

fn sorted_columns(case: &Case) -> Vec<Array> {
    let (columns, from) = (2 * case.number(0), case.u16s(1));
    let mut to = from.to_vec();
    for column in 0..columns {
        let mut numbers: Vec<u16> = from[column..].iter().step_by(columns).copied().collect();
        numbers.sort_by(|a, b| value(a).total_cmp(&value(b)));
        to[column..].iter_mut().step_by(columns).zip(numbers).for_each(|(to, x)| *to = x);
    }
    vec![to.into()]
}

fn half_ratio(size: Size) -> Case {
    let n = length(size, 300, 1 << 21);
    let all = n as usize * 8;
    Case::threads(n, 256)
        .u32(n)
        .input(halves(all, 1))
        .input(halves(all, 2))
        .output(vec![0u16; all])
        .output(vec![0u16; n as usize])
}

fn half_quotients(case: &Case) -> Vec<Array> {
    let n = case.number(0);
    let pairs = case.u16s(1).iter().zip(case.u16s(2));
    let quotients: Vec<u16> = pairs.map(|(x, y)| rounded(value(x) / value(y))).collect();
    let greatest = |i: usize| {
        let column = quotients[i..].iter().step_by(n);
        rounded(column.map(value).fold(0.0, f64::max))
    };
    let greatest: Vec<u16> = (0..n).map(greatest).collect();
    vec![quotients.into(), greatest.into()]
}

fn half_clamp(size: Size) -> Case {
    let n = length(size, 500, 1 << 24);
    Case::threads(n, 256)
        .u32(n)
        .f32(1.5)
        .f32(-0.25)
        .f32(0.3)
        .input(halves(2 * n as usize, 1))
        .output(vec![0u16; 2 * n as usize])
        .output(vec![0u16; n as usize])
}

fn limited(case: &Case) -> Vec<Array> {
    let [factor, least, greatest] = [1, 2, 3].map(|at| value(&rounded(f64::from(case.real(at)))));
    let x: Vec<f64> = case.u16s(4).iter().map(value).collect();
    let limit = |x: &f64| value(&rounded(x * factor + least)).clamp(least, greatest);
    let limited: Vec<f64> = x.iter().map(limit).collect();
    let products = limited.iter().zip(&x).map(|(a, x)| rounded(a * x));
    let most = limited.chunks(2).map(|pair| rounded(pair[0].abs().max(pair[1].abs())));
    vec![products.collect::<Vec<u16>>().into(), most.collect::<Vec<u16>>().into()]
}

fn half_layer(size: Size) -> Case {
    let n = length(size, 500, 1 << 22);
    Case::threads(n, 256)
        .u32(n)
        .input(halves(512, 1))
        .input(halves(16, 2))
        .input(halves(n as usize * 32, 3))
        .output(vec![0u16; n as usize * 16])
}

/// Even and odd inputs have sums of their own.
fn neurons(case: &Case) -> Vec<Array> {
    let (n, weights, biases, from) = (case.number(0), case.u16s(1), case.u16s(2), case.u16s(3));
    let sum = |j: usize, i: usize, odd: usize, first: f64| {
        (0..16).fold(first, |sum, k| {
            let [w, x] = [&weights[(j * 16 + k) * 2 + odd], &from[(k * n + i) * 2 + odd]];
            value(&rounded(value(w) * value(x) + sum))
        })
    };
    let neuron = |at: usize| {
        let (j, i) = (at / n, at % n);
        let even = sum(j, i, 0, value(&biases[j]));
        rounded((even + sum(j, i, 1, 0.0)).max(0.0))
    };
    vec![(0..n * 16).map(neuron).collect::<Vec<u16>>().into()]
}

fn short_ratio(size: Size) -> Case {
    let n = length(size, 500, 1 << 22);
    let divisors: Vec<i16> = words(32, 1)
        .iter()
        .map(|word| if word & 1 == 0 { 3 + (word >> 20) as i16 } else { -7 })
        .collect();
    let values: Vec<i16> = words(n as usize, 2).iter().map(|word| (word >> 16) as i16).collect();
    Case::threads(n, 256)
        .u32(n)
        .u32(32)
        .input(divisors)
        .input(values)
        .output(vec![0i16; n as usize])
}

fn quotients(case: &Case) -> Vec<Array> {
    let sum = |value: &i16| {
        let terms = case.i16s(2).iter().map(|divisor| (value / divisor) ^ (value % divisor));
        terms.fold(0, i16::wrapping_add)
    };
    vec![case.i16s(3).iter().map(sum).collect::<Vec<i16>>().into()]
}

fn int8_gemv(size: Size) -> Case {
    let (rows, count) = (length(size, 20, 32_768), length(size, 100, 2_048));
    Case::new(rows.div_ceil(8), (32, 8))
        .u32(rows)
        .u32(count)
        .input(words((rows * count) as usize, 1))
        .input(words(count as usize, 2))
        .input(reals(rows as usize, 3, 0.1, 1.0))
        .output(vec![0f32; rows as usize])
}

fn products(case: &Case) -> Vec<Array> {
    let dot = |(a, b): (&u32, &u32)| {
        let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        pairs.map(|(a, b)| i32::from(a as i8) * i32::from(b as i8)).sum::<i32>()
    };
    let rows = case.u32s(2).chunks(case.number(1)).zip(case.f32s(4));
    let product = |(row, scale): (&[u32], &f32)| {
        scale * row.iter().zip(case.u32s(3)).map(dot).sum::<i32>() as f32
    };
    vec![rows.map(product).collect::<Vec<f32>>().into()]
}

fn bf16_dot(size: Size) -> Case {
    let (rows, pairs) = (length(size, 20, 16_384), length(size, 100, 4_096));
    let brains = |n: u32, seed| -> Vec<u16> {
        reals(n as usize, seed, 0.1, 1.0).iter().map(|x| (x.to_bits() >> 16) as u16).collect()
    };
    Case::threads(rows * 32, 256)
        .u32(rows)
        .u32(pairs)
        .input(brains(rows * pairs * 2, 1))
        .input(brains(pairs * 2, 2))
        .output(vec![0f32; rows as usize])
        .within(1e-3)
}

fn brain_products(case: &Case) -> Vec<Array> {
    let value = |brain: &u16| f64::from(f32::from_bits(u32::from(*brain) << 16));
    let product = |row: &[u16]| {
        row.iter().zip(case.u16s(3)).map(|(a, b)| value(a) * value(b)).sum::<f64>() as f32
    };
    let rows = case.u16s(2).chunks(2 * case.number(1));
    vec![rows.map(product).collect::<Vec<f32>>().into()]
}

fn ising(size: Size) -> Case {
    let side = length(size, 64, 8_192);
    let cells = (side * side) as usize;
    let spins: Vec<u8> =
        words(cells, 1).iter().map(|word| if word & 1 == 0 { 1 } else { 255 }).collect();
    Case::new(((side / 2).div_ceil(32), side.div_ceil(8)), (32, 8))
        .i32(side as i32)
        .i32(side as i32)
        .i32(1)
        .u32(99)
        .input(vec![u32::MAX, u32::MAX, 2_000_000_000, 700_000_000, 120_000_000])
        .output(spins)
}

fn turned(case: &Case) -> Vec<Array> {
    let [width, height, colour, seed] = [0, 1, 2, 3].map(|at| case.number(at));
    let (chances, spins) = (case.u32s(4), case.u8s(5));
    let random = |cell: usize| {
        let mut h = (cell as u32).wrapping_mul(0x9e37_79b1) ^ seed as u32;
        h = (h ^ h >> 15).wrapping_mul(0x85eb_ca77);
        h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae3d);
        h ^ h >> 16
    };
    let spin = |x: usize, y: usize| spins[y % height * width + x % width] as i8;
    let next = |cell: usize| {
        let (x, y) = (cell % width, cell / width);
        let own = spin(x, y);
        let around =
            spin(x + 1, y) + spin(x + width - 1, y) + spin(x, y + 1) + spin(x, y + height - 1);
        let turns = (x + y + colour).is_multiple_of(2)
            && random(cell) < chances[((around * own + 4) / 2) as usize];
        (if turns { -own } else { own }) as u8
    };
    vec![(0..spins.len()).map(next).collect::<Vec<u8>>().into()]
}

fn resize(size: Size) -> Case {
    let (width, height) = (length(size, 40, 3_000), length(size, 30, 2_000));
    let (new_width, new_height) = (length(size, 50, 4_000), length(size, 45, 3_000));
    Case::new((new_width.div_ceil(32), new_height.div_ceil(8)), (32, 8))
        .i32(width as i32)
        .i32(height as i32)
        .i32(new_width as i32)
        .i32(new_height as i32)
        .input(bytes((4 * width * height) as usize, 1, 256))
        .output(vec![0u8; (4 * new_width * new_height) as usize])
}

fn resized(case: &Case) -> Vec<Array> {
    let [width, height, new_width, new_height] = [0, 1, 2, 3].map(|at| case.number(at));
    let from = case.u8s(4);
    // The places of the two old pixels, and how far the new one is from the first.
    let place = |new: usize, count: usize, new_count: usize| {
        let at = (new as f32 + 0.5) * count as f32 / new_count as f32 - 0.5;
        let [first, second] = [0.0, 1.0].map(|step| (at.floor() + step) as usize);
        (first, second.min(count - 1), at - at.floor())
    };
    let mix = |a: u8, b: u8, u: f32| f32::from(b).mul_add(u, f32::from(a) * (1.0 - u));
    let byte = |at: usize| {
        let (x, y, channel) = (at / 4 % new_width, at / 4 / new_width, at % 4);
        let (left, right, u) = place(x, width, new_width);
        let (top, bottom, v) = place(y, height, new_height);
        let old = |x: usize, y: usize| from[(y * width + x) * 4 + channel];
        let [upper, lower] = [top, bottom].map(|y| mix(old(left, y), old(right, y), u));
        lower.mul_add(v, upper * (1.0 - v)) as u8
    };
    vec![(0..4 * new_width * new_height).map(byte).collect::<Vec<u8>>().into()]
}
