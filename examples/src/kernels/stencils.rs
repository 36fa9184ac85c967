//! Kernels whose threads read the neighbours of a point.

use super::memory::length;
use super::{Array, Case, Plain, Size, mix, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!(
        "stencil",
        "7-point stencil, threads that walk along z",
        |size| volume(size, false),
        seven_points
    ),
    plain!(
        "stencil_points",
        "7-point stencil, a point per thread",
        |size| volume(size, true),
        seven_points
    ),
    plain!("heat", "heat equation in double precision", heat, warmer),
    plain!("convolution", "convolution with 5 × 5 weights", convolution, convolved),
    plain!("lattice", "lattice-Boltzmann fluid with nine directions", lattice, collided),
    plain!("rotate_image", "an image turned, by interpolation", rotate_image, turned),
    plain!("sobel", "edges of an image of bytes", sobel, edges),
    plain!("life", "Conway's Game of Life, a byte per cell", life, generation),
    plain!("floyd", "a step of Floyd and Warshall's paths", floyd, shortest),
];

fn volume(size: Size, point_per_thread: bool) -> Case {
    let (nx, ny, nz) = (length(size, 40, 512), length(size, 20, 512), length(size, 10, 256));
    let cells = (nx * ny * nz) as usize;
    let planes = if point_per_thread { nz } else { 1 };
    Case::new((nx.div_ceil(32), ny.div_ceil(8), planes), (32, 8))
        .u32(nx)
        .u32(ny)
        .u32(nz)
        .input(reals(cells, 1, -1.0, 1.0))
        .output(vec![0f32; cells])
        .within(1e-5)
}

fn seven_points(case: &Case) -> Vec<Array> {
    let (nx, ny, nz) = (case.number(0), case.number(1), case.number(2));
    let from = case.f32s(3);
    let mut to = case.f32s(4).to_vec();
    for z in 1..nz - 1 {
        for y in 1..ny - 1 {
            for x in 1..nx - 1 {
                let at = (z * ny + y) * nx + x;
                let around = from[at - 1]
                    + from[at + 1]
                    + from[at - nx]
                    + from[at + nx]
                    + from[at - nx * ny]
                    + from[at + nx * ny];
                to[at] = 0.4 * from[at] + 0.1 * around;
            }
        }
    }
    vec![to.into()]
}

/// Whole blocks of 32 × 8 threads for an image.
fn image(width: u32, height: u32) -> Case {
    Case::new((width.div_ceil(32), height.div_ceil(8)), (32, 8)).u32(width).u32(height)
}

fn heat(size: Size) -> Case {
    let (width, height) = (length(size, 70, 4_096), length(size, 50, 4_096));
    let cells = (width * height) as usize;
    let from: Vec<f64> = reals(cells, 1, -1.0, 1.0).iter().map(|x| f64::from(*x)).collect();
    Case::new((width.div_ceil(32), height.div_ceil(32)), (32, 8))
        .u32(width)
        .u32(height)
        .input(from)
        .output(vec![0f64; cells])
        .within(1e-13)
}

fn warmer(case: &Case) -> Vec<Array> {
    let (width, height, from) = (case.number(0), case.number(1), case.f64s(2));
    let mut to = case.f64s(3).to_vec();
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let at = y * width + x;
            let around = from[at - 1] + from[at + 1] + from[at - width] + from[at + width];
            to[at] = from[at] + 0.2 * (around - 4.0 * from[at]);
        }
    }
    vec![to.into()]
}

fn convolution(size: Size) -> Case {
    let (width, height) = (length(size, 70, 4_096), length(size, 30, 4_096));
    let cells = (width * height) as usize;
    image(width, height)
        .input(reals(25, 1, -1.0, 1.0))
        .input(reals(cells, 2, -1.0, 1.0))
        .output(vec![0f32; cells])
        .within(1e-5)
}

fn convolved(case: &Case) -> Vec<Array> {
    let (width, height) = (case.number(0), case.number(1));
    let (weights, from) = (case.f32s(2), case.f32s(3));
    let mut to = case.f32s(4).to_vec();
    for y in 0..height - 4 {
        for x in 0..width - 4 {
            let term = |k: usize| f64::from(weights[k] * from[(y + k / 5) * width + x + k % 5]);
            to[y * width + x] = (0..25).map(term).sum::<f64>() as f32;
        }
    }
    vec![to.into()]
}

fn sobel(size: Size) -> Case {
    let (width, height) = (length(size, 70, 8_192), length(size, 30, 8_192));
    let cells = (width * height) as usize;
    let from: Vec<u8> = words(cells, 1).iter().map(|word| (word % 100) as u8).collect();
    image(width, height).input(from).output(vec![0u8; cells])
}

fn edges(case: &Case) -> Vec<Array> {
    let (width, height, from) = (case.number(0), case.number(1), case.u8s(2));
    let mut to = case.u8s(3).to_vec();
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let pixel = |i: usize, j: usize| i32::from(from[(y + j - 1) * width + x + i - 1]);
            let weighted = |get: &dyn Fn(usize) -> i32| get(0) + 2 * get(1) + get(2);
            let across = weighted(&|j| pixel(2, j)) - weighted(&|j| pixel(0, j));
            let down = weighted(&|i| pixel(i, 2)) - weighted(&|i| pixel(i, 0));
            to[y * width + x] = (across.abs() + down.abs()).min(255) as u8;
        }
    }
    vec![to.into()]
}

fn life(size: Size) -> Case {
    let (width, height) = (length(size, 70, 8_192), length(size, 30, 8_192));
    let cells = (width * height) as usize;
    let from: Vec<u8> = words(cells, 1).iter().map(|word| u8::from(word % 3 == 0)).collect();
    image(width, height).input(from).output(vec![0u8; cells])
}

fn generation(case: &Case) -> Vec<Array> {
    let (width, height, from) = (case.number(0), case.number(1), case.u8s(2));
    let mut to = case.u8s(3).to_vec();
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let alive = |k: usize| from[(y + k / 3 - 1) * width + x + k % 3 - 1];
            let neighbours: u8 = (0..9).filter(|k| *k != 4).map(alive).sum();
            to[y * width + x] = u8::from(neighbours == 3 || neighbours == 2 && alive(4) == 1);
        }
    }
    vec![to.into()]
}

/// The way from a vertex to itself has no length, so that row and column `k` do not change.
fn floyd(size: Size) -> Case {
    let (n, k) = (length(size, 70, 8_192), length(size, 17, 4_321));
    let length = |at: u32| if at / n == at % n { 0 } else { 1 + mix(at) % 1_000 };
    let distances: Vec<u32> = (0..n * n).map(length).collect();
    Case::new((n.div_ceil(32), n.div_ceil(8)), (32, 8)).u32(n).u32(k).output(distances)
}

fn shortest(case: &Case) -> Vec<Array> {
    let (n, k, from) = (case.number(0), case.number(1), case.u32s(2));
    let shorter = |at: usize| from[at].min(from[at / n * n + k] + from[k * n + at % n]);
    vec![(0..n * n).map(shorter).collect::<Vec<u32>>().into()]
}

fn lattice(size: Size) -> Case {
    let (width, height) = (length(size, 40, 2_048), length(size, 20, 2_048));
    let cells = (width * height) as usize * 9;
    image(width, height).input(reals(cells, 1, 0.05, 0.15)).output(vec![0f32; cells]).within(1e-5)
}

fn collided(case: &Case) -> Vec<Array> {
    const DIRECTIONS: [(i64, i64); 9] =
        [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)];
    let (width, height, from) = (case.number(0), case.number(1), case.f32s(2));
    let n = width * height;
    let mut to = vec![0f32; n * 9];
    for at in 0..n {
        let (x, y) = ((at % width) as i64, (at / width) as i64);
        let source = |(dx, dy): (i64, i64)| {
            let column = (x - dx).rem_euclid(width as i64) as usize;
            (y - dy).rem_euclid(height as i64) as usize * width + column
        };
        let f: Vec<f64> = DIRECTIONS
            .iter()
            .enumerate()
            .map(|(k, direction)| f64::from(from[k * n + source(*direction)]))
            .collect();
        let density: f64 = f.iter().sum();
        let flow = |part: fn((i64, i64)) -> i64| {
            let parts = DIRECTIONS.iter().zip(&f).map(|(direction, f)| part(*direction) as f64 * f);
            parts.sum::<f64>() / density
        };
        let (u, v) = (flow(|(dx, _)| dx), flow(|(_, dy)| dy));
        for (k, (dx, dy)) in DIRECTIONS.into_iter().enumerate() {
            let weight = [4.0 / 9.0, 1.0 / 9.0, 1.0 / 36.0][(dx * dx + dy * dy) as usize];
            let along = dx as f64 * u + dy as f64 * v;
            let square = 1.5 * (u * u + v * v);
            let balance = weight * density * (1.0 + 3.0 * along + 4.5 * along * along - square);
            to[k * n + at] = (f[k] + 0.6 * (balance - f[k])) as f32;
        }
    }
    vec![to.into()]
}

fn rotate_image(size: Size) -> Case {
    let side = length(size, 50, 4_096);
    let cells = (side * side) as usize;
    let (sine, cosine) = 0.3f32.sin_cos();
    Case::new((side.div_ceil(32), side.div_ceil(8)), (32, 8))
        .u32(side)
        .f32(cosine)
        .f32(sine)
        .input(reals(cells, 1, 0.0, 1.0))
        .output(vec![0f32; cells])
        .within(1e-5)
}

fn turned(case: &Case) -> Vec<Array> {
    let (side, cosine, sine, from) = (case.number(0), case.real(1), case.real(2), case.f32s(3));
    let (half, most) = (side as f32 * 0.5, (side - 2) as f32);
    let pixel = |at: usize| {
        let (dx, dy) = ((at % side) as f32 - half, (at / side) as f32 - half);
        let x = cosine.mul_add(dx, (-sine).mul_add(dy, half)).clamp(0.0, most);
        let y = sine.mul_add(dx, cosine.mul_add(dy, half)).clamp(0.0, most);
        let (u, v) = (x - x.floor(), y - y.floor());
        let corner = |i: usize, j: usize| from[(y as usize + j) * side + x as usize + i];
        let across = |j: usize| corner(0, j) * (1.0 - u) + corner(1, j) * u;
        across(0) * (1.0 - v) + across(1) * v
    };
    vec![(0..side * side).map(pixel).collect::<Vec<f32>>().into()]
}
