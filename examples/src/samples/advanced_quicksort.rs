//! Quicksort whose partitions are grids and whose leaves are bitonic networks, after CUDA's `cdpAdvancedQuicksort`.

use anyhow::{Context as _, ensure};
use gridlet_runtime::{Arg, Buffer, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::example::{Example, Finding, Run, compare};

/// The sample.
pub const EXAMPLE: Example = Example {
    name: "advanced_quicksort",
    source: include_str!("../../samples/advanced_quicksort.grid"),
    what: "sorts 1,000,000 integers, warps partition and short parts go through bitonic networks",
    run,
};

const COUNT: usize = 1_000_000;
/// `THREADS` of the program.
const THREADS: u32 = 256;

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let count = COUNT / run.shrink.max(1) as usize;
    let less = count / 16;
    let values: Vec<u32> = (0..count).map(|_| random.next_u32()).collect();
    let milliseconds = sort(run, &values).context("random values")?;

    let global = |name: &str| -> anyhow::Result<u32> {
        let mut word = [0; 4];
        run.program.global(name)?.copy_to_host(&mut word)?;
        Ok(u32::from_le_bytes(word))
    };
    let (partitions, leaves) = (global("partitions")?, global("leaves")?);
    ensure!(
        count <= 2_048 || partitions > 1 && leaves > 1,
        "{partitions} partitions and {leaves} leaves sorted {count} values"
    );

    let few: Vec<u32> = values[..less].iter().map(|value| value % 5).collect();
    sort(run, &few).context("five values")?;
    sort(run, &vec![7; less]).context("one value")?;
    let ordered: Vec<u32> = (0..less as u32).collect();
    sort(run, &ordered).context("values in order")?;
    let reversed: Vec<u32> = (0..less as u32).rev().collect();
    sort(run, &reversed).context("values in reverse")?;
    for short in [1, 2, 3, 33] {
        sort(run, &values[..short]).with_context(|| format!("{short} values"))?;
    }
    sort_long(run, &values[..less.min(5_000)]).context("a part too deep for partitions")?;
    Ok(Finding {
        milliseconds,
        checked: format!(
            "{count} integers equal a sort on the host: {partitions} partitions, {leaves} leaves"
        ),
    })
}

/// Sorts, checks, and returns the time in milliseconds.
fn sort(run: &Run<'_>, values: &[u32]) -> anyhow::Result<f32> {
    let mut data = Buffer::from_slice(run.device, values)?;
    // Poisoned, so that the check notices a value from the wrong buffer.
    let mut scratch = Buffer::from_slice(run.device, &vec![0xdead_beef_u32; values.len()])?;
    let kernel = run.program.kernel("advanced_quicksort")?;
    let count = Arg::from(values.len() as u32);
    let arguments = [Arg::from(&mut data), Arg::from(&mut scratch), count];
    let milliseconds = run.timed(&kernel, &LaunchConfig::new(1, 1), &arguments)?;
    check(&data, values)?;
    Ok(milliseconds)
}

/// The kernel for ranges at the greatest depth, which random inputs do not reach.
fn sort_long(run: &Run<'_>, values: &[u32]) -> anyhow::Result<()> {
    let from = Buffer::from_slice(run.device, values)?;
    let mut out = Buffer::from_slice(run.device, &vec![0_u32; values.len()])?;
    let kernel = run.program.kernel("sort_long")?;
    let arguments = [Arg::from(&from), Arg::from(&mut out), Arg::from(values.len() as u32)];
    run.timed(&kernel, &LaunchConfig::new(1, THREADS), &arguments)?;
    check(&out, values)
}

fn check(data: &Buffer<u32>, values: &[u32]) -> anyhow::Result<()> {
    let mut expected = values.to_vec();
    expected.sort_unstable();
    compare(&data.to_vec()?, &expected)
}
