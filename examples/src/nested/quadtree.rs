//! A quadtree.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, DeviceMemory, Kernel, LaunchConfig};

use super::graph::mix;
use super::{Case, Input, Nested, Place, Size, Version, Work, equal, words};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "quadtree",
    what: "a quadtree, a grid for each node",
    source: include_str!("../../nested/quadtree/quadtree.grid"),
    cuda: [
        include_str!("../../nested/quadtree/nested.cu"),
        include_str!("../../nested/quadtree/flat.cu"),
    ],
    headers: &[("tree.h", include_str!("../../nested/quadtree/tree.h"))],
    pending_launches: 65_536,
    cases,
    load,
    check,
};

/// Constants of the program.
const THREADS: u32 = 256;
const LEAF: usize = 64;
const MAX_DEPTH: u32 = 16;
/// Bytes of a `Work`.
const WORK: u64 = 40;

/// The array of an input has the coordinates of the points.
fn cases(size: Size) -> Vec<Case> {
    let points: u64 = if size == Size::Small { 20_000 } else { 4_000_000 };
    // From 0 to 1, denser towards 0.
    let coordinate = |at| {
        let uniform = (mix(at) >> 40) as f32 / (1 << 24) as f32;
        (uniform * uniform).to_bits()
    };
    vec![Case {
        name: format!("{points} points"),
        input: Input { numbers: vec![], arrays: vec![(0..2 * points).map(coordinate).collect()] },
        launches: None,
        versions: &Version::ALL,
    }]
}

struct Quadtree {
    place: Place,
    kernel: Kernel,
    values: Vec<u8>,
    points: DeviceMemory,
    scratch: DeviceMemory,
    works: DeviceMemory,
    used: Buffer<u32>,
    leaves: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let device = &place.device;
    let values: Vec<u8> = input.array(0)?.iter().flat_map(|word| word.to_le_bytes()).collect();
    let bytes = values.len() as u64;
    Ok(Box::new(Quadtree {
        place: place.clone(),
        kernel: place.kernel("quadtree")?,
        values,
        points: DeviceMemory::alloc(device, bytes)?,
        scratch: DeviceMemory::alloc(device, bytes)?,
        works: DeviceMemory::alloc(device, (bytes / 8 / 256 + 1024) * WORK)?,
        used: Buffer::alloc(device, 1)?,
        leaves: Buffer::alloc(device, 1)?,
    }))
}

impl Work for Quadtree {
    fn reset(&mut self) -> anyhow::Result<()> {
        self.points.copy_from_host(&self.values)?;
        // Poisoned, so that the check notices a point from the wrong place.
        self.scratch.fill(0xff)?;
        self.used.fill(0)?;
        Ok(self.leaves.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let count = Arg::from(u32::try_from(self.values.len() / 8)?);
        let tree = vec![
            Arg::from(&mut self.points),
            Arg::from(&mut self.scratch),
            Arg::from(&mut self.works),
            Arg::from(&mut self.used),
            Arg::from(&mut self.leaves),
        ];
        let arguments = [Arg::Fields(tree), count];
        self.place.run(&self.kernel, &LaunchConfig::new(1, THREADS), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        let mut bytes = vec![0; self.values.len()];
        self.points.copy_to_host(&mut bytes)?;
        let mut result = words(&bytes);
        result.extend(self.leaves.to_vec()?);
        Ok(result)
    }
}

type Point = [u32; 2];

/// Puts the points in the order of their leaves, and lists the ends of the leaves.
fn build(points: &mut [Point], [x, y]: [u32; 2], depth: u32, begin: usize, ends: &mut Vec<usize>) {
    if points.is_empty() {
        return;
    }
    if points.len() <= LEAF || depth >= MAX_DEPTH {
        ends.push(begin + points.len());
        return;
    }
    let side = 1.0 / (1u32 << depth) as f32;
    let quarter = |point: &Point| {
        let is_high = |axis: usize, cell: u32| {
            u32::from(f32::from_bits(point[axis]) >= (cell as f32 + 0.5) * side)
        };
        is_high(0, x) + 2 * is_high(1, y)
    };
    points.sort_by_key(quarter);
    let (mut rest, mut begin) = (points, begin);
    for q in 0..4 {
        let (own, others) = rest.split_at_mut(rest.partition_point(|point| quarter(point) <= q));
        build(own, [2 * x + q % 2, 2 * y + q / 2], depth + 1, begin, ends);
        begin += own.len();
        rest = others;
    }
}

/// Compares leaf by leaf, because the order of the points in a leaf is open.
fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let mut expected = input.array(0)?.as_chunks::<2>().0.to_vec();
    let mut ends = Vec::new();
    build(&mut expected, [0, 0], 0, 0, &mut ends);
    let (found, leaves) = result.as_chunks::<2>();
    ensure!(leaves == [ends.len() as u32], "{leaves:?} leaves instead of {}", ends.len());
    let mut found = found.to_vec();
    ensure!(found.len() == expected.len(), "{} points", found.len());
    let mut begin = 0;
    for &end in &ends {
        found[begin..end].sort_unstable();
        expected[begin..end].sort_unstable();
        begin = end;
    }
    equal(found.as_flattened(), expected.as_flattened())?;
    Ok(format!("{} points in {} leaves equal the host's", found.len(), ends.len()))
}
