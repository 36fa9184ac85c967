//! Cholesky factorisation of a matrix in tiles.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, DeviceMemory, Kernel, LaunchConfig};

use super::graph::mix;
use super::{Case, Input, Nested, Place, Size, Version, Work, words};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "cholesky",
    what: "Cholesky factorisation in tiles of 64 × 64, a tail launch for each step",
    source: include_str!("../../nested/cholesky/cholesky.grid"),
    cuda: [
        include_str!("../../nested/cholesky/nested.cu"),
        include_str!("../../nested/cholesky/flat.cu"),
    ],
    headers: &[("tile.h", include_str!("../../nested/cholesky/tile.h"))],
    pending_launches: 32_768,
    cases,
    load,
    check,
};

/// `SIDE` of the program.
const SIDE: usize = 64;
/// Values of the product that are compared with the matrix.
const CHECKED: u64 = 20_000;
/// The greatest difference accepted, as a share of the values on the diagonal: some roundings of 2^-24 each.
const TOLERANCE: f64 = 4e-6;

/// The number of an input is that of tiles in a row, its array the tiles of the lower half.
fn cases(size: Size) -> Vec<Case> {
    let tiles = if size == Size::Small { 3 } else { 64 };
    let order = tiles * SIDE;
    let mut values = Vec::with_capacity(order * (order + SIDE) / 2);
    for row in 0..tiles {
        for column in 0..=row {
            for i in 0..SIDE * SIDE {
                let (y, x) = (row * SIDE + i / SIDE, column * SIDE + i % SIDE);
                values.push(value(order, y.max(x), y.min(x)).to_bits());
            }
        }
    }
    vec![Case {
        name: format!("{order} × {order}"),
        input: Input { numbers: vec![tiles as u64], arrays: vec![values] },
        launches: None,
        versions: &Version::ALL,
    }]
}

/// Twice the least that makes a random matrix positive definite, or somewhat more.
fn diagonal(order: usize) -> f64 {
    4.0 * (order as f64).sqrt()
}

/// The matrix: from -1 to 1 below the diagonal.
fn value(order: usize, row: usize, column: usize) -> f32 {
    let random = (mix((row * order + column) as u64) >> 40) as f32 / (1 << 23) as f32 - 1.0;
    if row == column { diagonal(order) as f32 + random } else { random }
}

struct Cholesky {
    place: Place,
    kernel: Kernel,
    tiles: u32,
    values: Buffer<u32>,
    matrix: DeviceMemory,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let values = input.array(0)?;
    Ok(Box::new(Cholesky {
        place: place.clone(),
        kernel: place.kernel("factorise")?,
        tiles: input.number(0)?,
        values: Buffer::from_slice(&place.device, values)?,
        matrix: DeviceMemory::alloc(&place.device, values.len() as u64 * 4)?,
    }))
}

impl Work for Cholesky {
    fn reset(&mut self) -> anyhow::Result<()> {
        let bytes: Vec<u8> = self.values.to_vec()?.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(self.matrix.copy_from_host(&bytes)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let arguments = [Arg::from(&mut self.matrix), Arg::from(self.tiles), Arg::from(0u32)];
        self.place.run(&self.kernel, &LaunchConfig::new(1, 1), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        let mut bytes = vec![0; usize::try_from(self.matrix.len())?];
        self.matrix.copy_to_host(&mut bytes)?;
        Ok(words(&bytes))
    }
}

/// Multiplies random rows of the factor.
fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let order = input.number(0)? as usize * SIDE;
    ensure!(result.len() == input.array(0)?.len(), "{} values", result.len());
    let at = |row: usize, column: usize| {
        let (tile_row, tile_column) = (row / SIDE, column / SIDE);
        let tile = tile_row * (tile_row + 1) / 2 + tile_column;
        f64::from(f32::from_bits(result[tile * SIDE * SIDE + row % SIDE * SIDE + column % SIDE]))
    };
    let mut worst = 0f64;
    for sample in 0..CHECKED {
        let one = mix(sample * 2) as usize % order;
        let other = if sample % 10 == 0 { one } else { mix(sample * 2 + 1) as usize % order };
        let (row, column) = (one.max(other), one.min(other));
        let product: f64 = (0..=column).map(|k| at(row, k) * at(column, k)).sum();
        let difference = (product - f64::from(value(order, row, column))).abs();
        // A value that is no number is the worst.
        ensure!(
            difference <= TOLERANCE * diagonal(order),
            "the product differs by {difference} at ({row}, {column})"
        );
        worst = worst.max(difference);
    }
    Ok(format!("{CHECKED} values of the product differ by {worst:.1e} at most"))
}
