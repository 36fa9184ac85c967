//! Kernels that compute with integers.

use super::memory::length;
use super::{Array, Case, Plain, Size, mix, plain, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("chacha20", "key stream of ChaCha20, 64 bytes per thread", chacha20, key_stream),
    plain!(
        "divide_u32",
        "quotients and remainders of u32 in a loop",
        |size| divide(size, mix, |i| 100 + mix(i) % 1_000_000),
        |case| quotients(case.u32s(1), case.u32s(2), |sum, value, k, d| {
            sum.wrapping_add(value / (d + k)).wrapping_add((sum ^ value) % (d - k))
        })
    ),
    plain!(
        "divide_i32",
        "quotients and remainders of i32 in a loop",
        |size| divide(size, |i| mix(i) as i32 >> 8, |i| 100 + (mix(i) % 10_000) as i32),
        |case| quotients(case.i32s(1), case.i32s(2), |sum, value, k, d| {
            sum + value / (d + k) + (sum ^ value) % (d - k)
        })
    ),
    plain!(
        "divide_i64",
        "quotients and remainders of i64 in a loop",
        |size| divide(size, |i| i64::from(mix(i) as i32) << 20, |i| 100 + (i64::from(mix(i)) << 4)),
        |case| quotients(case.i64s(1), case.i64s(2), |sum, value, k, d| {
            sum + value / (d + k) + (sum ^ value) % (d - k)
        })
    ),
    plain!(
        "divide_u64",
        "quotients and remainders of u64 in a loop",
        |size| divide(
            size,
            |i| u64::from(mix(i)) << 32 | u64::from(mix(!i)),
            |i| 100 + (u64::from(mix(i)) << 8)
        ),
        |case| quotients(case.u64s(1), case.u64s(2), |sum, value, k, d| {
            sum.wrapping_add(value / (d + k)).wrapping_add((sum ^ value) % (d - k))
        })
    ),
];

fn chacha20(size: Size) -> Case {
    let blocks = length(size, 100, 1 << 22);
    let constants = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    let state: Vec<u32> = constants.into_iter().chain(words(12, 1)).collect();
    Case::threads(blocks, 256).u32(blocks).input(state).output(vec![0u32; blocks as usize * 16])
}

fn key_stream(case: &Case) -> Vec<Array> {
    fn quarter(s: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
        for (x, y, z, n) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
            s[x] = s[x].wrapping_add(s[y]);
            s[z] = (s[z] ^ s[x]).rotate_left(n);
        }
    }
    let block = |block: usize| {
        let mut first = [0u32; 16];
        first.copy_from_slice(case.u32s(1));
        first[12] = first[12].wrapping_add(block as u32);
        let mut s = first;
        for _ in 0..10 {
            (0..4).for_each(|i| quarter(&mut s, [i, 4 + i, 8 + i, 12 + i]));
            (0..4).for_each(|i| {
                quarter(&mut s, [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4]);
            });
        }
        (0..16).map(|i| s[i].wrapping_add(first[i])).collect::<Vec<u32>>()
    };
    vec![(0..case.number(0)).flat_map(block).collect::<Vec<u32>>().into()]
}

/// Divisors are at least 100, so that those of the kernel, which differ from them by less than 64, are not zero.
fn divide<T: Copy + Default>(
    size: Size,
    value: impl Fn(u32) -> T,
    divisor: impl Fn(u32) -> T,
) -> Case
where
    Array: From<Vec<T>>,
{
    let n = length(size, 500, 1 << 21);
    Case::threads(n, 256)
        .u32(n)
        .input((0..n).map(value).collect::<Vec<T>>())
        .input((0..n).map(|i| divisor(!i)).collect::<Vec<T>>())
        .output(vec![T::default(); n as usize])
}

fn quotients<T: Copy + Default + From<u8>>(
    values: &[T],
    divisors: &[T],
    next: impl Fn(T, T, T, T) -> T,
) -> Vec<Array>
where
    Array: From<Vec<T>>,
{
    let pairs = values.iter().zip(divisors);
    let sum = |(value, divisor): (&T, &T)| {
        (0..64u8).fold(T::default(), |sum, k| next(sum, *value, T::from(k), *divisor))
    };
    vec![pairs.map(sum).collect::<Vec<T>>().into()]
}
