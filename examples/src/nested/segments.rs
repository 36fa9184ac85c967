//! Sums of ragged segments.

use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::graph::mix;
use super::{Case, Input, Nested, Place, Size, Version, Work, equal};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "segments",
    what: "sums of ragged segments, a grid for each long one",
    source: include_str!("../../nested/segments/segments.grid"),
    cuda: [
        include_str!("../../nested/segments/nested.cu"),
        include_str!("../../nested/segments/flat.cu"),
    ],
    headers: &[("sums.h", include_str!("../../nested/segments/sums.h"))],
    pending_launches: 32_768,
    cases,
    load,
    check,
};

const THREADS: u32 = 256;

/// The arrays of an input are the segments' ends, after a 0, and the values.
fn cases(size: Size) -> Vec<Case> {
    let segments = if size == Size::Small { 3_000 } else { 500_000 };
    // Of 10,000 segments one is very long, 99 are long.
    let length = |segment: u64| {
        let most = match mix(segment) % 10_000 {
            0 => 1 << 18,
            1..100 => 4_096,
            _ => 64,
        };
        mix(segment << 32) as u32 % most
    };
    let mut offsets = vec![0];
    let mut end = 0;
    for segment in 0..segments {
        end += length(segment);
        offsets.push(end);
    }
    let values: Vec<u32> = (0..u64::from(end)).map(|at| mix(at) as u32 % 1_000).collect();
    vec![Case {
        name: format!("{segments} segments, {end} numbers"),
        input: Input { numbers: vec![], arrays: vec![offsets, values] },
        launches: None,
        versions: &Version::ALL,
    }]
}

struct Segments {
    place: Place,
    kernel: Kernel,
    count: u32,
    offsets: Buffer<u32>,
    values: Buffer<u32>,
    sums: Buffer<u32>,
    total: Buffer<u64>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let device = &place.device;
    let offsets = input.array(0)?;
    let count = offsets.len() - 1;
    Ok(Box::new(Segments {
        place: place.clone(),
        kernel: place.kernel("sum_segments")?,
        count: u32::try_from(count)?,
        offsets: Buffer::from_slice(device, offsets)?,
        values: Buffer::from_slice(device, input.array(1)?)?,
        sums: Buffer::alloc(device, count)?,
        total: Buffer::alloc(device, 1)?,
    }))
}

impl Work for Segments {
    fn reset(&mut self) -> anyhow::Result<()> {
        self.sums.fill(0)?;
        Ok(self.total.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let segments =
            vec![Arg::from(&self.values), Arg::from(&self.offsets), Arg::from(self.count)];
        let arguments =
            [Arg::Fields(segments), Arg::from(&mut self.sums), Arg::from(&mut self.total)];
        let config = LaunchConfig::new(self.count.div_ceil(THREADS), THREADS);
        self.place.run(&self.kernel, &config, &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        let mut words = self.sums.to_vec()?;
        let total = self.total.to_vec()?[0];
        words.extend([total as u32, (total >> 32) as u32]);
        Ok(words)
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let (offsets, values) = (input.array(0)?, input.array(1)?);
    let segments = offsets.windows(2).map(|ends| &values[ends[0] as usize..ends[1] as usize]);
    let mut expected: Vec<u32> = segments.map(|segment| segment.iter().sum()).collect();
    let total: u64 = expected.iter().map(|sum| u64::from(*sum)).sum();
    expected.extend([total as u32, (total >> 32) as u32]);
    equal(result, &expected)?;
    Ok(format!("{} sums and their total {total} equal the host's", offsets.len() - 1))
}
