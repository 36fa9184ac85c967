//! Shortest paths from one vertex.

use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::graph::{Graph, check_distances, mix};
use super::{Case, Input, Nested, Place, Size, Version, Work};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "sssp",
    what: "shortest paths by rounds of relaxation, a tail launch for each round",
    source: include_str!("../../nested/sssp/sssp.grid"),
    cuda: [include_str!("../../nested/sssp/nested.cu"), include_str!("../../nested/sssp/flat.cu")],
    headers: &[("search.h", include_str!("../../nested/sssp/search.h"))],
    pending_launches: 32_768,
    cases,
    load,
    check,
};

const THREADS: u32 = 256;

/// The number of an input is the first vertex; behind the graph's arrays is the weight of each edge.
fn cases(size: Size) -> Vec<Case> {
    Graph::cases(size, &[0], |graph| vec![weights(graph)])
}

/// From 1 to 63.
fn weights(graph: &Graph) -> Vec<u32> {
    (0..graph.targets.len()).map(|edge| mix(edge as u64) as u32 % 63 + 1).collect()
}

struct Sssp {
    place: Place,
    kernel: Kernel,
    source: u32,
    offsets: Buffer<u32>,
    targets: Buffer<u32>,
    weights: Buffer<u32>,
    distances: Buffer<u32>,
    rounds: Buffer<u32>,
    queues: [Buffer<u32>; 2],
    counts: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let device = &place.device;
    let offsets = input.array(0)?;
    let vertices = offsets.len() - 1;
    Ok(Box::new(Sssp {
        place: place.clone(),
        kernel: place.kernel("run")?,
        source: input.number(0)?,
        offsets: Buffer::from_slice(device, offsets)?,
        targets: Buffer::from_slice(device, input.array(1)?)?,
        weights: Buffer::from_slice(device, input.array(2)?)?,
        distances: Buffer::alloc(device, vertices)?,
        rounds: Buffer::alloc(device, vertices)?,
        queues: [Buffer::alloc(device, vertices)?, Buffer::alloc(device, vertices)?],
        counts: Buffer::alloc(device, 3)?,
    }))
}

impl Work for Sssp {
    fn reset(&mut self) -> anyhow::Result<()> {
        let mut distances = vec![u32::MAX; self.distances.len()];
        distances[self.source as usize] = 0;
        self.distances.copy_from_host(&distances)?;
        self.rounds.fill(0)?;
        self.queues[0].fill(self.source)?;
        Ok(self.counts.copy_from_host(&[1, 0, 0])?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let [first, second] = &mut self.queues;
        let arguments = [
            Arg::Fields(vec![
                Arg::from(&self.offsets),
                Arg::from(&self.targets),
                Arg::from(&self.weights),
            ]),
            Arg::Fields(vec![
                Arg::from(&mut self.distances),
                Arg::from(&mut self.rounds),
                Arg::Fields(vec![Arg::from(first), Arg::from(second)]),
                Arg::from(&mut self.counts),
            ]),
            Arg::from(0u32),
        ];
        self.place.run(&self.kernel, &LaunchConfig::new(1, THREADS), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.distances.to_vec()?)
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let graph = [input.array(0)?, input.array(1)?];
    let weights = input.array(2)?;
    let reached = check_distances(graph, |edge| weights[edge], input.number(0)?, result)?;
    let longest = result.iter().filter(|distance| **distance != u32::MAX).max().unwrap_or(&0);
    Ok(format!("{reached} vertices reached, the longest path has length {longest}"))
}
