//! Mandelbrot by adaptive subdivision: squares with a border of one dwell are filled, others are split.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context as _, ensure};
use gridlet_runtime::{Arg, Buffer, LaunchConfig};

use crate::example::{Example, Finding, Run};

/// The example.
pub const EXAMPLE: Example = Example {
    name: "mandelbrot",
    source: include_str!("../programs/mandelbrot.grid"),
    what: "draws 2,048 × 2,048 points, splitting squares by child grids",
    run,
};

/// Pixels of a side of the picture.
const SIDE: u32 = 2_048;
/// Pixels of a side of the squares that the first kernel examines.
const SQUARE: u32 = 256;
/// `MAX_DWELL` of the program.
const MAX_DWELL: u32 = 512;
const THREADS: u32 = 128;

/// The corners of the picture in the plane.
const LO: [f32; 2] = [-2.0, -1.25];
const HI: [f32; 2] = [0.5, 1.25];

/// Points that may differ from the host's, per million. The GPU contracts multiply and add to one rounding,
/// the host rounds twice, so the dwell of points close to the set's border differs; and a square may hide a
/// filament thinner than a pixel within a border of one dwell.
const DIFFERING_PER_MILLION: u64 = 10_000;

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let side = SIDE / run.shrink.max(1);
    // Poisoned, so that the check notices a pixel that no kernel wrote.
    let mut out = Buffer::from_slice(run.device, &vec![u32::MAX; (side * side) as usize])?;
    let kernel = run.program.kernel("squares")?;
    let complex = |[re, im]: [f32; 2]| Arg::Fields(vec![Arg::from(re), Arg::from(im)]);
    let view = Arg::Fields(vec![complex(LO), complex(HI), Arg::from(side), Arg::from(side)]);
    let config = LaunchConfig::new((side / SQUARE, side / SQUARE), THREADS);
    let [x0, y0, depth] = [0u32; 3].map(Arg::from);
    let arguments = [Arg::from(&mut out), view, x0, y0, Arg::from(SQUARE), depth];
    let milliseconds = run.timed(&kernel, &config, &arguments)?;

    let dwells = out.to_vec()?;
    ensure!(!dwells.contains(&u32::MAX), "some pixels were never written");
    let differing = differing_from_host(&dwells, side);
    let pixels = u64::from(side) * u64::from(side);
    ensure!(
        differing * 1_000_000 <= pixels * DIFFERING_PER_MILLION,
        "{differing} of {pixels} pixels differ from the host's, more than rounding explains"
    );
    let picture = run.pictures.join("mandelbrot.png");
    write_png(&picture, &dwells, side)?;
    Ok(Finding {
        milliseconds,
        checked: format!(
            "{pixels} pixels against the host's: {differing} differ by rounding; picture in {}",
            picture.display()
        ),
    })
}

/// The program's `dwell`, in plain Rust.
fn dwell(x: u32, y: u32, side: u32) -> u32 {
    let c = (
        LO[0] + x as f32 / side as f32 * (HI[0] - LO[0]),
        LO[1] + y as f32 / side as f32 * (HI[1] - LO[1]),
    );
    let mut z = c;
    let mut n = 0;
    while n < MAX_DWELL && z.0 * z.0 + z.1 * z.1 < 4.0 {
        z = (z.0 * z.0 - z.1 * z.1 + c.0, 2.0 * z.0 * z.1 + c.1);
        n += 1;
    }
    n
}

/// How many pixels differ from the host's, on all cores.
fn differing_from_host(dwells: &[u32], side: u32) -> u64 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let rows_each = (side as usize).div_ceil(workers);
    std::thread::scope(|scope| {
        let parts: Vec<_> = dwells
            .chunks(rows_each * side as usize)
            .enumerate()
            .map(|(part, pixels)| {
                scope.spawn(move || {
                    let first = part * rows_each * side as usize;
                    let differs = |(at, &dwelt): (usize, &u32)| {
                        let at = (first + at) as u32;
                        dwelt != dwell(at % side, at / side, side)
                    };
                    pixels.iter().enumerate().filter(|&pixel| differs(pixel)).count() as u64
                })
            })
            .collect();
        // If a worker panicked, all pixels count as wrong.
        parts.into_iter().map(|part| part.join().unwrap_or(u64::from(side) * u64::from(side))).sum()
    })
}

/// Writes the picture: the set is black, and outside it the hue follows the dwell.
fn write_png(path: &Path, dwells: &[u32], side: u32) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), side, side);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    let pixels: Vec<u8> = dwells.iter().flat_map(|&dwelt| color(dwelt)).collect();
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(())
}

fn color(dwelt: u32) -> [u8; 3] {
    if dwelt >= MAX_DWELL {
        return [0; 3];
    }
    let t = (dwelt as f32 / 32.0).fract();
    let wave = |phase: f32| (127.5 + 127.5 * (std::f32::consts::TAU * (t + phase)).cos()) as u8;
    [wave(0.5), wave(0.65), wave(0.8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_version_knows_inside_from_outside() {
        let pixel = |re: f32, im: f32| {
            let scale = |value: f32, axis: usize| {
                ((value - LO[axis]) / (HI[axis] - LO[axis]) * SIDE as f32) as u32
            };
            dwell(scale(re, 0), scale(im, 1), SIDE)
        };
        assert_eq!(pixel(-1.0, 0.0), MAX_DWELL);
        assert_eq!(pixel(0.0, 0.0), MAX_DWELL);
        assert!(pixel(-1.9, 1.2) < 5);
    }

    #[test]
    fn every_wrong_pixel_is_counted() {
        let mut dwells: Vec<u32> = (0..SIDE * SIDE).map(|_| MAX_DWELL + 1).collect();
        let all = u64::from(SIDE) * u64::from(SIDE);
        assert_eq!(differing_from_host(&dwells, SIDE), all);
        dwells[5] = dwell(5, 0, SIDE);
        let last = dwells.len() - 1;
        dwells[last] = dwell(SIDE - 1, SIDE - 1, SIDE);
        assert_eq!(differing_from_host(&dwells, SIDE), all - 2);
    }
}
