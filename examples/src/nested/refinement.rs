//! Adaptive refinement.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::{Case, Input, Nested, Place, Size, Version, Work, in_parallel};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "refinement",
    what: "the integral of a function with a sharp ridge, by adaptive refinement",
    source: include_str!("../../nested/refinement/refinement.grid"),
    cuda: [
        include_str!("../../nested/refinement/nested.cu"),
        include_str!("../../nested/refinement/flat.cu"),
    ],
    headers: &[("cell.h", include_str!("../../nested/refinement/cell.h"))],
    pending_launches: 524_288,
    cases,
    load,
    check,
};

/// `SLOTS` and `STRIDE` of the program.
const SLOTS: usize = 1024;
const STRIDE: usize = 4;

/// The numbers of an input: cells across the square at first and at most, tolerance and sharpness as bits of floats.
fn cases(size: Size) -> Vec<Case> {
    let (across, deepest, tolerance): (u64, u64, f32) =
        if size == Size::Small { (4, 256, 2.0) } else { (16, 16_384, 0.05) };
    let bits = |value: f32| u64::from(value.to_bits());
    vec![Case {
        name: format!("cells of 1/{across} to 1/{deepest}"),
        input: Input {
            numbers: vec![across, deepest, bits(tolerance), bits(1e-4)],
            arrays: vec![],
        },
        launches: None,
        versions: &Version::ALL,
    }]
}

#[derive(Clone, Copy)]
struct Cell {
    x: u32,
    y: u32,
    side: u32,
}

/// `Problem` of the program.
#[derive(Clone, Copy)]
struct Problem {
    unit: f32,
    tolerance: f32,
    sharpness: f32,
}

impl Problem {
    fn of(input: &Input) -> anyhow::Result<Problem> {
        Ok(Problem {
            unit: 1.0 / input.number(1)? as f32,
            tolerance: f32::from_bits(input.number(2)?),
            sharpness: f32::from_bits(input.number(3)?),
        })
    }

    fn value(&self, x: f32, y: f32) -> f32 {
        let d = x.mul_add(x, y * y) - 0.5;
        1.0 / d.mul_add(d, self.sharpness)
    }

    /// Refines a cell with the program's roundings; adds the integral and the number of cells.
    fn refine(&self, cell: Cell, totals: &mut [u64; 2]) {
        let side = cell.side as f32 * self.unit;
        let samples: [f32; 32] = std::array::from_fn(|lane| {
            let x = side.mul_add(((lane % 8) as f32 + 0.5) * 0.125, cell.x as f32 * self.unit);
            let y = side.mul_add(((lane / 8) as f32 + 0.5) * 0.25, cell.y as f32 * self.unit);
            self.value(x, y)
        });
        let mut sums = samples;
        for step in [16, 8, 4, 2, 1] {
            sums = std::array::from_fn(|lane| sums[lane] + sums[lane ^ step]);
        }
        let least = samples.into_iter().fold(f32::INFINITY, f32::min);
        let greatest = samples.into_iter().fold(0.0, f32::max);
        if cell.side > 1 && (greatest - least) * side > self.tolerance {
            let side = cell.side / 2;
            for quarter in 0..4 {
                let (x, y) = (cell.x + quarter % 2 * side, cell.y + quarter / 2 * side);
                self.refine(Cell { x, y, side }, totals);
            }
        } else {
            totals[0] += (sums[0] * side * side * 134_217_728.0) as u64;
            totals[1] += 1;
        }
    }
}

struct Refinement {
    place: Place,
    kernel: Kernel,
    problem: Problem,
    across: u32,
    side: u32,
    totals: Buffer<u64>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    Ok(Box::new(Refinement {
        place: place.clone(),
        kernel: place.kernel("refine")?,
        problem: Problem::of(input)?,
        across: input.number(0)?,
        side: input.number(1)? / input.number(0)?,
        totals: Buffer::alloc(&place.device, SLOTS * STRIDE)?,
    }))
}

impl Work for Refinement {
    fn reset(&mut self) -> anyhow::Result<()> {
        Ok(self.totals.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let Problem { unit, tolerance, sharpness } = self.problem;
        let problem = [unit, tolerance, sharpness].map(Arg::from).to_vec();
        let cell = [0, 0, self.side].map(Arg::from).to_vec();
        let arguments = [Arg::Fields(problem), Arg::Fields(cell), Arg::from(&mut self.totals)];
        let config = LaunchConfig::new((self.across, self.across), 32);
        self.place.run(&self.kernel, &config, &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        let totals = self.totals.to_vec()?;
        Ok(totals.into_iter().flat_map(|total| [total as u32, (total >> 32) as u32]).collect())
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let total = |words: &[u32]| u64::from(words[0]) + (u64::from(words[1]) << 32);
    let mut found = [0u64; 2];
    for slot in result.chunks_exact(STRIDE * 2) {
        found[0] += total(&slot[..2]);
        found[1] += total(&slot[2..]);
    }
    let (problem, across) = (Problem::of(input)?, input.number(0)?);
    let side = input.number(1)? / across;
    let mut parts = vec![[0u64; 2]; (across * across) as usize];
    in_parallel(parts.iter_mut().enumerate().collect(), |(at, totals)| {
        let (x, y) = (at as u32 % across * side, at as u32 / across * side);
        problem.refine(Cell { x, y, side }, totals);
    });
    let expected = [0, 1].map(|i| parts.iter().map(|part| part[i]).sum::<u64>());
    ensure!(found == expected, "{found:?} instead of {expected:?}");
    Ok(format!("{} cells, integral {:.6}", found[1], found[0] as f64 / (1u64 << 32) as f64))
}
