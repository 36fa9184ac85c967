//! Kernels that move data: their time is mostly that of the memory.

use super::{Array, Case, Plain, Size, mix, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("saxpy", "y = a x + y, an element per thread", |size| saxpy(size, None), axpy),
    plain!(
        "saxpy_strided",
        "y = a x + y, threads that stride over the elements",
        |size| saxpy(size, Some(2_112)),
        axpy
    ),
    plain!("transpose", "transpose through shared memory", transpose, transposed),
    plain!("reduction", "sums of many floats", reduction, sums),
    plain!("histogram", "histogram of bytes by shared atomics", histogram, counts),
    plain!("scale4", "vectors of four floats times a number", scale4, scaled),
    plain!("half_axpy", "y = a x + y in half precision", half_axpy, half_sums),
    plain!("gather", "elements at random indices", gather, gathered),
    plain!("scatter_add", "additions to random elements", scatter_add, scattered),
    plain!("tree_sum", "sums of blocks by a tree in shared memory", tree_sum, block_sums),
    plain!("scan", "prefix sums of chunks of 1,024", scan, prefix_sums),
    plain!("particles", "an array of structs", particles, moved),
    plain!("gray", "colours of four bytes to grey bytes", gray, greys),
    plain!("quantize", "floats to integers", quantize, quantized),
    plain!("brain_scale", "bf16 times a number", brain_scale, brain_scaled),
    plain!("substitute", "bytes replaced by a table in shared memory", substitute, substituted),
    plain!("spmv", "sparse matrix times vector, compressed rows", spmv, products),
];

/// The length of an array: small, or large enough to fill a GPU.
pub(super) fn length(size: Size, small: u32, full: u32) -> u32 {
    match size {
        Size::Small => small,
        Size::Full => full,
    }
}

fn saxpy(size: Size, blocks: Option<u32>) -> Case {
    let n = length(size, 1_000, 1 << 25);
    let blocks = blocks.map_or(n.div_ceil(256), |blocks| length(size, 2, blocks));
    Case::new(blocks, 256)
        .u32(n)
        .f32(0.75)
        .input(reals(n as usize, 1, -1.0, 1.0))
        .output(reals(n as usize, 2, -1.0, 1.0))
        .within(1e-6)
}

fn axpy(case: &Case) -> Vec<Array> {
    let a = case.real(1);
    let pairs = case.f32s(2).iter().zip(case.f32s(3));
    vec![pairs.map(|(x, y)| a * x + y).collect::<Vec<f32>>().into()]
}

fn transpose(size: Size) -> Case {
    let n = length(size, 64, 8_192);
    let cells = (n * n) as usize;
    Case::new((n / 32, n / 32), (32, 8))
        .u32(n)
        .input(reals(cells, 1, -1.0, 1.0))
        .output(vec![0f32; cells])
}

fn transposed(case: &Case) -> Vec<Array> {
    let (n, from) = (case.number(0), case.f32s(1));
    vec![(0..n * n).map(|i| from[i % n * n + i / n]).collect::<Vec<f32>>().into()]
}

fn reduction(size: Size) -> Case {
    let (n, blocks) = (length(size, 5_000, 1 << 26), length(size, 3, 2_112));
    Case::new(blocks, 256)
        .u32(n)
        .input(reals(n as usize, 1, 0.0, 1.0))
        .output(vec![0f32; blocks as usize])
        .within(1e-5)
}

fn sums(case: &Case) -> Vec<Array> {
    let from = case.f32s(1);
    let blocks = case.f32s(2).len();
    let mut sums = vec![0.0; blocks];
    for (i, value) in from.iter().enumerate() {
        sums[i / 256 % blocks] += f64::from(*value);
    }
    vec![sums.iter().map(|sum| *sum as f32).collect::<Vec<f32>>().into()]
}

fn histogram(size: Size) -> Case {
    let (n, blocks) = (length(size, 2_000, 1 << 25), length(size, 3, 1_056));
    Case::new(blocks, 256).u32(n).input(words(n as usize, 1)).output(vec![0u32; 256])
}

fn counts(case: &Case) -> Vec<Array> {
    let mut counts = vec![0u32; 256];
    case.u32s(1)
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .for_each(|byte| counts[usize::from(byte)] += 1);
    vec![counts.into()]
}

fn scale4(size: Size) -> Case {
    let n = length(size, 500, 1 << 24);
    Case::threads(n, 256)
        .u32(n)
        .f32(0.75)
        .input(reals(n as usize * 4, 1, -1.0, 1.0))
        .output(vec![0f32; n as usize * 4])
}

fn scaled(case: &Case) -> Vec<Array> {
    let a = case.real(1);
    vec![case.f32s(2).iter().map(|x| a * x).collect::<Vec<f32>>().into()]
}

/// The bits of a small integer in half precision.
fn half(value: u32) -> u16 {
    if value == 0 {
        return 0;
    }
    let exponent = value.ilog2();
    ((exponent + 15) << 10 | (value << (10 - exponent)) & 0x3ff) as u16
}

/// Small integers, so that no result is rounded.
fn half_axpy(size: Size) -> Case {
    let n = length(size, 500, 1 << 25);
    let halves =
        |seed| words(n as usize * 2, seed).iter().map(|x| half(x % 256)).collect::<Vec<_>>();
    Case::threads(n, 256).u32(n).f32(2.0).input(halves(1)).output(halves(2))
}

fn half_sums(case: &Case) -> Vec<Array> {
    let n = case.number(0) * 2;
    let pairs = words(n, 1).into_iter().zip(words(n, 2));
    vec![pairs.map(|(x, y)| half(2 * (x % 256) + y % 256)).collect::<Vec<u16>>().into()]
}

fn gather(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 24);
    let indices: Vec<u32> = words(n as usize, 1).iter().map(|word| word % n).collect();
    Case::threads(n, 256)
        .u32(n)
        .input(indices)
        .input(reals(n as usize, 2, -1.0, 1.0))
        .output(vec![0f32; n as usize])
}

fn gathered(case: &Case) -> Vec<Array> {
    let from = case.f32s(2);
    vec![case.u32s(1).iter().map(|at| from[*at as usize]).collect::<Vec<f32>>().into()]
}

fn scatter_add(size: Size) -> Case {
    let (n, sums) = (length(size, 1_000, 1 << 24), length(size, 64, 1 << 20));
    Case::threads(n, 256)
        .u32(n)
        .u32(sums - 1)
        .input(words(n as usize, 1))
        .output(vec![0u32; sums as usize])
}

fn scattered(case: &Case) -> Vec<Array> {
    let mut sums = case.u32s(3).to_vec();
    for (i, index) in case.u32s(2).iter().enumerate() {
        let sum = &mut sums[*index as usize & case.number(1)];
        *sum = sum.wrapping_add(i as u32);
    }
    vec![sums.into()]
}

fn tree_sum(size: Size) -> Case {
    let blocks = length(size, 3, 1 << 16);
    Case::new(blocks, 256)
        .input(reals(blocks as usize * 1_024, 1, 0.0, 1.0))
        .output(vec![0f32; blocks as usize])
        .within(1e-5)
}

fn block_sums(case: &Case) -> Vec<Array> {
    let sum = |chunk: &[f32]| chunk.iter().map(|x| f64::from(*x)).sum::<f64>() as f32;
    vec![case.f32s(0).chunks(1_024).map(sum).collect::<Vec<f32>>().into()]
}

fn scan(size: Size) -> Case {
    let n = length(size, 3 * 1_024, 1 << 26);
    Case::new(n / 1_024, 256).input(words(n as usize, 1)).output(vec![0u32; n as usize])
}

fn prefix_sums(case: &Case) -> Vec<Array> {
    let chunk = |chunk: &[u32]| {
        let next = |sum: &mut u32, value: &u32| {
            *sum = sum.wrapping_add(*value);
            Some(*sum)
        };
        chunk.iter().scan(0, next).collect::<Vec<u32>>()
    };
    vec![case.u32s(0).chunks(1_024).flat_map(chunk).collect::<Vec<u32>>().into()]
}

/// A particle is its position, its velocity, its mass and its bounces.
fn particles(size: Size) -> Case {
    let n = length(size, 500, 1 << 23) as usize;
    let mut all = reals(n * 8, 1, -2.0, 2.0);
    all.iter_mut().skip(7).step_by(8).for_each(|bounces| *bounces = 0.0);
    Case::threads(n as u32, 256).u32(n as u32).f32(0.125).output(all)
}

fn moved(case: &Case) -> Vec<Array> {
    let dt = case.real(1);
    let mut all = case.f32s(2).to_vec();
    for p in all.chunks_exact_mut(8) {
        p[4] = (-9.81f32).mul_add(dt, p[4]);
        for axis in 0..3 {
            p[axis] = p[3 + axis].mul_add(dt, p[axis]);
            if p[axis].abs() > 2.0 {
                p[3 + axis] *= if axis == 1 { -0.9 } else { -1.0 };
                p[7] += 1.0;
            }
        }
    }
    vec![all.into()]
}

fn gray(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 26);
    let pixels: Vec<u8> = words(n as usize, 1).iter().flat_map(|word| word.to_le_bytes()).collect();
    Case::threads(n, 256).u32(n).input(pixels).output(vec![0u8; n as usize])
}

fn greys(case: &Case) -> Vec<Array> {
    let grey = |p: &[u8]| {
        let [r, g, b] = [p[0], p[1], p[2]].map(u32::from);
        ((77 * r + 150 * g + 29 * b) >> 8) as u8
    };
    vec![case.u8s(1).chunks_exact(4).map(grey).collect::<Vec<u8>>().into()]
}

fn quantize(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 24) as usize;
    let doubles: Vec<f64> = reals(n, 2, -1.0, 1.0).iter().map(|x| f64::from(*x) * 1e15).collect();
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .f32(1e6)
        .input(reals(n, 1, -1.0, 1.0))
        .input(doubles)
        .output(vec![0i32; n])
        .output(vec![0u32; n])
        .output(vec![0i64; n])
}

fn quantized(case: &Case) -> Vec<Array> {
    let scaled: Vec<f32> = case.f32s(2).iter().map(|x| x * case.real(1)).collect();
    vec![
        scaled.iter().map(|x| *x as i32).collect::<Vec<i32>>().into(),
        scaled.iter().map(|x| x.abs() as u32).collect::<Vec<u32>>().into(),
        case.f64s(3).iter().map(|x| *x as i64).collect::<Vec<i64>>().into(),
    ]
}

/// Numbers with so few digits that no result is rounded.
fn brain_scale(size: Size) -> Case {
    let n = length(size, 500, 1 << 25);
    let bits = |word: &u32| (((word % 256) as f32).to_bits() >> 16) as u16;
    let x: Vec<u16> = words(n as usize * 2, 1).iter().map(bits).collect();
    Case::threads(n, 256).u32(n).f32(0.5).input(x).output(vec![0u16; n as usize * 2])
}

fn brain_scaled(case: &Case) -> Vec<Array> {
    let scaled = |word: &u32| (((word % 256) as f32 * 0.5).to_bits() >> 16) as u16;
    vec![words(case.number(0) * 2, 1).iter().map(scaled).collect::<Vec<u16>>().into()]
}

fn substitute(size: Size) -> Case {
    let (n, blocks) = (length(size, 1_000, 1 << 25), length(size, 2, 1_056));
    let table: Vec<u8> = words(256, 1).iter().map(|word| *word as u8).collect();
    Case::new(blocks, 256)
        .u32(n)
        .input(table)
        .input(words(n as usize, 2))
        .output(vec![0u32; n as usize])
}

fn substituted(case: &Case) -> Vec<Array> {
    let table = case.u8s(1);
    let word =
        |word: &u32| u32::from_le_bytes(word.to_le_bytes().map(|byte| table[usize::from(byte)]));
    vec![case.u32s(2).iter().map(word).collect::<Vec<u32>>().into()]
}

fn spmv(size: Size) -> Case {
    let rows = length(size, 100, 1 << 19);
    let mut offsets = vec![0];
    for row in 0..rows {
        // From 8 to 71 in a row, 40 on average.
        offsets.push(offsets[row as usize] + 8 + mix(row) % 64);
    }
    let entries = offsets[rows as usize] as usize;
    let columns: Vec<u32> = words(entries, 1).iter().map(|word| word % rows).collect();
    Case::threads(rows * 32, 256)
        .u32(rows)
        .input(offsets)
        .input(columns)
        .input(reals(entries, 2, -1.0, 1.0))
        .input(reals(rows as usize, 3, -1.0, 1.0))
        .output(vec![0f32; rows as usize])
        .within(1e-5)
}

fn products(case: &Case) -> Vec<Array> {
    let (offsets, columns, values, x) = (case.u32s(1), case.u32s(2), case.f32s(3), case.f32s(4));
    let row = |ends: &[u32]| {
        let entries = ends[0] as usize..ends[1] as usize;
        entries.map(|i| f64::from(values[i] * x[columns[i] as usize])).sum::<f64>() as f32
    };
    vec![offsets.windows(2).map(row).collect::<Vec<f32>>().into()]
}
