//! Breadth-first search.

use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::graph::{Graph, check_distances};
use super::{Case, Input, Nested, Place, Size, Version, Work};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "bfs",
    what: "breadth-first search, a tail launch for each level",
    source: include_str!("../../nested/bfs/bfs.grid"),
    cuda: [include_str!("../../nested/bfs/nested.cu"), include_str!("../../nested/bfs/flat.cu")],
    headers: &[("search.h", include_str!("../../nested/bfs/search.h"))],
    pending_launches: 32_768,
    cases,
    load,
    check,
};

const THREADS: u32 = 256;

/// The number of an input is the first vertex.
fn cases(size: Size) -> Vec<Case> {
    Graph::cases(size, &[0], |_| vec![])
}

struct Bfs {
    place: Place,
    kernel: Kernel,
    source: u32,
    offsets: Buffer<u32>,
    targets: Buffer<u32>,
    levels: Buffer<u32>,
    queues: [Buffer<u32>; 2],
    counts: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let device = &place.device;
    let offsets = input.array(0)?;
    let vertices = offsets.len() - 1;
    Ok(Box::new(Bfs {
        place: place.clone(),
        kernel: place.kernel("visit")?,
        source: input.number(0)?,
        offsets: Buffer::from_slice(device, offsets)?,
        targets: Buffer::from_slice(device, input.array(1)?)?,
        levels: Buffer::alloc(device, vertices)?,
        queues: [Buffer::alloc(device, vertices)?, Buffer::alloc(device, vertices)?],
        counts: Buffer::alloc(device, 3)?,
    }))
}

impl Work for Bfs {
    fn reset(&mut self) -> anyhow::Result<()> {
        let mut levels = vec![u32::MAX; self.levels.len()];
        levels[self.source as usize] = 0;
        self.levels.copy_from_host(&levels)?;
        self.queues[0].fill(self.source)?;
        Ok(self.counts.copy_from_host(&[1, 0, 0])?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let [first, second] = &mut self.queues;
        let arguments = [
            Arg::Fields(vec![Arg::from(&self.offsets), Arg::from(&self.targets)]),
            Arg::Fields(vec![
                Arg::from(&mut self.levels),
                Arg::Fields(vec![Arg::from(first), Arg::from(second)]),
                Arg::from(&mut self.counts),
            ]),
            Arg::from(0u32),
        ];
        self.place.run(&self.kernel, &LaunchConfig::new(1, THREADS), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.levels.to_vec()?)
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let graph = [input.array(0)?, input.array(1)?];
    let reached = check_distances(graph, |_| 1, input.number(0)?, result)?;
    let levels = result.iter().filter(|level| **level != u32::MAX).max().unwrap_or(&0);
    Ok(format!("{reached} vertices reached, {levels} levels"))
}
