//! A quadtree built by grids of four blocks, after CUDA's `cdpQuadtree`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context as _, ensure};
use gridlet_runtime::{Arg, Buffer, DeviceCopy, Element, LaunchConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

use super::unit;
use crate::example::{Example, Finding, Run};

/// The sample.
pub const EXAMPLE: Example = Example {
    name: "quadtree",
    source: include_str!("../../samples/quadtree.grid"),
    what: "builds a quadtree of 1,024 points, each block launches its node's four quarters",
    run,
};

const POINTS: usize = 1_024;
const MAX_DEPTH: u32 = 8;
/// The most points of a leaf above the greatest depth.
const MAX_POINTS: u32 = 16;
/// `THREADS` and `SHARED` of the program.
const THREADS: u32 = 128;
const SHARED: u32 = 64;
/// Pixels of a side of the picture.
const SIDE: u32 = 512;

type Point = [f32; 2];

/// `Node` of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct Node {
    lo: Point,
    hi: Point,
    begin: u32,
    end: u32,
    is_split: u32,
    unused: u32,
}

// SAFETY: numbers only, at the offsets of the program's `Node`, whose tail padding is `unused`.
unsafe impl DeviceCopy for Node {
    const ELEMENT: Element = Element::Struct("Node");
}

impl Node {
    fn center(&self) -> Point {
        [0, 1].map(|axis| (self.lo[axis] + self.hi[axis]) * 0.5)
    }

    /// Its quarter `q`, with these points.
    fn quarter(&self, q: usize, begin: u32, end: u32) -> Node {
        let mut child = Node { begin, end, is_split: 0, ..*self };
        for (axis, center) in self.center().into_iter().enumerate() {
            *(if q >> axis & 1 == 0 { &mut child.hi[axis] } else { &mut child.lo[axis] }) = center;
        }
        child
    }
}

/// Which quarter of a node a point lies in.
fn quarter_of(point: Point, center: Point) -> usize {
    usize::from(point[0] >= center[0]) + 2 * usize::from(point[1] >= center[1])
}

/// Nodes of all levels above `depth`.
fn nodes_above(depth: u32) -> usize {
    (4usize.pow(depth) - 1) / 3
}

/// Builds the tree over `points`, and sorts them leaf by leaf.
fn build(points: &mut [Point]) -> Vec<Node> {
    let mut nodes = vec![Node::default(); nodes_above(MAX_DEPTH + 1)];
    nodes[0] = root(points.len());
    for depth in 0..MAX_DEPTH {
        for index in 0..4usize.pow(depth) {
            let node = &mut nodes[nodes_above(depth) + index];
            if node.end - node.begin <= MAX_POINTS {
                continue;
            }
            node.is_split = 1;
            let node = *node;
            let own = &mut points[node.begin as usize..node.end as usize];
            own.sort_by_key(|point| quarter_of(*point, node.center()));
            let mut begin = node.begin;
            for q in 0..4 {
                let inside = own.iter().filter(|point| quarter_of(**point, node.center()) == q);
                let end = begin + inside.count() as u32;
                nodes[nodes_above(depth + 1) + 4 * index + q] = node.quarter(q, begin, end);
                begin = end;
            }
        }
    }
    nodes
}

fn root(points: usize) -> Node {
    Node { lo: [0.0; 2], hi: [1.0; 2], end: points as u32, ..Node::default() }
}

/// Leaves with points, and the depth of each.
fn leaves(nodes: &[Node]) -> Vec<(Node, u32)> {
    let levels = (0..=MAX_DEPTH).flat_map(|depth| {
        nodes[nodes_above(depth)..nodes_above(depth + 1)].iter().map(move |node| (*node, depth))
    });
    levels.filter(|(node, _)| node.is_split == 0 && node.end > node.begin).collect()
}

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let count = POINTS / run.shrink.max(1) as usize;
    // Denser towards a corner, so that the tree reaches its greatest depth.
    let input: Vec<Point> =
        (0..count).map(|_| [unit(&mut random).powi(5), unit(&mut random).powi(5)]).collect();
    let mut nodes = vec![Node::default(); nodes_above(MAX_DEPTH + 1)];
    nodes[0] = root(count);

    let mut nodes_buffer = Buffer::from_slice(run.device, &nodes)?;
    let mut first = Buffer::from_slice(run.device, &input)?;
    let mut second = Buffer::from_slice(run.device, &vec![[f32::NAN; 2]; count])?;
    let kernel = run.program.kernel("quadtree")?;
    let parameters = [0, MAX_DEPTH, MAX_POINTS, 0, 1].map(Arg::from);
    let arguments = [
        Arg::from(&mut nodes_buffer),
        Arg::Fields(vec![Arg::from(&mut first), Arg::from(&mut second)]),
        Arg::Fields(parameters.to_vec()),
        Arg::from(0u32),
    ];
    let config = LaunchConfig::new(1, THREADS).with_shared(SHARED);
    let milliseconds = run.timed(&kernel, &config, &arguments)?;

    let (nodes, points) = (nodes_buffer.to_vec()?, first.to_vec()?);
    check_partition(&nodes, &points, &input)?;
    let mut expected_points = input;
    let expected = build(&mut expected_points);
    // Padding bytes have no defined value.
    let same = |(found, wanted): (&Node, &Node)| Node { unused: 0, ..*found } == *wanted;
    if let Some(at) = (0..nodes.len()).find(|&at| !same((&nodes[at], &expected[at]))) {
        anyhow::bail!("node {at} is {:?}, on the host {:?}", nodes[at], expected[at]);
    }
    ensure!(points == expected_points, "the points of a leaf are in another order than the host's");

    let leaves = leaves(&nodes);
    let picture = run.pictures.join("quadtree.png");
    write_png(&picture, &leaves, &points)?;
    let splits = nodes.iter().filter(|node| node.is_split == 1).count();
    let deepest = leaves.iter().map(|(_, depth)| depth).max().unwrap_or(&0);
    Ok(Finding {
        milliseconds,
        checked: format!(
            "{splits} splits to depth {deepest} equal the host's, {count} points each in its leaf; picture in {}",
            picture.display()
        ),
    })
}

/// Checks that every point lies in exactly one leaf and that no leaf is too full.
fn check_partition(nodes: &[Node], points: &[Point], input: &[Point]) -> anyhow::Result<()> {
    let mut seen = vec![false; points.len()];
    for (leaf, depth) in leaves(nodes) {
        let in_leaf = leaf.begin as usize..leaf.end as usize;
        ensure!(in_leaf.end <= points.len(), "{leaf:?} has points that are not there");
        ensure!(
            leaf.end - leaf.begin <= MAX_POINTS || depth == MAX_DEPTH,
            "{leaf:?} at depth {depth} should be split"
        );
        for at in in_leaf {
            let point = points[at];
            let inside = |axis: usize| (leaf.lo[axis]..leaf.hi[axis]).contains(&point[axis]);
            ensure!(inside(0) && inside(1), "point {at}, {point:?}, is not inside {leaf:?}");
            ensure!(!std::mem::replace(&mut seen[at], true), "point {at} is in two leaves");
        }
    }
    ensure!(seen.iter().all(|seen| *seen), "a point is in no leaf");
    let sorted = |points: &[Point]| {
        let mut bits: Vec<_> = points.iter().map(|point| point.map(f32::to_bits)).collect();
        bits.sort_unstable();
        bits
    };
    ensure!(sorted(points) == sorted(input), "the points are not those that went in");
    Ok(())
}

/// Writes the picture, with grey borders of leaves and black points.
fn write_png(path: &Path, leaves: &[(Node, u32)], points: &[Point]) -> anyhow::Result<()> {
    let mut pixels = vec![255_u8; (SIDE * SIDE) as usize];
    let at = |x: f32| ((x * SIDE as f32) as u32).min(SIDE - 1);
    for (leaf, _) in leaves {
        let [(left, bottom), (right, top)] = [leaf.lo, leaf.hi].map(|[x, y]| (at(x), at(y)));
        for x in left..=right {
            for y in [bottom, top] {
                pixels[(y * SIDE + x) as usize] = 200;
            }
        }
        for y in bottom..=top {
            for x in [left, right] {
                pixels[(y * SIDE + x) as usize] = 200;
            }
        }
    }
    for [x, y] in points {
        pixels[(at(*y) * SIDE + at(*x)) as usize] = 0;
    }
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), SIDE, SIDE);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_the_wrong_place_is_seen() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let input: Vec<Point> = (0..200).map(|_| [unit(&mut random), unit(&mut random)]).collect();
        let mut points = input.clone();
        let nodes = build(&mut points);
        check_partition(&nodes, &points, &input).expect("the host's own tree");
        assert!(leaves(&nodes).len() > 4);
        let mut moved = points.clone();
        moved.swap(0, 199);
        assert!(check_partition(&nodes, &moved, &input).is_err());
        let mut copied = points.clone();
        copied[0] = copied[1];
        assert!(check_partition(&nodes, &copied, &input).is_err());
        let mut unsplit = nodes.clone();
        unsplit[0].is_split = 0;
        assert!(check_partition(&unsplit, &points, &input).is_err());
    }
}
