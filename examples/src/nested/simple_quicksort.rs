//! Simple quicksort, after CUDA's `cdpSimpleQuicksort`: grids of one thread. The suite's worst case of a launch that does
//! little, next to a first grid that keeps one thread busy for most of the time.

use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::{Case, Input, Nested, Place, Size, Version, Work, quicksort};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "simple_quicksort",
    what: "simple quicksort: a thread for each part",
    source: include_str!("../../nested/simple_quicksort/simple_quicksort.grid"),
    cuda: [include_str!("../../nested/simple_quicksort/nested.cu"), quicksort::FLAT],
    headers: quicksort::FLAT_HEADERS,
    pending_launches: 65_536,
    cases,
    load,
    check: quicksort::check,
};

fn cases(size: Size) -> Vec<Case> {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    let mut case = |name: &str, count: usize, values: u32, depth: u64| Case {
        name: name.to_string(),
        input: Input {
            // Not CUB, in the version without nesting; and the depth to begin with.
            numbers: vec![0, depth],
            arrays: vec![(0..count).map(|_| random.next_u32() % values).collect()],
        },
        launches: None,
        versions: &Version::ALL,
    };
    match size {
        Size::Small => vec![
            case("10,000 numbers", 10_000, u32::MAX, 0),
            case("3,000 numbers below 5", 3_000, 5, 0),
            case("2 numbers", 2, u32::MAX, 0),
            // Its longer parts reach the limit.
            case("5,000 numbers from depth 17 on", 5_000, u32::MAX, 17),
        ],
        Size::Full => vec![
            case("100,000 numbers", 100_000, u32::MAX, 0),
            case("1,000,000 numbers", 1_000_000, u32::MAX, 0),
        ],
    }
}

struct Quicksort {
    place: Place,
    kernel: Kernel,
    depth: u32,
    values: Vec<u32>,
    data: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let values = input.array(0)?.to_vec();
    Ok(Box::new(Quicksort {
        place: place.clone(),
        kernel: place.kernel("quicksort")?,
        depth: input.number(1)?,
        data: Buffer::alloc(&place.device, values.len())?,
        values,
    }))
}

impl Work for Quicksort {
    fn reset(&mut self) -> anyhow::Result<()> {
        Ok(self.data.copy_from_host(&self.values)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let count = Arg::from(u32::try_from(self.values.len())?);
        let arguments = [Arg::from(&mut self.data), count, Arg::from(self.depth)];
        self.place.run(&self.kernel, &LaunchConfig::new(1, 1), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.data.to_vec()?)
    }
}
