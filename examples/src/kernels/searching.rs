//! Kernels that sort and search: their threads take different paths.

use super::memory::length;
use super::{Array, Case, Plain, Size, mix, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("bitonic", "sorts chunks of 1,024 in shared memory", bitonic, chunks_sorted),
    plain!("merge", "merges two sorted arrays", merge, merged),
    plain!("lower_bound", "binary search", lower_bound, bounds),
    plain!("hash_insert", "insertion into a hash table by atomics", hash_insert, inserted),
    plain!("radix_rank", "ranks of digits in a warp by ballots", radix_rank, ranks),
    plain!("argmax", "places of the greatest numbers of rows", argmax, places),
    plain!("frontier", "a level of a breadth-first search", frontier, levels),
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

fn radix_rank(size: Size) -> Case {
    let n = length(size, 512, 1 << 25);
    Case::threads(n, 256).u32(n).input(words(n as usize, 1)).output(vec![0u32; n as usize])
}

fn ranks(case: &Case) -> Vec<Array> {
    let warp = |warp: &[u32]| {
        let rank =
            |i: usize| warp[..i].iter().filter(|other| *other % 16 == warp[i] % 16).count() as u32;
        (0..warp.len()).map(rank).collect::<Vec<u32>>()
    };
    vec![case.u32s(1).chunks(32).flat_map(warp).collect::<Vec<u32>>().into()]
}

/// The numbers are rounded so that some are equal.
fn argmax(size: Size) -> Case {
    let rows = length(size, 10, 1 << 15);
    let numbers = reals(rows as usize * 1_024, 1, 0.0, 500.0);
    let rounded: Vec<f32> = numbers.iter().map(|x| x.round()).collect();
    Case::threads(rows * 32, 256)
        .u32(rows)
        .u32(1_024)
        .input(rounded)
        .output(vec![0u32; rows as usize])
}

fn places(case: &Case) -> Vec<Array> {
    let place = |row: &[f32]| {
        let most = row.iter().copied().fold(0.0, f32::max);
        row.iter().position(|x| *x == most).unwrap_or(0) as u32
    };
    vec![case.f32s(2).chunks(case.number(1)).map(place).collect::<Vec<u32>>().into()]
}

/// A third of the vertices, each with up to 31 neighbours, are at the depth; the others are not reached yet.
fn frontier(size: Size) -> Case {
    let n = length(size, 500, 1 << 20);
    let mut offsets = vec![0];
    for vertex in 0..n {
        offsets.push(offsets[vertex as usize] + mix(vertex) % 32);
    }
    let edges = offsets[n as usize] as usize;
    let targets: Vec<u32> = words(edges, 1).iter().map(|word| word % n).collect();
    let level = |vertex: u32| if mix(!vertex).is_multiple_of(3) { 5 } else { u32::MAX };
    Case::threads(n, 256)
        .u32(n)
        .u32(5)
        .input(offsets)
        .input(targets)
        .output((0..n).map(level).collect::<Vec<u32>>())
}

fn levels(case: &Case) -> Vec<Array> {
    let (offsets, targets, levels) = (case.u32s(2), case.u32s(3), case.u32s(4));
    let mut after = levels.to_vec();
    for vertex in (0..levels.len()).filter(|vertex| levels[*vertex] == 5) {
        for edge in offsets[vertex]..offsets[vertex + 1] {
            let level = &mut after[targets[edge as usize] as usize];
            *level = (*level).min(6);
        }
    }
    vec![after.into()]
}
