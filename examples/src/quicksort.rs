//! Quicksort: a grid partitions a part of the values, and launches a grid for each side.

use anyhow::{Context as _, ensure};
use gridlet_runtime::{Arg, Buffer, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::example::{Example, Finding, Run, compare};

/// The example.
pub const EXAMPLE: Example = Example {
    name: "quicksort",
    source: include_str!("../programs/quicksort.grid"),
    what: "sorts 100,000 random integers, a child grid per partition",
    run,
};

const COUNT: usize = 100_000;
/// `LEAF` of the program.
const LEAF: usize = 1_024;
/// `MAX_DEPTH` of the program.
const MAX_DEPTH: u32 = 32;
/// `THREADS` of the program.
const THREADS: u32 = 128;
/// Bytes of the program's `Progress`.
const PROGRESS_BYTES: usize = 16;

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let count = COUNT / run.shrink.max(1) as usize;
    let values: Vec<u32> = (0..count).map(|_| random.next_u32()).collect();
    let milliseconds = sort(run, &values).context("random values")?;

    let some = &values[..count / 8];
    let few: Vec<u32> = some.iter().map(|value| value % 3).collect();
    sort(run, &few).context("three different values")?;
    sort(run, &vec![u32::MAX; some.len()]).context("equal values")?;
    let ordered: Vec<u32> = (0..some.len() as u32).collect();
    sort(run, &ordered).context("values in order")?;
    let reversed: Vec<u32> = ordered.into_iter().rev().collect();
    sort(run, &reversed).context("values in reverse")?;
    for length in [0, 1, 2, 33, LEAF, LEAF + 1] {
        for values in [some, &few] {
            let values = &values[..length.min(values.len())];
            sort(run, values).with_context(|| format!("{length} values"))?;
        }
    }
    for depth in [MAX_DEPTH, MAX_DEPTH + 1] {
        sort_long(run, &values[..count / 32], depth).context("a part too deep for partitions")?;
    }
    Ok(Finding { milliseconds, checked: format!("{count} integers equal a sort on the host") })
}

/// Sorts, checks the result, and returns the time in milliseconds.
fn sort(run: &Run<'_>, values: &[u32]) -> anyhow::Result<f32> {
    let mut buffers = Buffers::new(run, values, &poison(values.len()))?;
    let kernel = run.program.kernel("quicksort")?;
    let [data, scratch, progress] = buffers.arguments();
    let arguments = [data, scratch, progress, Arg::from(values.len() as u32)];
    let milliseconds = run.timed(&kernel, &LaunchConfig::new(1, 1), &arguments)?;
    buffers.check(values)?;
    Ok(milliseconds)
}

/// The kernel for parts at the greatest depth, which these inputs do not reach.
fn sort_long(run: &Run<'_>, values: &[u32], depth: u32) -> anyhow::Result<()> {
    // At odd depths the values are in the second buffer.
    let poison = poison(values.len());
    let [first, second] =
        if depth.is_multiple_of(2) { [values, &poison] } else { [&poison, values] };
    let mut buffers = Buffers::new(run, first, second)?;
    let kernel = run.program.kernel("sort_long")?;
    let sort = Arg::Fields(buffers.arguments().into());
    let [begin, count] = [0, values.len() as u32].map(Arg::from);
    let config = LaunchConfig::new(1, THREADS);
    run.timed(&kernel, &config, &[sort, begin, count, Arg::from(depth)])?;
    buffers.check(values)
}

/// Values that show a read from the wrong buffer.
fn poison(count: usize) -> Vec<u32> {
    vec![0xdead_beef; count]
}

/// The memory of one sort.
struct Buffers {
    data: Buffer<u32>,
    scratch: Buffer<u32>,
    progress: Buffer<u8>,
}

impl Buffers {
    fn new(run: &Run<'_>, data: &[u32], scratch: &[u32]) -> anyhow::Result<Buffers> {
        // A buffer has at least one element.
        let buffer = |values: &[u32]| {
            Buffer::from_slice(run.device, if values.is_empty() { &[0] } else { values })
        };
        let progress = (data.len() / LEAF + 1) * PROGRESS_BYTES;
        Ok(Buffers {
            data: buffer(data)?,
            scratch: buffer(scratch)?,
            progress: Buffer::alloc_zeroed(run.device, progress)?,
        })
    }

    fn arguments(&mut self) -> [Arg<'_>; 3] {
        let Buffers { data, scratch, progress } = self;
        [Arg::from(data), Arg::from(scratch), Arg::from(progress)]
    }

    fn check(&self, values: &[u32]) -> anyhow::Result<()> {
        let mut expected = values.to_vec();
        expected.sort_unstable();
        compare(&self.data.to_vec()?[..values.len()], &expected)?;
        ensure!(self.progress.to_vec()?.iter().all(|&byte| byte == 0), "the progress is not zero");
        Ok(())
    }
}
