//! Advanced quicksort, after CUDA's `cdpAdvancedQuicksort`: the blocks of a grid partition a part together.

use anyhow::Context as _;
use gridlet_runtime::{Arg, Buffer, DeviceMemory, Kernel, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::{Case, Input, Nested, Place, Size, Version, Work, equal};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "quicksort",
    what: "advanced quicksort: parallel partitions, short parts sorted by a block",
    source: include_str!("../../nested/quicksort/quicksort.grid"),
    cuda: [include_str!("../../nested/quicksort/nested.cu"), FLAT],
    headers: FLAT_HEADERS,
    pending_launches: 65_536,
    cases,
    load,
    check,
};

/// The version without nesting, which serves for `simple_quicksort` too, and what it includes.
pub(super) const FLAT: &str = include_str!("../../nested/quicksort/flat.cu");
pub(super) const FLAT_HEADERS: &[(&str, &str)] =
    &[("sort.h", include_str!("../../nested/quicksort/sort.h"))];

const THREADS: u32 = 256;
/// Bytes of a `Work`.
const WORK: u64 = 12;

/// The number of an input says whether the flat version leaves the sort to CUB.
fn cases(size: Size) -> Vec<Case> {
    const CUB: &[Version] = &[Version::CudaFlat];
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut case = |name: &str, count: usize, values: u32, versions| Case {
        name: name.to_string(),
        input: Input {
            numbers: vec![u64::from(versions == CUB)],
            arrays: vec![(0..count).map(|_| random.next_u32() % values).collect()],
        },
        launches: None,
        versions,
    };
    match size {
        Size::Small => vec![
            case("40,000 numbers", 40_000, u32::MAX, &Version::ALL),
            case("10,000 numbers below 5", 10_000, 5, &Version::ALL),
            case("3 numbers", 3, u32::MAX, &Version::ALL),
        ],
        Size::Full => vec![
            case("1,000,000 numbers", 1_000_000, u32::MAX, &Version::ALL),
            case("16,777,216 numbers", 1 << 24, u32::MAX, &Version::ALL),
            case("16,777,216 numbers, radix sort by CUB", 1 << 24, u32::MAX, CUB),
        ],
    }
}

struct Quicksort {
    place: Place,
    kernel: Kernel,
    values: Vec<u32>,
    data: Buffer<u32>,
    scratch: Buffer<u32>,
    works: DeviceMemory,
    used: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let values = input.array(0)?.to_vec();
    let (device, count) = (&place.device, values.len());
    Ok(Box::new(Quicksort {
        place: place.clone(),
        kernel: place.kernel("quicksort")?,
        data: Buffer::alloc(device, count)?,
        scratch: Buffer::alloc(device, count)?,
        works: DeviceMemory::alloc(device, (count as u64 / 256 + 1024) * WORK)?,
        used: Buffer::alloc(device, 1)?,
        values,
    }))
}

impl Work for Quicksort {
    fn reset(&mut self) -> anyhow::Result<()> {
        self.data.copy_from_host(&self.values)?;
        // Poisoned, so that the check notices a value from the wrong buffer.
        self.scratch.fill(u32::MAX)?;
        Ok(self.used.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let count = Arg::from(u32::try_from(self.values.len())?);
        let sort = vec![
            Arg::from(&mut self.data),
            Arg::from(&mut self.scratch),
            Arg::from(&mut self.works),
            Arg::from(&mut self.used),
        ];
        let arguments = [Arg::Fields(sort), count];
        self.place.run(&self.kernel, &LaunchConfig::new(1, THREADS), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.data.to_vec()?)
    }
}

pub(super) fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let mut expected = input.array(0)?.to_vec();
    expected.sort_unstable();
    equal(result, &expected).context("against a sort on the host")?;
    Ok(format!("{} numbers equal a sort on the host", result.len()))
}
