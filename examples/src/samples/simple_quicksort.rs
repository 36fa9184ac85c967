//! Quicksort by grids of one thread, each in a stream of its own, after CUDA's `cdpSimpleQuicksort`.

use gridlet_runtime::{Arg, Buffer, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::example::{Example, Finding, Run, compare};

/// The sample.
pub const EXAMPLE: Example = Example {
    name: "simple_quicksort",
    source: include_str!("../../samples/simple_quicksort.grid"),
    what: "sorts 128 integers, each part in a stream that its launcher creates",
    run,
};

/// The number of values and the largest value of each sort: the second has many equal values, the third is long enough
/// to reach its greatest depth.
const SORTS: [(usize, u32); 3] = [(128, u32::MAX), (128, 7), (20_000, u32::MAX)];

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let kernel = run.program.kernel("simple_quicksort")?;
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut milliseconds = 0.0;
    for (count, most) in SORTS {
        let count = if count > 128 { count / run.shrink.max(1) as usize } else { count };
        let mut values: Vec<u32> = (0..count).map(|_| random.next_u32() % most).collect();
        let data = Buffer::from_slice(run.device, &values)?;
        let last = data.address() + 4 * (count as u64 - 1);
        let arguments = [Arg::address(data.address()), Arg::address(last), Arg::from(0u32)];
        let took = run.timed(&kernel, &LaunchConfig::new(1, 1), &arguments)?;
        if milliseconds == 0.0 {
            milliseconds = took;
        }
        values.sort_unstable();
        compare(&data.to_vec()?, &values)?;
    }
    Ok(Finding {
        milliseconds,
        checked: format!("{} sorts equal the host's; the time is that of the first", SORTS.len()),
    })
}
