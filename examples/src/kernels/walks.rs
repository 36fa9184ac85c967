//! Kernels that walk through trees, tables, cells and programs, and along random paths.

use std::collections::HashMap;

use super::memory::length;
use super::{Array, Case, Plain, Size, mix, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("bvh_walk", "points in range by a hierarchy of boxes", bvh_walk, near_points),
    plain!("hash_probe", "join with a hash table", hash_probe, joined),
    plain!("bytecode", "interpreter of a small machine", bytecode, results),
    plain!("sph_density", "densities of a fluid of particles", sph_density, densities),
    plain!("asian_option", "payoffs along random paths by Philox", asian_option, payoffs),
];

type Point = [f32; 3];

/// The boxes of a complete tree, eight words a node: every leaf has four points, and the children
/// of node k are 2k + 1 and 2k + 2.
fn boxes(points: &[Point]) -> Vec<u32> {
    let leaves = points.len() / 4;
    let mut boxes = vec![[[0f32; 3]; 2]; 2 * leaves - 1];
    let mut nodes = vec![0u32; boxes.len() * 8];
    for node in (0..boxes.len()).rev() {
        let is_leaf = node >= leaves - 1;
        let first = if is_leaf { (node + 1 - leaves) * 4 } else { 2 * node + 1 };
        let ends = |at: usize| if is_leaf { [points[at]; 2] } else { boxes[at] };
        let parts = || (first..first + if is_leaf { 4 } else { 2 }).map(ends);
        let low = [0, 1, 2].map(|axis| parts().map(|[low, _]| low[axis]).fold(f32::MAX, f32::min));
        let high =
            [0, 1, 2].map(|axis| parts().map(|[_, high]| high[axis]).fold(f32::MIN, f32::max));
        boxes[node] = [low, high];
        let own = &mut nodes[node * 8..node * 8 + 8];
        for axis in 0..3 {
            own[axis] = low[axis].to_bits();
            own[4 + axis] = high[axis].to_bits();
        }
        own[3] = first as u32;
        own[7] = u32::from(is_leaf);
    }
    nodes
}

fn morton(point: &Point) -> u32 {
    let cells = point.map(|x| (x * 1_023.0) as u32);
    let bit = |bit: u32| (cells[bit as usize % 3] >> (bit / 3) & 1) << bit;
    (0..30).map(bit).sum()
}

fn bvh_walk(size: Size) -> Case {
    let (n, count) = (length(size, 200, 1 << 18), length(size, 256, 1 << 16) as usize);
    let sorted = |n: usize, seed: u32| {
        let all = reals(n * 3, seed, 0.0, 1.0);
        let mut points: Vec<Point> = all.chunks(3).map(|p| [p[0], p[1], p[2]]).collect();
        points.sort_by_key(morton);
        points
    };
    let four = |points: &[Point]| -> Vec<f32> {
        points.iter().flat_map(|p| [p[0], p[1], p[2], 0.0]).collect()
    };
    let points = sorted(count, 1);
    let radius = length(size, 250, 40) as f32 / 1000.0;
    Case::threads(n, 128)
        .u32(n)
        .f32(radius * radius)
        .input(boxes(&points))
        .input(four(&points))
        .input(four(&sorted(n as usize, 2)))
        .output(vec![0u32; n as usize])
}

fn square(p: &[f32], q: &[f32]) -> f32 {
    let [x, y, z] = [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
    x.mul_add(x, y.mul_add(y, z * z))
}

fn near_points(case: &Case) -> Vec<Array> {
    let count = |query: &[f32]| {
        let points = case.f32s(3).chunks(4);
        points.filter(|point| square(point, query) < case.real(1)).count() as u32
    };
    vec![case.f32s(4).chunks(4).map(count).collect::<Vec<u32>>().into()]
}

/// Half of the slots are taken; half of the keys are found.
fn hash_probe(size: Size) -> Case {
    let (n, blocks) = (length(size, 1_000, 1 << 23), length(size, 3, 2_112));
    let slots = length(size, 512, 1 << 22);
    let slot_of = |key: u32| {
        let x = (key ^ key >> 16).wrapping_mul(0x7feb_352d);
        (x ^ x >> 15).wrapping_mul(0x846c_a68b)
    };
    let mut table = vec![0u32; 2 * slots as usize];
    for key in 1..=slots / 2 {
        let mut slot = slot_of(key) & (slots - 1);
        while table[2 * slot as usize] != 0 {
            slot = (slot + 1) & (slots - 1);
        }
        table[2 * slot as usize] = key;
        table[2 * slot as usize + 1] = mix(key);
    }
    let keys: Vec<u32> = words(n as usize, 1).iter().map(|word| 1 + word % slots).collect();
    Case::new(blocks, 256)
        .u32(n)
        .u32(slots - 1)
        .input(keys)
        .input(table)
        .output(vec![0u32; n as usize])
}

fn joined(case: &Case) -> Vec<Array> {
    let entries: HashMap<u32, u32> =
        case.u32s(3).chunks(2).map(|entry| (entry[0], entry[1])).collect();
    let value = |key: &u32| entries.get(key).copied().unwrap_or(u32::MAX);
    vec![case.u32s(2).iter().map(value).collect::<Vec<u32>>().into()]
}

/// A loop that mixes a number; how it goes on depends on the thread's number.
fn bytecode(size: Size) -> Case {
    let (n, steps) = (length(size, 300, 1 << 18), length(size, 100, 400));
    let word =
        |operation: u32, target: u32, a: u32, b: u32| operation << 24 | target << 16 | a << 8 | b;
    let program = vec![
        word(5, 2, 0x1f, 0x35), // r2 = 0x1f35
        word(5, 3, 0x00, 0x01), // r3 = 1
        word(5, 7, 0x03, 0xff), // r7 = 1023
        word(2, 1, 0, 2),       // 3: r1 = r0 * r2
        word(4, 4, 1, 7),       // r4 = r1 >> 7
        word(3, 0, 4, 1),       // r0 = r4 ^ r1
        word(8, 5, 0, 0),       // r5 = data[r0 & 1023]
        word(6, 6, 5, 1),       // r6 = r5 < r1
        word(7, 6, 0, 11),      // to 11 if r6
        word(0, 0, 0, 3),       // r0 = r0 + r3
        word(1, 0, 0, 5),       // r0 = r0 - r5
        word(0, 2, 2, 3),       // 11: r2 = r2 + r3
        word(7, 7, 0, 3),       // to 3
    ];
    Case::threads(n, 256)
        .u32(n)
        .u32(steps)
        .input(program)
        .input(words(1_024, 1))
        .output(vec![0u32; n as usize])
}

fn results(case: &Case) -> Vec<Array> {
    let (program, data) = (case.u32s(2), case.u32s(3));
    let result = |i: u32| {
        let (mut r, mut at) = ([i, 0, 0, 0, 0, 0, 0, 0], 0);
        for _ in 0..case.number(1) {
            let [b, a, target, operation] = program[at].to_le_bytes().map(usize::from);
            at += 1;
            if operation == 7 {
                at = if r[target] == 0 { at } else { b };
                continue;
            }
            r[target] = match operation {
                0 => r[a].wrapping_add(r[b]),
                1 => r[a].wrapping_sub(r[b]),
                2 => r[a].wrapping_mul(r[b]),
                3 => r[a] ^ r[b],
                4 => r[a] >> b,
                5 => (a << 8 | b) as u32,
                6 => u32::from(r[a] < r[b]),
                _ => data[r[a] as usize % 1_024],
            };
        }
        r[0] ^ r[1]
    };
    vec![(0..case.number(0) as u32).map(result).collect::<Vec<u32>>().into()]
}

fn sph_density(size: Size) -> Case {
    let (n, side, h) = (length(size, 500, 1 << 20), length(size, 5, 64), 0.0625f32);
    let all = reals(n as usize * 3, 1, 0.0, side as f32 * h * 0.999);
    let cell = |p: &[f32]| {
        let place = |x: f32| (x / h) as u32;
        (place(p[2]) * side + place(p[1])) * side + place(p[0])
    };
    let mut sorted: Vec<(u32, Point)> =
        all.chunks(3).map(|p| (cell(p), [p[0], p[1], p[2]])).collect();
    sorted.sort_by_key(|(cell, _)| *cell);
    let start = |end: u32| sorted.partition_point(|(cell, _)| *cell < end) as u32;
    let starts: Vec<u32> = (0..=side * side * side).map(start).collect();
    let particles: Vec<f32> = sorted.iter().flat_map(|(_, p)| [p[0], p[1], p[2], 0.5]).collect();
    Case::threads(n, 128)
        .u32(n)
        .i32(side as i32)
        .f32(h)
        .input(starts)
        .input(particles)
        .output(vec![0f32; n as usize])
        .output(vec![0u32; n as usize])
        .within(1e-4)
}

fn densities(case: &Case) -> Vec<Array> {
    let h = case.real(2);
    let particles: Vec<&[f32]> = case.f32s(4).chunks(4).collect();
    let around = |i: usize| {
        let others = (0..particles.len()).filter(move |j| *j != i).map(|j| particles[j]);
        let left = |other: &[f32]| h.mul_add(h, -square(particles[i], other));
        let near: Vec<[f32; 2]> =
            others.map(|other| [other[3], left(other)]).filter(|[_, left]| *left > 0.0).collect();
        let sum: f64 =
            near.iter().map(|[mass, left]| f64::from(*mass) * f64::from(*left).powi(3)).sum();
        ((sum * 1.5666815 / f64::from(h).powi(9)) as f32, near.len() as u32)
    };
    let (densities, counts): (Vec<f32>, Vec<u32>) = (0..particles.len()).map(around).unzip();
    vec![densities.into(), counts.into()]
}

fn asian_option(size: Size) -> Case {
    let n = length(size, 300, 1 << 18);
    Case::threads(n, 256)
        .u32(n)
        .u32(16)
        .u32(12_345)
        .f32(100.0)
        .f32(95.0)
        .f32(0.0003)
        .f32(0.02)
        .output(vec![0f32; n as usize])
        .within(1e-3)
}

fn philox(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let wide = |factor: u32, x: u32| {
        let product = u64::from(factor) * u64::from(x);
        ((product >> 32) as u32, product as u32)
    };
    for _ in 0..10 {
        let (first, second) = (wide(0xd251_1f53, c[0]), wide(0xcd9e_8d57, c[2]));
        c = [second.0 ^ c[1] ^ key[0], second.1, first.0 ^ c[3] ^ key[1], first.1];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    c
}

fn payoffs(case: &Case) -> Vec<Array> {
    let [n, rounds, seed] = [0, 1, 2].map(|at| case.number(at) as u32);
    let [spot, strike, drift, volatility] = [3, 4, 5, 6].map(|at| f64::from(case.real(at)));
    let unit = |word: u32| (f64::from(word >> 8) + 1.0) / f64::from(1 << 24);
    let normals = |words: &[u32]| {
        let (sin, cos) = (std::f64::consts::TAU * unit(words[1])).sin_cos();
        let radius = (-2.0 * unit(words[0]).ln()).sqrt();
        [radius * cos, radius * sin]
    };
    let payoff = |i: u32| {
        let (mut growth, mut sum) = (0.0, 0.0);
        for step in 0..rounds {
            let words = philox([i, step, 0, 0], [seed, 0x1234_5678]);
            for normal in words.chunks(2).flat_map(normals) {
                growth += drift + volatility * normal;
                sum += f64::exp(growth);
            }
        }
        (spot * sum / f64::from(4 * rounds) - strike).max(0.0) as f32
    };
    vec![(0..n).map(payoff).collect::<Vec<f32>>().into()]
}
