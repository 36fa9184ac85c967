//! Kernels whose threads share the memory of their block.

use super::memory::length;
use super::narrow::bytes;
use super::{Array, Case, Plain, Size, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("segmented_scan", "prefix sums of segments", segmented_scan, segment_sums),
    plain!("sieve", "primes by bits in shared memory", sieve, prime_counts),
    plain!("smith_waterman", "local alignments", smith_waterman, alignments),
    plain!("float_range", "least and greatest floats of groups", float_range, ranges),
];

fn segmented_scan(size: Size) -> Case {
    let (n, blocks) = (length(size, 1_536, 1 << 24), length(size, 3, 1_056));
    let flags: Vec<u8> =
        words(n as usize, 1).iter().map(|word| u8::from(word.is_multiple_of(40))).collect();
    let values: Vec<i32> = words(n as usize, 2).iter().map(|word| *word as i32).collect();
    Case::new(blocks, 256).u32(n).input(flags).input(values).output(vec![0i64; n as usize])
}

/// A sum starts again at a flag and at each multiple of 256.
fn segment_sums(case: &Case) -> Vec<Array> {
    let mut sum = 0;
    let pairs = case.u8s(1).iter().zip(case.i32s(2)).enumerate();
    let next = |(i, (flag, value)): (usize, (&u8, &i32))| {
        if *flag != 0 || i.is_multiple_of(256) {
            sum = 0;
        }
        sum += i64::from(*value);
        sum
    };
    vec![pairs.map(next).collect::<Vec<i64>>().into()]
}

fn sieve(size: Size) -> Case {
    let (blocks, limit) = (length(size, 3, 8_192), length(size, 1_100, 12_000));
    let is_prime = |n: &u32| (2..=n.isqrt()).all(|k| !n.is_multiple_of(k));
    let primes: Vec<u32> = (2..limit).filter(is_prime).collect();
    Case::new(blocks, 256)
        .u64(1 << 20)
        .u32(primes.len() as u32)
        .input(primes)
        .output(vec![0u32; blocks as usize])
}

fn prime_counts(case: &Case) -> Vec<Array> {
    let (first, primes, blocks) = (case.number(0) as u32, case.u32s(2), case.u32s(3).len() as u32);
    let is_prime = |n: &u32| primes.iter().all(|prime| !n.is_multiple_of(*prime));
    let count = |block: u32| {
        let start = first + block * 16_384;
        (start..start + 16_384).filter(is_prime).count() as u32
    };
    vec![(0..blocks).map(count).collect::<Vec<u32>>().into()]
}

fn smith_waterman(size: Size) -> Case {
    let (blocks, letters) = (length(size, 3, 2_048), length(size, 50, 256));
    let scores: Vec<u8> = (0..16).map(|i| if i / 4 == i % 4 { 5u8 } else { 252 }).collect();
    Case::new(blocks, 128)
        .u32(letters)
        .input(scores)
        .input(bytes(blocks as usize * 128, 1, 4))
        .input(bytes((blocks * letters) as usize, 2, 4))
        .output(vec![0i32; blocks as usize])
}

/// Equal letters score 5, others -4, and a gap -3.
fn alignments(case: &Case) -> Vec<Array> {
    let (length, left, right) = (case.number(0), case.u8s(2), case.u8s(3));
    let best = |(left, right): (&[u8], &[u8])| {
        let mut above = vec![0; length + 1];
        let mut best = 0;
        for letter in left {
            let mut row = vec![0; length + 1];
            for (k, other) in right.iter().enumerate() {
                let pair = above[k] + if letter == other { 5 } else { -4 };
                row[k + 1] = 0.max(pair).max(above[k + 1] - 3).max(row[k] - 3);
                best = best.max(row[k + 1]);
            }
            above = row;
        }
        best
    };
    vec![left.chunks(128).zip(right.chunks(length)).map(best).collect::<Vec<i32>>().into()]
}

fn float_range(size: Size) -> Case {
    let (n, blocks, groups) = (length(size, 2_000, 1 << 25), length(size, 3, 1_056), 50);
    Case::new(blocks, 256)
        .u32(n)
        .u32(groups)
        .input(bytes(n as usize, 1, 256))
        .input(reals(n as usize, 2, -1.0, 1.0))
        .output(vec![u32::MAX; groups as usize])
        .output(vec![0u32; groups as usize])
}

/// The bits of negative floats are inverted, and those of others are above them.
fn ranges(case: &Case) -> Vec<Array> {
    let (mut least, mut greatest) = (case.u32s(4).to_vec(), case.u32s(5).to_vec());
    for (key, value) in case.u8s(2).iter().zip(case.f32s(3)) {
        let (group, bits) = (usize::from(*key) % case.number(1), value.to_bits());
        let ordered = if *value < 0.0 { !bits } else { bits + (1 << 31) };
        least[group] = least[group].min(ordered);
        greatest[group] = greatest[group].max(ordered);
    }
    vec![least.into(), greatest.into()]
}
