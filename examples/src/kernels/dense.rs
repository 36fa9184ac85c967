//! Kernels that compute with floats: dense matrices, bodies, prices.

use super::memory::length;
use super::{Array, Case, Plain, Size, plain, reals};

pub(super) const KERNELS: &[Plain] = &[
    plain!("sgemm", "matrix product, 8 × 8 elements per thread", sgemm, product),
    plain!("matmul", "matrix product through tiles of 32 × 32", matmul, product),
    plain!("dgemm", "matrix product in double precision, tiles of 16 × 16", dgemm, wide_product),
    plain!("nbody", "bodies that attract each other", nbody, accelerations),
    plain!("black_scholes", "prices of options", black_scholes, prices),
];

fn matrices(n: u32, case: Case) -> Case {
    let cells = (n * n) as usize;
    case.u32(n)
        .input(reals(cells, 1, -1.0, 1.0))
        .input(reals(cells, 2, -1.0, 1.0))
        .output(vec![0f32; cells])
        .within(1e-4)
}

fn sgemm(size: Size) -> Case {
    let n = length(size, 128, 4_096);
    matrices(n, Case::new((n / 128, n / 128), 256))
}

fn matmul(size: Size) -> Case {
    let n = length(size, 64, 2_048);
    matrices(n, Case::new((n / 32, n / 32), (32, 32)))
}

fn product(case: &Case) -> Vec<Array> {
    let (n, a, b) = (case.number(0), case.f32s(1), case.f32s(2));
    let cell = |at: usize| {
        let terms = (0..n).map(|k| f64::from(a[at / n * n + k]) * f64::from(b[k * n + at % n]));
        terms.sum::<f64>() as f32
    };
    vec![(0..n * n).map(cell).collect::<Vec<f32>>().into()]
}

fn dgemm(size: Size) -> Case {
    let n = length(size, 48, 2_048);
    let doubles = |seed| {
        let floats = reals((n * n) as usize, seed, -1.0, 1.0);
        floats.into_iter().map(f64::from).collect::<Vec<f64>>()
    };
    Case::new((n / 16, n / 16), (16, 16))
        .u32(n)
        .input(doubles(1))
        .input(doubles(2))
        .output(vec![0f64; (n * n) as usize])
        .within(1e-12)
}

fn wide_product(case: &Case) -> Vec<Array> {
    let (n, a, b) = (case.number(0), case.f64s(1), case.f64s(2));
    let cell = |at: usize| (0..n).map(|k| a[at / n * n + k] * b[k * n + at % n]).sum();
    vec![(0..n * n).map(cell).collect::<Vec<f64>>().into()]
}

fn nbody(size: Size) -> Case {
    let n = length(size, 512, 1 << 15);
    Case::threads(n, 256)
        .u32(n)
        .input(reals(n as usize * 4, 1, -1.0, 1.0))
        .output(vec![0f32; n as usize * 3])
        .within(1e-3)
}

fn accelerations(case: &Case) -> Vec<Array> {
    let bodies: Vec<&[f32]> = case.f32s(1).chunks_exact(4).collect();
    let of = |own: &&[f32]| {
        let mut sum = [0.0f64; 3];
        for other in &bodies {
            let d = [0, 1, 2].map(|axis| f64::from(other[axis] - own[axis]));
            let inverse = 1.0 / (d.iter().map(|d| d * d).sum::<f64>() + 0.01).sqrt();
            let strength = f64::from(other[3]) * inverse.powi(3);
            (0..3).for_each(|axis| sum[axis] += d[axis] * strength);
        }
        sum.map(|sum| sum as f32)
    };
    vec![bodies.iter().flat_map(of).collect::<Vec<f32>>().into()]
}

fn black_scholes(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 23) as usize;
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .f32(0.02)
        .f32(0.3)
        .input(reals(n, 1, 5.0, 30.0))
        .input(reals(n, 2, 1.0, 100.0))
        .input(reals(n, 3, 0.25, 10.0))
        .output(vec![0f32; n])
        .output(vec![0f32; n])
        .within(1e-4)
}

fn prices(case: &Case) -> Vec<Array> {
    let (rate, volatility) = (f64::from(case.real(1)), f64::from(case.real(2)));
    let normal = |d: f64| {
        let k = 1.0 / (1.0 + 0.2316419 * d.abs());
        let factors = [1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153];
        let poly = factors.iter().fold(0.0, |sum, factor| (sum + factor) * k);
        let tail = 0.39894228 * (-0.5 * d * d).exp() * poly;
        if d > 0.0 { 1.0 - tail } else { tail }
    };
    let (mut calls, mut puts) = (Vec::new(), Vec::new());
    for ((s, x), t) in case.f32s(3).iter().zip(case.f32s(4)).zip(case.f32s(5)) {
        let [s, x, t] = [s, x, t].map(|value| f64::from(*value));
        let d1 =
            ((s / x).ln() + (rate + 0.5 * volatility * volatility) * t) / (volatility * t.sqrt());
        let (n1, n2) = (normal(d1), normal(d1 - volatility * t.sqrt()));
        let discounted = x * (-rate * t).exp();
        calls.push((s * n1 - discounted * n2) as f32);
        puts.push((discounted * (1.0 - n2) - s * (1.0 - n1)) as f32);
    }
    vec![calls.into(), puts.into()]
}
