//! Kernels with integers in loops whose number of turns depends on the data, and hashes.

use super::memory::length;
use super::{Array, Case, Plain, Size, mix, plain, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("quotient", "quotients by a divisor that stays the same", quotient, quotients),
    plain!("gcd", "greatest common divisors", gcd, divisors),
    plain!("factor", "least factors by trial division", factor, least_factors),
    plain!("digits", "sums of decimal digits", digits, digit_sums),
    plain!("power", "powers modulo a number, u64", power, powers),
    plain!("collatz", "Collatz sequences", collatz, steps),
    plain!("pi", "random points in a circle by xorshift", pi, hits),
    plain!("hamming", "least Hamming distance to 256 codes", hamming, least_distances),
    plain!("levenshtein", "edit distances of words of 16 bytes", levenshtein, edits),
    plain!("crc32", "CRC-32 bit by bit", crc32, check_sums),
    plain!("sha256", "SHA-256 of a block per thread", sha256, hashes),
];

fn wide(n: usize, seed: u32) -> Vec<u64> {
    words(n, seed).iter().map(|word| u64::from(*word) << 32 | u64::from(mix(*word))).collect()
}

fn quotient(size: Size) -> Case {
    let n = length(size, 500, 1 << 21) as usize;
    let divisors: Vec<u32> = words(n, 2).iter().map(|word| 1 + word % 100_000).collect();
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .u32(256)
        .input(words(n, 1))
        .input(divisors)
        .output(vec![0u32; n])
}

fn quotients(case: &Case) -> Vec<Array> {
    let rounds = case.number(1) as u32;
    let pairs = case.u32s(2).iter().zip(case.u32s(3));
    let sum = |(value, divisor): (&u32, &u32)| {
        (0..rounds).fold(0u32, |sum, k| sum.wrapping_add(value.wrapping_add(k) / divisor))
    };
    vec![pairs.map(sum).collect::<Vec<u32>>().into()]
}

fn gcd(size: Size) -> Case {
    let n = length(size, 500, 1 << 22) as usize;
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .input(words(n, 1))
        .input(words(n, 2))
        .output(vec![0u32; n])
}

fn divisors(case: &Case) -> Vec<Array> {
    fn gcd(a: u32, b: u32) -> u32 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let pairs = case.u32s(1).iter().zip(case.u32s(2));
    vec![pairs.map(|(a, b)| gcd(*a, *b)).collect::<Vec<u32>>().into()]
}

fn factor(size: Size) -> Case {
    let n = length(size, 300, 1 << 20) as usize;
    let numbers: Vec<u32> = words(n, 1).iter().map(|word| 3 + 2 * (word % (1 << 18))).collect();
    Case::threads(n as u32, 256).u32(n as u32).input(numbers).output(vec![0u32; n])
}

fn least_factors(case: &Case) -> Vec<Array> {
    let least =
        |number: &u32| (3..=*number).step_by(2).find(|d| number.is_multiple_of(*d)).unwrap_or(0);
    vec![case.u32s(1).iter().map(least).collect::<Vec<u32>>().into()]
}

fn digits(size: Size) -> Case {
    let n = length(size, 500, 1 << 22) as usize;
    Case::threads(n as u32, 256).u32(n as u32).input(wide(n, 1)).output(vec![0u32; n])
}

fn digit_sums(case: &Case) -> Vec<Array> {
    let sum = |number: &u64| number.to_string().bytes().map(|digit| u32::from(digit - b'0')).sum();
    vec![case.u64s(1).iter().map(sum).collect::<Vec<u32>>().into()]
}

fn power(size: Size) -> Case {
    let n = length(size, 300, 1 << 20) as usize;
    let moduli: Vec<u64> = words(n, 3).iter().map(|word| 2 + u64::from(word >> 1)).collect();
    let exponents: Vec<u64> = words(n, 2).iter().map(|word| u64::from(*word)).collect();
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .input(wide(n, 1))
        .input(exponents)
        .input(moduli)
        .output(vec![0u64; n])
}

fn powers(case: &Case) -> Vec<Array> {
    let power = |i: usize| {
        let (base, exponent, modulus) = (case.u64s(1)[i], case.u64s(2)[i], case.u64s(3)[i]);
        // From the highest bit on, where the kernel starts at the lowest.
        (0..64).rev().fold(1u64, |power, bit| {
            let factor = if exponent >> bit & 1 != 0 { base % modulus } else { 1 };
            power * power % modulus * factor % modulus
        })
    };
    vec![(0..case.number(0)).map(power).collect::<Vec<u64>>().into()]
}

fn collatz(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 22);
    Case::threads(n, 256).u32(n).output(vec![0u32; n as usize])
}

fn steps(case: &Case) -> Vec<Array> {
    let steps = |start: u64| {
        let next = |x: &u64| Some(if x.is_multiple_of(2) { x / 2 } else { 3 * x + 1 });
        std::iter::successors(Some(start), next).take_while(|x| *x != 1).count() as u32
    };
    vec![(1..=case.number(0) as u64).map(steps).collect::<Vec<u32>>().into()]
}

fn pi(size: Size) -> Case {
    let (n, rounds) = (length(size, 300, 1 << 19), length(size, 50, 512));
    let seeds: Vec<u32> = words(n as usize, 1).iter().map(|word| word | 1).collect();
    Case::threads(n, 256).u32(n).u32(rounds).input(seeds).output(vec![0u32; n as usize])
}

fn hits(case: &Case) -> Vec<Array> {
    let count = |seed: &u32| {
        let mut state = *seed;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            f64::from(state >> 17) / f64::from(1 << 15)
        };
        (0..case.number(1)).filter(|_| next().powi(2) + next().powi(2) < 1.0).count() as u32
    };
    vec![case.u32s(2).iter().map(count).collect::<Vec<u32>>().into()]
}

fn hamming(size: Size) -> Case {
    let n = length(size, 500, 1 << 21) as usize;
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .input(wide(n, 1))
        .input(wide(256, 2))
        .output(vec![0u32; n])
}

fn least_distances(case: &Case) -> Vec<Array> {
    let least = |query: &u64| {
        let distances = case.u64s(2).iter().map(|code| (query ^ code).count_ones());
        distances.min().unwrap_or(64)
    };
    vec![case.u64s(1).iter().map(least).collect::<Vec<u32>>().into()]
}

fn levenshtein(size: Size) -> Case {
    let n = length(size, 300, 1 << 21);
    let letters =
        |seed| words(n as usize * 16, seed).iter().map(|word| (word % 4) as u8).collect::<Vec<_>>();
    Case::threads(n, 256).u32(n).input(letters(1)).input(letters(2)).output(vec![0u32; n as usize])
}

fn edits(case: &Case) -> Vec<Array> {
    let (n, left, right) = (case.number(0), case.u8s(1), case.u8s(2));
    let distance = |i: usize| {
        let mut table = vec![vec![0u32; 17]; 17];
        for j in 0..17 {
            for k in 0..17 {
                table[j][k] = match (j, k) {
                    (0, k) => k as u32,
                    (j, 0) => j as u32,
                    (j, k) => {
                        let differs = left[(j - 1) * n + i] != right[(k - 1) * n + i];
                        let replaced = table[j - 1][k - 1] + u32::from(differs);
                        replaced.min(table[j - 1][k] + 1).min(table[j][k - 1] + 1)
                    }
                };
            }
        }
        table[16][16]
    };
    vec![(0..n).map(distance).collect::<Vec<u32>>().into()]
}

fn crc32(size: Size) -> Case {
    let (n, count) = (length(size, 200, 1 << 20), length(size, 5, 16));
    Case::threads(n, 256)
        .u32(n)
        .u32(count)
        .input(words((n * count) as usize, 1))
        .output(vec![0u32; n as usize])
}

/// By a table, a byte at a time.
fn check_sums(case: &Case) -> Vec<Array> {
    let (n, count, messages) = (case.number(0), case.number(1), case.u32s(2));
    let entry = |byte: u32| {
        (0..8).fold(byte, |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0xedb8_8320 } else { 0 })
    };
    let table: Vec<u32> = (0..256).map(entry).collect();
    let sum = |i: usize| {
        let bytes = (0..count).flat_map(|w| messages[w * n + i].to_le_bytes());
        !bytes.fold(!0, |crc: u32, byte| crc >> 8 ^ table[(crc as u8 ^ byte) as usize])
    };
    vec![(0..n).map(sum).collect::<Vec<u32>>().into()]
}

/// The first 32 bits of the fractional parts of a root of the first primes (FIPS 180-4).
fn fractions(count: usize, root: fn(f64) -> f64) -> Vec<u32> {
    let is_prime = |n: &u32| (2..*n).all(|d| !n.is_multiple_of(d));
    let primes = (2..).filter(is_prime).take(count);
    primes
        .map(|prime| (root(f64::from(prime)).fract() * f64::from(1u32 << 31) * 2.0) as u32)
        .collect()
}

fn sha256(size: Size) -> Case {
    let n = length(size, 100, 1 << 22);
    Case::threads(n, 256)
        .u32(n)
        .input(fractions(64, f64::cbrt))
        .input(fractions(8, f64::sqrt))
        .input(words(n as usize * 16, 1))
        .output(vec![0u32; n as usize * 8])
}

fn hashes(case: &Case) -> Vec<Array> {
    let (n, constants, blocks) = (case.number(0), case.u32s(1), case.u32s(3));
    let mut hashes = vec![0u32; n * 8];
    for i in 0..n {
        let mut w: Vec<u32> = (0..16).map(|j| blocks[j * n + i]).collect();
        for j in 16..64 {
            let (x, y) = (w[j - 15], w[j - 2]);
            let first = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
            let second = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
            w.push([w[j - 16], first, w[j - 7], second].into_iter().fold(0, u32::wrapping_add));
        }
        let mut s = case.u32s(2).to_vec();
        for j in 0..64 {
            let of_e = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choice = s[4] & s[5] ^ !s[4] & s[6];
            let first =
                [s[7], of_e, choice, constants[j], w[j]].into_iter().fold(0, u32::wrapping_add);
            let of_a = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let majority = s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2];
            s.rotate_right(1);
            s[4] = s[4].wrapping_add(first);
            s[0] = first.wrapping_add(of_a).wrapping_add(majority);
        }
        for (j, word) in s.iter().enumerate() {
            hashes[j * n + i] = case.u32s(2)[j].wrapping_add(*word);
        }
    }
    vec![hashes.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_standard() {
        let constants = fractions(64, f64::cbrt);
        assert_eq!([constants[0], constants[63]], [0x428a_2f98, 0xc671_78f2]);
        assert_eq!(fractions(8, f64::sqrt)[7], 0x5be0_cd19);
    }
}
