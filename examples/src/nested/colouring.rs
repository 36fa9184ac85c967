//! Greedy graph colouring.

use std::cmp::Reverse;

use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::graph::Graph;
use super::{Case, Input, Nested, Place, Size, Version, Work, equal};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "colouring",
    what: "greedy graph colouring, a grid for each vertex as soon as the vertices before it are coloured",
    source: include_str!("../../nested/colouring/colouring.grid"),
    cuda: [
        include_str!("../../nested/colouring/nested.cu"),
        include_str!("../../nested/colouring/flat.cu"),
    ],
    headers: &[("colours.h", include_str!("../../nested/colouring/colours.h"))],
    pending_launches: 262_144,
    cases,
    load,
    check,
};

const THREADS: u32 = 256;

/// The arrays of an input are those of the graph.
fn cases(size: Size) -> Vec<Case> {
    Graph::cases(size, &[], |_| vec![])
}

struct Colouring {
    place: Place,
    kernel: Kernel,
    vertices: u32,
    offsets: Buffer<u32>,
    targets: Buffer<u32>,
    colours: Buffer<u32>,
    waits: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let device = &place.device;
    let offsets = input.array(0)?;
    let vertices = offsets.len() - 1;
    Ok(Box::new(Colouring {
        place: place.clone(),
        kernel: place.kernel("colour")?,
        vertices: u32::try_from(vertices)?,
        offsets: Buffer::from_slice(device, offsets)?,
        targets: Buffer::from_slice(device, input.array(1)?)?,
        colours: Buffer::alloc(device, vertices)?,
        waits: Buffer::alloc(device, vertices)?,
    }))
}

impl Work for Colouring {
    fn reset(&mut self) -> anyhow::Result<()> {
        self.colours.fill(u32::MAX)?;
        Ok(self.waits.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let graph =
            vec![Arg::from(&self.offsets), Arg::from(&self.targets), Arg::from(self.vertices)];
        let state = vec![Arg::from(&mut self.colours), Arg::from(&mut self.waits)];
        let config = LaunchConfig::new(self.vertices.div_ceil(THREADS), THREADS);
        self.place.run(&self.kernel, &config, &[Arg::Fields(graph), Arg::Fields(state)])
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.colours.to_vec()?)
    }
}

/// Colours the vertices one after another, in the program's order.
fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let (offsets, targets) = (input.array(0)?, input.array(1)?);
    let neighbours =
        |v: u32| &targets[offsets[v as usize] as usize..offsets[v as usize + 1] as usize];
    let mut order: Vec<u32> = (0..offsets.len() as u32 - 1).collect();
    let rank = |v: u32| (neighbours(v).len(), v.wrapping_mul(0x9e37_79b1));
    order.sort_unstable_by_key(|v| Reverse(rank(*v)));
    let mut colours = vec![u32::MAX; order.len()];
    // The last vertex that saw each colour used.
    let mut used = vec![u32::MAX; order.len() + 1];
    for vertex in order {
        for &target in neighbours(vertex) {
            if let Some(used) = used.get_mut(colours[target as usize] as usize) {
                *used = vertex;
            }
        }
        let free = used.iter().position(|user| *user != vertex).unwrap_or_default();
        colours[vertex as usize] = free as u32;
    }
    equal(result, &colours)?;
    let most = colours.iter().max().map_or(0, |most| most + 1);
    Ok(format!("{most} colours, equal to the host's"))
}
