//! Triangle counting.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::graph::Graph;
use super::{Case, Input, Nested, Place, Size, Version, Work, in_parallel};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "triangles",
    what: "triangle counting, a grid for each vertex with many neighbours",
    source: include_str!("../../nested/triangles/triangles.grid"),
    cuda: [
        include_str!("../../nested/triangles/nested.cu"),
        include_str!("../../nested/triangles/flat.cu"),
    ],
    headers: &[("common.h", include_str!("../../nested/triangles/common.h"))],
    pending_launches: 65_536,
    cases,
    load,
    check,
};

/// `SLOTS` and `STRIDE` of the program, and vertices of a block.
const SLOTS: usize = 1024;
const STRIDE: usize = 4;
const VERTICES: u32 = 8;

/// The arrays of an input are those of the graph, each edge in one direction only.
fn cases(size: Size) -> Vec<Case> {
    let case = |name: &str, graph: &Graph| Case {
        name: name.to_string(),
        input: Input { numbers: vec![], arrays: one_direction(graph).to_vec() },
        launches: None,
        versions: &Version::ALL,
    };
    match size {
        Size::Small => vec![
            case("R-MAT of scale 9", &Graph::rmat(9, 8)),
            case("complete graph of 150", &Graph::complete(150)),
        ],
        Size::Full => vec![
            case("R-MAT of scale 18, 16 edges a vertex", &Graph::rmat(18, 16)),
            case("grid of 1,024 × 1,024", &Graph::grid(1_024)),
        ],
    }
}

/// Keeps the edges that lead to a vertex with more neighbours, or with as many and a greater number.
fn one_direction(graph: &Graph) -> [Vec<u32>; 2] {
    let rank = |v: u32| (graph.offsets[v as usize + 1] - graph.offsets[v as usize], v);
    let (mut offsets, mut targets) = (vec![0], Vec::new());
    for v in 0..graph.offsets.len() as u32 - 1 {
        let edges = graph.offsets[v as usize] as usize..graph.offsets[v as usize + 1] as usize;
        targets.extend(graph.targets[edges].iter().filter(|target| rank(**target) > rank(v)));
        offsets.push(targets.len() as u32);
    }
    [offsets, targets]
}

struct Triangles {
    place: Place,
    kernel: Kernel,
    vertices: u32,
    offsets: Buffer<u32>,
    targets: Buffer<u32>,
    totals: Buffer<u64>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let device = &place.device;
    let offsets = input.array(0)?;
    Ok(Box::new(Triangles {
        place: place.clone(),
        kernel: place.kernel("count")?,
        vertices: u32::try_from(offsets.len() - 1)?,
        offsets: Buffer::from_slice(device, offsets)?,
        targets: Buffer::from_slice(device, input.array(1)?)?,
        totals: Buffer::alloc(device, SLOTS * STRIDE)?,
    }))
}

impl Work for Triangles {
    fn reset(&mut self) -> anyhow::Result<()> {
        Ok(self.totals.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let graph =
            vec![Arg::from(&self.offsets), Arg::from(&self.targets), Arg::from(self.vertices)];
        let config = LaunchConfig::new(self.vertices.div_ceil(VERTICES), VERTICES * 32);
        self.place.run(&self.kernel, &config, &[Arg::Fields(graph), Arg::from(&mut self.totals)])
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        let totals = self.totals.to_vec()?;
        Ok(totals.into_iter().flat_map(|total| [total as u32, (total >> 32) as u32]).collect())
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let total = |words: &[u32]| u64::from(words[0]) + (u64::from(words[1]) << 32);
    let found: u64 = result.chunks_exact(2).map(total).sum();
    let expected = count(input.array(0)?, input.array(1)?);
    ensure!(found == expected, "{found} triangles instead of {expected}");
    Ok(format!("{found} triangles"))
}

/// Counts for each vertex the neighbours of its neighbours that are marked as its own.
fn count(offsets: &[u32], targets: &[u32]) -> u64 {
    const STEP: usize = 1024;
    let vertices = offsets.len() - 1;
    let of = |v: usize| &targets[offsets[v] as usize..offsets[v + 1] as usize];
    let total = AtomicU64::new(0);
    in_parallel((0..vertices).step_by(STEP).collect(), |first| {
        let mut marked = vec![false; vertices];
        let mut found = 0;
        for v in first..vertices.min(first + STEP) {
            of(v).iter().for_each(|target| marked[*target as usize] = true);
            let around = of(v).iter().flat_map(|target| of(*target as usize));
            found += around.filter(|target| marked[**target as usize]).count() as u64;
            of(v).iter().for_each(|target| marked[*target as usize] = false);
        }
        total.fetch_add(found, Ordering::Relaxed);
    });
    total.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_graph_has_all_triangles() {
        let [offsets, targets] = one_direction(&Graph::complete(10));
        assert_eq!(count(&offsets, &targets), 120);
        let [offsets, targets] = one_direction(&Graph::wheel(10));
        assert_eq!(count(&offsets, &targets), 9);
    }
}
