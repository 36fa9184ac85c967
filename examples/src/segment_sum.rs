//! Sums of ragged segments: each long segment gets a child grid, and a tail launch adds everything up.

use anyhow::ensure;
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
/// The largest accepted difference of a segment's sum from the host's, relative to the sum of magnitudes: the GPU adds
/// long segments in a different order. 2^-24 times the 4,095 additions of the longest is 2.4e-4; values of one sign stay
/// far below.
const TOLERANCE: f64 = 1e-5;

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
    let values: Vec<f32> =
        (0..total).map(|_| (random.next_u32() >> 8) as f32 / (1 << 24) as f32).collect();
    let long = offsets.windows(2).filter(|pair| pair[1] - pair[0] >= LONG).count();

    let device = run.device;
    let values_buffer = Buffer::from_slice(device, &values)?;
    let offsets_buffer = Buffer::from_slice(device, &offsets)?;
    // Poisoned, so that the check notices a sum that no kernel wrote.
    let mut results = Buffer::from_slice(device, &vec![f32::NAN; count])?;
    let mut out = Buffer::from_slice(device, &[f64::NAN])?;

    let kernel = run.program.kernel("segment_sums")?;
    let config = LaunchConfig::new((count as u32).div_ceil(THREADS), THREADS);
    let segments =
        vec![Arg::from(&values_buffer), Arg::from(&offsets_buffer), Arg::from(count as u32)];
    let arguments = [Arg::Fields(segments), Arg::from(&mut results), Arg::from(&mut out)];
    let milliseconds = run.timed(&kernel, &config, &arguments)?;

    let sums = results.to_vec()?;
    for (at, pair) in offsets.windows(2).enumerate() {
        let expected: f64 =
            values[pair[0] as usize..pair[1] as usize].iter().map(|&value| f64::from(value)).sum();
        let error = (f64::from(sums[at]) - expected).abs();
        ensure!(
            error <= TOLERANCE * expected,
            "segment {at} of {} values sums to {}, on the host to {expected}",
            pair[1] - pair[0],
            sums[at]
        );
    }
    // The last kernel adds in order, so its sum is exact to the bit.
    let expected: f64 = sums.iter().map(|&sum| f64::from(sum)).sum();
    let got = out.to_vec()?[0];
    ensure!(got == expected, "the total is {got}, but the sums add up to {expected}");
    Ok(Finding {
        milliseconds,
        checked: format!(
            "{count} sums within {TOLERANCE:e} of the host's, {long} by child grids; the total exact"
        ),
    })
}
