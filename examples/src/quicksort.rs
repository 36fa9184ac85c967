//! Quicksort: each partition hands its halves to child grids.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::example::{Example, Finding, Run};

/// The example.
pub const EXAMPLE: Example = Example {
    name: "quicksort",
    source: include_str!("../programs/quicksort.grid"),
    what: "sorts 100,000 random integers, a child grid per partition",
    run,
};

const COUNT: usize = 100_000;

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let count = COUNT / run.shrink.max(1) as usize;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let input: Vec<u32> = (0..count).map(|_| random.next_u32()).collect();
    let mut data = Buffer::from_slice(run.device, &input)?;
    let kernel = run.program.kernel("quicksort")?;

    let arguments =
        [Arg::from(&mut data), Arg::from(0i32), Arg::from(count as i32 - 1), Arg::from(0u32)];
    let milliseconds = run.timed(&kernel, &LaunchConfig::new(1, 1), &arguments)?;

    let sorted = data.to_vec()?;
    let mut expected = input;
    expected.sort_unstable();
    if let Some(at) = (0..count).find(|&at| sorted[at] != expected[at]) {
        anyhow::bail!(
            "element {at} is {}, but a sort on the host puts {} there",
            sorted[at],
            expected[at]
        );
    }
    ensure!(sorted.len() == count, "{} elements came back instead of {count}", sorted.len());
    Ok(Finding { milliseconds, checked: format!("{count} integers equal a sort on the host") })
}
