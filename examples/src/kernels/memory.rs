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
