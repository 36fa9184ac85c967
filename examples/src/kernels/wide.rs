//! Kernels with types wider than 32 bits.

use super::memory::length;
use super::narrow::bytes;
use super::{Array, Case, Plain, Size, mix, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("permute4d", "axes of a tensor, 64-bit indices", permute4d, permuted),
    plain!("montgomery", "tests for primes", montgomery, primes),
    plain!("fnv_strings", "hashes of strings", fnv_strings, hashes),
    plain!("varint", "numbers of one to ten bytes", varint, sums),
    plain!("big_mul", "products of 256 bits", big_mul, products),
    plain!("calendar", "seconds to dates", calendar, dates),
    plain!("lu_pivot", "systems of five equations with pivots", lu_pivot, solutions),
];

fn permute4d(size: Size) -> Case {
    let (a, b, c, d) =
        (length(size, 3, 48), length(size, 5, 40), length(size, 4, 56), length(size, 7, 288));
    let n = (a * b * c * d) as usize;
    Case::new(length(size, 2, 2_112), 256)
        .u64(u64::from(a))
        .u64(u64::from(b))
        .u64(u64::from(c))
        .u64(u64::from(d))
        .input(reals(n, 1, -1.0, 1.0))
        .output(vec![0f32; n])
}

fn permuted(case: &Case) -> Vec<Array> {
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| case.number(at));
    let mut to = case.f32s(5).to_vec();
    for (at, value) in case.f32s(4).iter().enumerate() {
        let (x, z, y, w) = (at / (b * c * d), at / (c * d) % b, at / d % c, at % d);
        to[((y * a + x) * d + w) * b + z] = *value;
    }
    vec![to.into()]
}

fn montgomery(size: Size) -> Case {
    let n = length(size, 500, 1 << 22);
    let numbers: Vec<u32> = words(n as usize, 1).iter().map(|word| word.max(&4) | 1).collect();
    Case::threads(n, 256).u32(n).input(numbers).output(vec![0u8; n as usize])
}

fn primes(case: &Case) -> Vec<Array> {
    let is_prime = |n: &u32| {
        let mut divisors = (3..=n.isqrt()).step_by(2);
        u8::from(divisors.all(|divisor| !n.is_multiple_of(divisor)))
    };
    vec![case.u32s(1).iter().map(is_prime).collect::<Vec<u8>>().into()]
}

fn fnv_strings(size: Size) -> Case {
    let n = length(size, 500, 1 << 20);
    let mut offsets = vec![0];
    for (i, word) in words(n as usize, 1).iter().enumerate() {
        offsets.push(offsets[i] + word % 65);
    }
    let end = offsets[n as usize] as usize;
    Case::threads(n, 256)
        .u32(n)
        .input(offsets)
        .input(bytes(end, 2, 256))
        .output(vec![0u64; n as usize])
}

fn hashes(case: &Case) -> Vec<Array> {
    let text = case.u8s(2);
    let hash = |ends: &[u32]| {
        let next = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        text[ends[0] as usize..ends[1] as usize].iter().fold(0xcbf2_9ce4_8422_2325, next)
    };
    vec![case.u32s(1).windows(2).map(hash).collect::<Vec<u64>>().into()]
}

fn varint(size: Size) -> Case {
    let lists = length(size, 200, 1 << 18);
    let (mut starts, mut counts, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for list in 0..lists {
        starts.push(all.len() as u64);
        let count = 20 + mix(list) % 25;
        counts.push(count as u16);
        for k in 0..count {
            let word = mix(list * 64 + k);
            let mut value = u64::from(word) << 8 >> (word & 31);
            while value >= 128 {
                all.push((value & 127) as u8 | 128);
                value >>= 7;
            }
            all.push(value as u8);
        }
    }
    Case::threads(lists, 256)
        .u32(lists)
        .input(starts)
        .input(counts)
        .input(all)
        .output(vec![0i64; lists as usize])
}

/// The last byte of a number is less than 128.
fn sums(case: &Case) -> Vec<Array> {
    let list = |(start, count): (&u64, &u16)| {
        let numbers = case.u8s(3)[*start as usize..].split_inclusive(|byte| *byte < 128);
        let difference = |number: &[u8]| {
            let digits = number.iter().rev().map(|byte| i64::from(byte & 127));
            let word = digits.fold(0, |word, digit| word << 7 | digit);
            if word % 2 == 0 { word / 2 } else { -1 - word / 2 }
        };
        numbers.take(usize::from(*count)).map(difference).sum::<i64>()
    };
    vec![case.u64s(1).iter().zip(case.u16s(2)).map(list).collect::<Vec<i64>>().into()]
}

fn big_mul(size: Size) -> Case {
    let n = length(size, 300, 1 << 21);
    Case::threads(n, 256)
        .u32(n)
        .input(words(n as usize * 8, 1))
        .input(words(n as usize * 8, 2))
        .output(vec![0u32; n as usize * 16])
}

fn products(case: &Case) -> Vec<Array> {
    let n = case.number(0);
    let mut products = vec![0u32; n * 16];
    for (i, (a, b)) in case.u32s(1).chunks(8).zip(case.u32s(2).chunks(8)).enumerate() {
        let mut sum = 0u128;
        for place in 0..16usize {
            for j in place.saturating_sub(7)..8.min(place + 1) {
                sum += u128::from(a[j]) * u128::from(b[place - j]);
            }
            products[place * n + i] = sum as u32;
            sum >>= 32;
        }
    }
    vec![products.into()]
}

fn calendar(size: Size) -> Case {
    let (n, blocks) = (length(size, 1_000, 1 << 24), length(size, 3, 2_112));
    let times: Vec<i64> =
        words(n as usize, 1).iter().map(|word| (i64::from(*word) - (1 << 31)) * 7).collect();
    Case::new(blocks, 256).u32(n).input(times).output(vec![0u8; 8 * n as usize])
}

/// The year takes two bytes; 1 January 1970 was a Thursday.
fn dates(case: &Case) -> Vec<Array> {
    let date = |time: &i64| {
        let (days, seconds) = (time.div_euclid(86_400), time.rem_euclid(86_400));
        let is_leap = |year: i16| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days_of = |year: i16| if is_leap(year) { 366 } else { 365 };
        let (mut year, mut day) = (1970, days);
        while day < 0 {
            year -= 1;
            day += days_of(year);
        }
        while day >= days_of(year) {
            day -= days_of(year);
            year += 1;
        }
        let february = if is_leap(year) { 29 } else { 28 };
        let mut month = 1;
        for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
            if day < length {
                break;
            }
            day -= length;
            month += 1;
        }
        let [low, high] = year.to_le_bytes();
        let time = [seconds / 3_600, seconds / 60 % 60, seconds % 60].map(|part| part as u8);
        let weekday = (days + 4).rem_euclid(7) as u8;
        [low, high, month, day as u8 + 1, time[0], time[1], time[2], weekday]
    };
    vec![case.i64s(1).iter().flat_map(date).collect::<Vec<u8>>().into()]
}

fn lu_pivot(size: Size) -> Case {
    let n = length(size, 300, 1 << 19) as usize;
    let doubles = |n: usize, seed: u32| {
        reals(n, seed, -1.0, 1.0).into_iter().map(f64::from).collect::<Vec<f64>>()
    };
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .input(doubles(n * 25, 1))
        .input(doubles(n * 5, 2))
        .output(vec![0f64; n * 5])
        .within(1e-6)
}

/// Gauss-Jordan elimination.
fn solutions(case: &Case) -> Vec<Array> {
    let (n, matrices, right) = (case.number(0), case.f64s(1), case.f64s(2));
    let mut to = vec![0.0; n * 5];
    for i in 0..n {
        let row = |k: usize| [0, 1, 2, 3, 4].map(|column| matrices[(k * 5 + column) * n + i]);
        let mut rows = [0, 1, 2, 3, 4].map(|k| (row(k), right[k * n + i]));
        for k in 0..5 {
            rows[k..].sort_by(|(a, _), (b, _)| b[k].abs().total_cmp(&a[k].abs()));
            let (pivot, value) = rows[k];
            for (other, (row, right)) in rows.iter_mut().enumerate() {
                if other != k {
                    let factor = row[k] / pivot[k];
                    row.iter_mut().zip(pivot).for_each(|(x, y)| *x -= factor * y);
                    *right -= factor * value;
                }
            }
        }
        (0..5).for_each(|k| to[k * n + i] = rows[k].1 / rows[k].0[k]);
    }
    vec![to.into()]
}
