//! Kernels that sort and search: their threads take different paths.

use super::memory::length;
use super::{Array, Case, Plain, Size, plain, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("bitonic", "sorts chunks of 1,024 in shared memory", bitonic, chunks_sorted),
    plain!("merge", "merges two sorted arrays", merge, merged),
    plain!("lower_bound", "binary search", lower_bound, bounds),
    plain!("hash_insert", "insertion into a hash table by atomics", hash_insert, inserted),
];

fn sorted(n: u32, seed: u32) -> Vec<u32> {
    let mut values = words(n as usize, seed);
    values.sort_unstable();
    values
}

fn bitonic(size: Size) -> Case {
    let n = length(size, 2_048, 1 << 23);
    Case::new(n / 1_024, 512).input(words(n as usize, 1)).output(vec![0u32; n as usize])
}

fn chunks_sorted(case: &Case) -> Vec<Array> {
    let mut values = case.u32s(0).to_vec();
    values.chunks_mut(1_024).for_each(<[u32]>::sort_unstable);
    vec![values.into()]
}

fn merge(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 22);
    Case::threads(2 * n / 8, 256).u32(n).input(sorted(n, 1)).input(sorted(n, 2)).output(vec![
        0u32;
        n as usize
            * 2
    ])
}

fn merged(case: &Case) -> Vec<Array> {
    let mut all = [case.u32s(1), case.u32s(2)].concat();
    all.sort_unstable();
    vec![all.into()]
}

fn lower_bound(size: Size) -> Case {
    let (queries, n) = (length(size, 500, 1 << 22), length(size, 300, 1 << 22));
    Case::threads(queries, 256)
        .u32(queries)
        .u32(n)
        .input(words(queries as usize, 1))
        .input(sorted(n, 2))
        .output(vec![0u32; queries as usize])
}

fn bounds(case: &Case) -> Vec<Array> {
    let sorted = case.u32s(3);
    let bound = |value: &u32| sorted.partition_point(|other| other < value) as u32;
    vec![case.u32s(2).iter().map(bound).collect::<Vec<u32>>().into()]
}

/// Each key occurs about twice.
fn hash_insert(size: Size) -> Case {
    let (n, slots) = (length(size, 700, 1 << 22), length(size, 1_024, 1 << 23));
    let keys: Vec<u32> = words(n as usize, 1).iter().map(|word| 1 + word % (n / 2)).collect();
    Case::threads(n, 256)
        .u32(n)
        .u32(slots - 1)
        .input(keys)
        .scratch(vec![0u32; slots as usize])
        .output(vec![0u32])
}

fn inserted(case: &Case) -> Vec<Array> {
    let mut keys = case.u32s(2).to_vec();
    keys.sort_unstable();
    keys.dedup();
    vec![vec![keys.len() as u32].into()]
}
