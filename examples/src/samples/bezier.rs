//! Bézier curves with as many points as their curvature asks for, after CUDA's `cdpBezierTessellation`.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, DeviceCopy, Element, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

use super::unit;
use crate::example::{Example, Finding, Run};

/// The sample.
pub const EXAMPLE: Example = Example {
    name: "bezier",
    source: include_str!("../../samples/bezier.grid"),
    what: "computes 256 Bézier curves, each in memory that its thread takes from the device's heap",
    run,
};

const LINES: usize = 256;
const THREADS: u32 = 64;
/// `MIN_POINTS` and `MAX_POINTS` of the program.
const POINTS: (u32, u32) = (4, 32);
/// The largest accepted difference of a coordinate from the host's: three products and two sums of numbers up to 1,
/// each rounded by at most 2^-24, and the error of the parameter itself.
const TOLERANCE: f64 = 1e-6;

/// `Line` of the program.
#[derive(Clone, Copy)]
#[repr(C)]
struct Line {
    control: [[f32; 2]; 3],
    points: u64,
    count: u32,
    unused: u32,
}

// SAFETY: numbers only, at the offsets of the program's `Line`, whose tail padding is `unused`.
unsafe impl DeviceCopy for Line {
    const ELEMENT: Element = Element::Struct("Line");
}

/// How many points a curve with these control points has, if its curvature is scaled by `scale`.
fn count(control: &[[f32; 2]; 3], scale: f64) -> u32 {
    let [a, b, c] = control.map(|point| point.map(f64::from));
    let bend = (b[0] - 0.5 * (a[0] + c[0])).hypot(b[1] - 0.5 * (a[1] + c[1]));
    let curvature = bend / (c[0] - a[0]).hypot(c[1] - a[1]);
    ((curvature * 16.0 * scale) as u32).clamp(POINTS.0, POINTS.1)
}

/// A curve whose number of points does not depend on rounding.
fn control_points(random: &mut ChaCha8Rng) -> [[f32; 2]; 3] {
    loop {
        let control = [(); 3].map(|()| [unit(random), unit(random)]);
        if count(&control, 1.0 - 1e-4) == count(&control, 1.0 + 1e-4) {
            return control;
        }
    }
}

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let lines: Vec<Line> = (0..(LINES / run.shrink.max(1) as usize).max(8))
        .map(|_| Line { control: control_points(&mut random), points: 0, count: 0, unused: 0 })
        .collect();
    let most = POINTS.1 as usize;
    let mut on_device = Buffer::from_slice(run.device, &lines)?;
    // Poisoned, so that the check notices a point that no kernel computed.
    let mut points = Buffer::from_slice(run.device, &vec![[f32::NAN; 2]; most * lines.len()])?;
    let mut counts = Buffer::from_slice(run.device, &vec![u32::MAX; lines.len()])?;

    let number = lines.len() as u32;
    let a_thread_each = LaunchConfig::new(number.div_ceil(THREADS), THREADS);
    let kernel = run.program.kernel("bezier")?;
    let milliseconds =
        run.timed(&kernel, &a_thread_each, &[Arg::from(&mut on_device), Arg::from(number)])?;
    let arguments =
        [Arg::from(&on_device), Arg::from(number), Arg::from(&mut points), Arg::from(&mut counts)];
    run.timed(&run.program.kernel("gather")?, &LaunchConfig::new(number, 32), &arguments)?;
    let arguments = [Arg::from(&mut on_device), Arg::from(number)];
    run.timed(&run.program.kernel("free_points")?, &a_thread_each, &arguments)?;

    let (points, counts) = (points.to_vec()?, counts.to_vec()?);
    for (at, line) in lines.iter().enumerate() {
        let expected = count(&line.control, 1.0);
        ensure!(counts[at] == expected, "line {at} has {} points, not {expected}", counts[at]);
        let found = &points[at * most..at * most + expected as usize];
        for (index, point) in found.iter().enumerate() {
            let wanted = point_on(&line.control, index as f64 / f64::from(expected - 1));
            let error = [0, 1].map(|axis| (f64::from(point[axis]) - wanted[axis]).abs());
            ensure!(
                error.iter().all(|error| *error <= TOLERANCE),
                "point {index} of line {at} is {point:?}, on the host {wanted:?}"
            );
        }
    }
    ensure!(on_device.to_vec()?.iter().all(|line| line.points == 0), "some memory is not freed");
    Ok(Finding {
        milliseconds,
        checked: format!(
            "{} points of {number} curves within {TOLERANCE:e} of the host's, their numbers exact",
            counts.iter().sum::<u32>()
        ),
    })
}

fn point_on(control: &[[f32; 2]; 3], t: f64) -> [f64; 2] {
    let weights = [(1.0 - t) * (1.0 - t), 2.0 * (1.0 - t) * t, t * t];
    [0, 1].map(|axis| (0..3).map(|i| weights[i] * f64::from(control[i][axis])).sum())
}
