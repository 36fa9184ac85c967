//! Kernels that compute with floats: transforms, normalisation, small matrices per thread.

use super::memory::length;
use super::{Array, Case, Plain, Size, plain, reals};

pub(super) const KERNELS: &[Plain] = &[
    plain!("softmax", "softmax of rows of 1,024", softmax, exponents),
    plain!("layer_norm", "normalisation of rows of 512", layer_norm, normalised),
    plain!("fft", "Fourier transforms of 1,024 points", fft, transformed),
    plain!("nearest", "distance to the nearest of 32 centres", nearest, distances),
    plain!("horner", "polynomials in double precision", horner, polynomials),
    plain!("complex", "polynomials of complex numbers", complex, complex_polynomials),
    plain!("newton", "cube roots in double precision", newton, cube_roots),
    plain!("trigonometry", "functions of libdevice", trigonometry, functions),
    plain!("tridiagonal", "systems with three diagonals, a thread each", tridiagonal, solutions),
    plain!("mandelbrot", "the Mandelbrot set", mandelbrot, counts),
    plain!("march", "distances along rays to spheres", march, depths),
    plain!("cholesky", "Cholesky factors of 6 × 6, a thread each", cholesky, factors),
];

fn softmax(size: Size) -> Case {
    let rows = length(size, 4, 1 << 15);
    let cells = rows as usize * 1_024;
    Case::new(rows, 256)
        .u32(1_024)
        .input(reals(cells, 1, -4.0, 4.0))
        .output(vec![0f32; cells])
        .within(1e-4)
}

fn exponents(case: &Case) -> Vec<Array> {
    let row = |row: &[f32]| {
        let powers: Vec<f64> = row.iter().map(|x| f64::from(*x).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(move |power| (power / sum) as f32)
    };
    vec![case.f32s(1).chunks(case.number(0)).flat_map(row).collect::<Vec<f32>>().into()]
}

fn layer_norm(size: Size) -> Case {
    let rows = length(size, 5, 1 << 16);
    let cells = rows as usize * 512;
    Case::threads(rows * 32, 256)
        .u32(rows)
        .input(reals(cells, 1, -1.0, 3.0))
        .input(reals(512, 2, 0.5, 1.5))
        .input(reals(512, 3, -1.0, 1.0))
        .output(vec![0f32; cells])
        .within(1e-4)
}

fn normalised(case: &Case) -> Vec<Array> {
    let (gain, bias) = (case.f32s(2), case.f32s(3));
    let row = |row: &[f32]| {
        let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        let mean = row.iter().sum::<f64>() / 512.0;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 512.0;
        let inverse = 1.0 / (variance + 1e-5).sqrt();
        let cell = |i: usize| (row[i] - mean) * inverse * f64::from(gain[i]) + f64::from(bias[i]);
        (0..512).map(|i| cell(i) as f32).collect::<Vec<f32>>()
    };
    vec![case.f32s(1).chunks(512).flat_map(row).collect::<Vec<f32>>().into()]
}

/// The `k`-th of the 1,024 roots of unity.
fn root(k: usize) -> [f64; 2] {
    let angle = -std::f64::consts::TAU * (k % 1_024) as f64 / 1_024.0;
    [angle.cos(), angle.sin()]
}

fn fft(size: Size) -> Case {
    let transforms = length(size, 2, 1 << 14);
    let floats = transforms as usize * 2_048;
    let roots: Vec<f32> = (0..512).flat_map(root).map(|x| x as f32).collect();
    Case::new(transforms, 512)
        .input(roots)
        .input(reals(floats, 1, -1.0, 1.0))
        .output(vec![0f32; floats])
        .within(1e-3)
}

fn transformed(case: &Case) -> Vec<Array> {
    let roots: Vec<[f64; 2]> = (0..1_024).map(root).collect();
    let transform = |points: &[f32]| {
        let term = |k: usize, i: usize| {
            let [x, y] = [points[2 * i], points[2 * i + 1]].map(f64::from);
            let [c, s] = roots[k * i % 1_024];
            [x * c - y * s, x * s + y * c]
        };
        let point = |k: usize| {
            let sum =
                (0..1_024).map(|i| term(k, i)).fold([0.0; 2], |[x, y], [a, b]| [x + a, y + b]);
            sum.map(|x| x as f32)
        };
        (0..1_024).flat_map(point).collect::<Vec<f32>>()
    };
    vec![case.f32s(1).chunks(2_048).flat_map(transform).collect::<Vec<f32>>().into()]
}

fn nearest(size: Size) -> Case {
    let n = length(size, 500, 1 << 23) as usize;
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .input(reals(n * 8, 1, -1.0, 1.0))
        .input(reals(32 * 8, 2, -1.0, 1.0))
        .output(vec![0f32; n])
        .within(1e-5)
}

fn distances(case: &Case) -> Vec<Array> {
    let (n, points, centres) = (case.number(0), case.f32s(1), case.f32s(2));
    let of = |i: usize| {
        let squares = centres.chunks(8).map(|centre| {
            let d = centre.iter().enumerate().map(|(axis, c)| f64::from(points[axis * n + i] - c));
            d.map(|d| d * d).sum::<f64>()
        });
        squares.fold(f64::INFINITY, f64::min) as f32
    };
    vec![(0..n).map(of).collect::<Vec<f32>>().into()]
}

fn horner(size: Size) -> Case {
    let n = length(size, 500, 1 << 22) as usize;
    let doubles =
        |n, seed| reals(n, seed, -1.0, 1.0).iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .u32(100)
        .input(doubles(101, 1))
        .input(doubles(n, 2))
        .output(vec![0f64; n])
        .within(1e-12)
}

fn polynomials(case: &Case) -> Vec<Array> {
    let value = |x: &f64| case.f64s(2).iter().fold(0.0, |sum, factor| sum * x + factor);
    vec![case.f64s(3).iter().map(value).collect::<Vec<f64>>().into()]
}

/// Whole blocks of 32 × 8 threads for a square.
fn square(side: u32) -> Case {
    Case::new((side.div_ceil(32), side.div_ceil(8)), (32, 8)).u32(side)
}

fn mandelbrot(size: Size) -> Case {
    let side = length(size, 50, 4_096);
    square(side).f32(3.0 / side as f32).output(vec![0u32; (side * side) as usize])
}

fn counts(case: &Case) -> Vec<Array> {
    let (side, step) = (case.number(0), case.real(1));
    let count = |at: usize| {
        let cx = ((at % side) as f32).mul_add(step, -2.0);
        let cy = ((at / side) as f32).mul_add(step, -1.5);
        let (mut x, mut y, mut count) = (0.0f32, 0.0f32, 0u32);
        while count < 256 && x.mul_add(x, y * y) <= 4.0 {
            (x, y) = (x.mul_add(x, (-y).mul_add(y, cx)), (x + x).mul_add(y, cy));
            count += 1;
        }
        count
    };
    vec![(0..side * side).map(count).collect::<Vec<u32>>().into()]
}

fn march(size: Size) -> Case {
    let side = length(size, 40, 2_048);
    let spheres: Vec<f32> = (0..12u32)
        .flat_map(|i| {
            let [x, y] = [i % 4, i / 4].map(|place| place as f32);
            [x - 1.5, y - 1.0, 3.0 + 0.3 * x + 0.2 * y, 0.3]
        })
        .collect();
    square(side).u32(12).input(spheres).output(vec![0f32; (side * side) as usize]).within(1e-3)
}

fn depths(case: &Case) -> Vec<Array> {
    let (side, spheres) = (case.number(0), case.f32s(2));
    let depth = |at: usize| {
        let [u, v] = [at % side, at / side].map(|place| place as f64 / side as f64 - 0.5);
        let inverse = 1.0 / (u * u + v * v + 1.0).sqrt();
        let ray = [u * inverse, v * inverse, inverse];
        let step = |t: f64| {
            let distance = |sphere: &[f32]| {
                let d = (0..3).map(|axis| ray[axis] * t - f64::from(sphere[axis]));
                d.map(|d| d * d).sum::<f64>().sqrt() - f64::from(sphere[3])
            };
            spheres.chunks(4).map(distance).fold(1.0, f64::min)
        };
        (0..32).fold(0.0, |t, _| t + step(t).max(f64::from(0.02f32))) as f32
    };
    vec![(0..side * side).map(depth).collect::<Vec<f32>>().into()]
}

/// The matrices are diagonally dominant. The upper halves of the results are not written.
fn cholesky(size: Size) -> Case {
    let n = length(size, 300, 1 << 20) as usize;
    let low = reals(n * 36, 1, -1.0, 1.0);
    let cell = |at: usize| {
        let (place, i) = (at / n, at % n);
        let (row, column) = (place / 6, place % 6);
        let diagonal = if row == column { 8.0 } else { 0.0 };
        diagonal + low[(row.min(column) * 6 + row.max(column)) * n + i]
    };
    Case::threads(n as u32, 128)
        .u32(n as u32)
        .input((0..n * 36).map(cell).collect::<Vec<f32>>())
        .output(vec![0f32; n * 36])
        .within(1e-5)
}

fn factors(case: &Case) -> Vec<Array> {
    let (n, from) = (case.number(0), case.f32s(1));
    let mut to = vec![0f32; n * 36];
    for i in 0..n {
        let mut l = [[0f64; 6]; 6];
        for row in 0..6 {
            for column in 0..=row {
                let below: f64 = (0..column).map(|k| l[row][k] * l[column][k]).sum();
                let rest = f64::from(from[(row * 6 + column) * n + i]) - below;
                l[row][column] = if row == column { rest.sqrt() } else { rest / l[column][column] };
                to[(row * 6 + column) * n + i] = l[row][column] as f32;
            }
        }
    }
    vec![to.into()]
}

fn complex(size: Size) -> Case {
    let n = length(size, 500, 1 << 22) as usize;
    Case::threads(n as u32, 256)
        .u32(n as u32)
        .u32(50)
        .input(reals(2 * 51, 1, -1.0, 1.0))
        .input(reals(2 * n, 2, -0.7, 0.7))
        .output(vec![0f32; 2 * n])
        .within(1e-5)
}

fn complex_polynomials(case: &Case) -> Vec<Array> {
    let value = |x: &[f32]| {
        let [a, b] = [x[0], x[1]].map(f64::from);
        let next = |[re, im]: [f64; 2], factor: &[f32]| {
            let [c, d] = [factor[0], factor[1]].map(f64::from);
            [re * a - im * b + c, re * b + im * a + d]
        };
        case.f32s(2).chunks(2).fold([0.0; 2], next).map(|part| part as f32)
    };
    vec![case.f32s(3).chunks(2).flat_map(value).collect::<Vec<f32>>().into()]
}

fn newton(size: Size) -> Case {
    let n = length(size, 500, 1 << 22) as usize;
    let x: Vec<f64> = reals(n, 1, 0.1, 10.0).into_iter().map(f64::from).collect();
    Case::threads(n as u32, 256).u32(n as u32).input(x).output(vec![0f64; n]).within(1e-14)
}

fn cube_roots(case: &Case) -> Vec<Array> {
    vec![case.f64s(1).iter().map(|x| x.cbrt()).collect::<Vec<f64>>().into()]
}

/// Most arguments are small; some need the reduction of large ones.
fn trigonometry(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 23) as usize;
    let mut x = reals(n, 1, -10.0, 10.0);
    x.iter_mut().step_by(1_000).for_each(|x| *x *= 1e5);
    Case::threads(n as u32, 256).u32(n as u32).input(x).output(vec![0f32; n]).within(1e-5)
}

fn functions(case: &Case) -> Vec<Array> {
    let value = |x: &f32| {
        let x = f64::from(*x);
        (x.sin() * (2.0 * x).cos() + x.atan2(3.0) + (x.abs() + 1.0).powf(0.3)) as f32
    };
    vec![case.f32s(1).iter().map(value).collect::<Vec<f32>>().into()]
}

/// The diagonals are dominant.
fn tridiagonal(size: Size) -> Case {
    let (n, rows) = (length(size, 200, 1 << 18), length(size, 10, 64));
    let cells = (n * rows) as usize;
    Case::threads(n, 128)
        .u32(n)
        .u32(rows)
        .input(reals(cells, 1, -1.0, 1.0))
        .input(reals(cells, 2, 3.0, 4.0))
        .input(reals(cells, 3, -1.0, 1.0))
        .input(reals(cells, 4, -1.0, 1.0))
        .scratch(vec![0f32; cells])
        .output(vec![0f32; cells])
        .within(1e-5)
}

/// By elimination from the last row on, where the kernel starts with the first.
fn solutions(case: &Case) -> Vec<Array> {
    let (n, rows) = (case.number(0), case.number(1));
    let mut x = vec![0f32; n * rows];
    for i in 0..n {
        let cell = |array: usize, row: usize| f64::from(case.f32s(array)[row * n + i]);
        // Row `row` after elimination: x[row] = known[row] - lower[row] * x[row - 1].
        let (mut lower, mut known) = (vec![0.0; rows + 1], vec![0.0; rows + 1]);
        for row in (0..rows).rev() {
            let above = if row + 1 < rows { cell(4, row) } else { 0.0 };
            let pivot = cell(3, row) - above * lower[row + 1];
            lower[row] = cell(2, row) / pivot;
            known[row] = (cell(5, row) - above * known[row + 1]) / pivot;
        }
        let mut before = 0.0;
        for row in 0..rows {
            let value = known[row] - if row > 0 { lower[row] * before } else { 0.0 };
            before = value;
            x[row * n + i] = value as f32;
        }
    }
    vec![x.into()]
}
