//! Sums of ragged segments: each long segment gets a child grid, and a chain of tail launches adds everything up.

use anyhow::{Context as _, ensure};
use gridlet_runtime::{Arg, Buffer, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::example::{Example, Finding, Run};

/// The example.
pub const EXAMPLE: Example = Example {
    name: "segment_sum",
    source: include_str!("../programs/segment_sum.grid"),
    what: "sums 1,000,000 ragged segments, a child grid per long one",
    run,
};

const SEGMENTS: usize = 1_000_000;
const THREADS: u32 = 128;
/// Segments of at least this length get a child grid.
const LONG: u32 = 64;
/// `TILE` of the program.
const TILE: usize = 1_024;

/// Segment lengths: one in a hundred is long, up to 4,095 values; the others have 0 to 31.
fn offsets(random: &mut ChaCha8Rng, segments: usize) -> Vec<u32> {
    let mut offsets = vec![0];
    let mut end = 0;
    for _ in 0..segments {
        let word = random.next_u32();
        end += if word.is_multiple_of(100) {
            LONG + (word >> 8) % (4_096 - LONG)
        } else {
            (word >> 8) % 32
        };
        offsets.push(end);
    }
    offsets
}

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let count = SEGMENTS / run.shrink.max(1) as usize;
    let offsets = offsets(&mut random, count);
    let total = offsets[count] as usize;
    // Multiples of 2^-24 below 1: every sum here has at most 53 bits, so it is exact in any order.
    let values: Vec<f32> =
        (0..total).map(|_| (random.next_u32() >> 8) as f32 / (1 << 24) as f32).collect();
    let long = offsets.windows(2).filter(|pair| pair[1] - pair[0] >= LONG).count();
    let milliseconds = sum_up(run, &offsets, &values)?;
    for few in [0, 1, TILE, TILE + 1] {
        sum_up(run, &offsets[..=few], &values).with_context(|| format!("{few} segments"))?;
    }
    Ok(Finding {
        milliseconds,
        checked: format!("{count} sums and their total equal the host's, {long} by child grids"),
    })
}

/// Adds up, checks the result, and returns the time in milliseconds.
fn sum_up(run: &Run<'_>, offsets: &[u32], values: &[f32]) -> anyhow::Result<f32> {
    let (device, count) = (run.device, offsets.len() - 1);
    let values_buffer = Buffer::from_slice(device, values)?;
    let offsets_buffer = Buffer::from_slice(device, offsets)?;
    // Poisoned, so that the check notices a sum that no kernel wrote.
    let mut results = Buffer::from_slice(device, &vec![f64::NAN; count.max(1)])?;
    let mut partials = Buffer::from_slice(device, &vec![f64::NAN; 2 * count / TILE + 1])?;
    let mut out = Buffer::from_slice(device, &[f64::NAN])?;

    let kernel = run.program.kernel("segment_sums")?;
    let config = LaunchConfig::new((count as u32).div_ceil(THREADS).max(1), THREADS);
    let segments =
        vec![Arg::from(&values_buffer), Arg::from(&offsets_buffer), Arg::from(count as u32)];
    let arguments = [
        Arg::Fields(segments),
        Arg::from(&mut results),
        Arg::from(&mut partials),
        Arg::from(&mut out),
    ];
    let milliseconds = run.timed(&kernel, &config, &arguments)?;

    let sums = results.to_vec()?;
    let mut total = 0.0;
    for (at, pair) in offsets.windows(2).enumerate() {
        let expected: f64 =
            values[pair[0] as usize..pair[1] as usize].iter().map(|&value| f64::from(value)).sum();
        ensure!(
            sums[at] == expected,
            "segment {at} of {} values sums to {}, on the host to {expected}",
            pair[1] - pair[0],
            sums[at]
        );
        total += expected;
    }
    let got = out.to_vec()?[0];
    ensure!(got == total, "the total is {got}, but the sums add up to {total}");
    Ok(milliseconds)
}
