//! Graphs for the suite.

use std::sync::OnceLock;

use anyhow::{Context as _, ensure};

use super::{Case, Input, Size, Version};

/// A graph: the neighbours of vertex `v` are `targets[offsets[v]..offsets[v + 1]]`, in order. Each edge has both directions.
pub(super) struct Graph {
    pub(super) offsets: Vec<u32>,
    pub(super) targets: Vec<u32>,
}

/// Pseudo-random bits of a number (Steele, Lea and Flood's SplitMix64).
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Graph {
    /// Of edges in one direction, each `from << 32 | to`; loops and repetitions are dropped.
    fn new(vertices: u32, edges: impl Iterator<Item = u64>) -> Graph {
        let both = |edge: u64| [edge, edge.rotate_left(32)];
        let mut edges: Vec<u64> =
            edges.filter(|edge| edge >> 32 != edge & 0xffff_ffff).flat_map(both).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut offsets = vec![0; vertices as usize + 1];
        for edge in &edges {
            offsets[(edge >> 32) as usize + 1] += 1;
        }
        for vertex in 0..vertices as usize {
            offsets[vertex + 1] += offsets[vertex];
        }
        Graph { offsets, targets: edges.into_iter().map(|edge| edge as u32).collect() }
    }

    /// A random graph of 2^`scale` vertices with `degree` edges for each (Chakrabarti, Zhan and Faloutsos, "R-MAT", SDM 2004),
    /// with Graph 500's probabilities 0.57, 0.19, 0.19 and 0.05.
    pub(super) fn rmat(scale: u32, degree: u64) -> Graph {
        let edge = |number: u64| {
            let mut edge = 0;
            for level in 0..scale {
                // 16 bits for each level, 4 levels of each draw.
                let bits = mix(number * 8 + u64::from(level / 4)) >> (level % 4 * 16) & 0xffff;
                let (from, to) = match bits * 100 / 0x10000 {
                    0..57 => (0, 0),
                    57..76 => (0, 1),
                    76..95 => (1, 0),
                    _ => (1, 1),
                };
                edge = edge << 1 | from << 32 | to;
            }
            edge
        };
        Graph::new(1 << scale, (0..degree << scale).map(edge))
    }

    /// A square of `side * side` vertices, each with its neighbours on four sides.
    pub(super) fn grid(side: u32) -> Graph {
        let vertex = |x: u32, y: u32| u64::from(y * side + x);
        let points = (0..side).flat_map(move |y| (0..side).map(move |x| (x, y)));
        let edges = points.flat_map(move |(x, y)| {
            let right = (x + 1 < side).then(|| vertex(x, y) << 32 | vertex(x + 1, y));
            let up = (y + 1 < side).then(|| vertex(x, y) << 32 | vertex(x, y + 1));
            right.into_iter().chain(up)
        });
        Graph::new(side * side, edges)
    }

    /// A vertex with an edge to all others, which are a circle.
    pub(super) fn wheel(vertices: u32) -> Graph {
        let rim =
            (1..vertices).map(move |v| u64::from(v) << 32 | u64::from(v % (vertices - 1) + 1));
        Graph::new(vertices, (1..u64::from(vertices)).chain(rim))
    }

    /// All vertices are neighbours.
    pub(super) fn complete(vertices: u32) -> Graph {
        let from = |a: u32| (0..a).map(move |b| u64::from(a) << 32 | u64::from(b));
        Graph::new(vertices, (0..vertices).flat_map(from))
    }

    /// Named graphs of that size.
    fn all(size: Size) -> Vec<(String, &'static Graph)> {
        static FULL: OnceLock<[Graph; 2]> = OnceLock::new();
        static SMALL: OnceLock<[Graph; 3]> = OnceLock::new();
        let names = ["R-MAT of scale 20, 16 edges a vertex", "grid of 1,024 × 1,024"];
        let small = ["R-MAT of scale 9", "grid of 20 × 20", "wheel of 5,000"];
        let (names, graphs): (&[&str], &'static [Graph]) = match size {
            Size::Full => (&names, FULL.get_or_init(|| [Graph::rmat(20, 16), Graph::grid(1_024)])),
            Size::Small => (
                &small,
                SMALL.get_or_init(|| [Graph::rmat(9, 8), Graph::grid(20), Graph::wheel(5_000)]),
            ),
        };
        names.iter().map(|name| name.to_string()).zip(graphs).collect()
    }

    /// A case for each graph of that size. The arrays of its input are those of the graph, then `more`.
    pub(super) fn cases(
        size: Size,
        numbers: &[u64],
        more: impl Fn(&Graph) -> Vec<Vec<u32>>,
    ) -> Vec<Case> {
        let case = |(name, graph): (String, &Graph)| {
            let mut arrays = vec![graph.offsets.clone(), graph.targets.clone()];
            arrays.extend(more(graph));
            let input = Input { numbers: numbers.to_vec(), arrays };
            Case { name, input, launches: None, versions: &Version::ALL }
        };
        Graph::all(size).into_iter().map(case).collect()
    }
}

/// A vertex that no path reaches.
const UNREACHED: u32 = u32::MAX;

/// Whether these are the lengths of the shortest paths from `source`, all weights being positive: no edge makes a path shorter,
/// and each vertex has an edge from one that is closer by just its weight. Returns how many vertices are reached.
pub(super) fn check_distances(
    [offsets, targets]: [&[u32]; 2],
    weight: impl Fn(usize) -> u32,
    source: u32,
    distances: &[u32],
) -> anyhow::Result<usize> {
    let vertices = offsets.len() - 1;
    ensure!(distances.len() == vertices, "{} distances", distances.len());
    ensure!(distances[source as usize] == 0, "the source has no distance of 0");
    let mut has_predecessor = vec![false; vertices];
    has_predecessor[source as usize] = true;
    for vertex in 0..vertices {
        let distance = distances[vertex];
        if distance == UNREACHED {
            continue;
        }
        for edge in offsets[vertex] as usize..offsets[vertex + 1] as usize {
            let target = *targets.get(edge).context("an edge that is not there")? as usize;
            let through = distance + weight(edge);
            ensure!(
                distances[target] <= through,
                "vertex {target} is at {}, but at {through} through vertex {vertex}",
                distances[target]
            );
            has_predecessor[target] |= distances[target] == through;
        }
    }
    let mut reached = 0;
    for (vertex, has_predecessor) in has_predecessor.into_iter().enumerate() {
        let is_reached = distances[vertex] != UNREACHED;
        ensure!(!is_reached || has_predecessor, "no edge leads to vertex {vertex} at its distance");
        reached += usize::from(is_reached);
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_distances_are_seen() {
        let Graph { offsets, targets } = Graph::grid(3);
        let check = |distances: &[u32]| check_distances([&offsets, &targets], |_| 1, 0, distances);
        assert_eq!(check(&[0, 1, 2, 1, 2, 3, 2, 3, 4]).expect("right"), 9);
        assert!(check(&[0, 1, 2, 1, 2, 3, 2, 3, 5]).is_err());
        assert!(check(&[0, 1, 2, 1, 2, 3, 2, 3, 3]).is_err());
        assert!(check(&[0, 1, 2, 1, 2, 3, 2, 3, u32::MAX]).is_err());
    }

    #[test]
    fn graphs_have_both_directions_and_no_loops() {
        for graph in [Graph::rmat(6, 4), Graph::grid(5), Graph::wheel(9)] {
            let of =
                |v: usize| &graph.targets[graph.offsets[v] as usize..graph.offsets[v + 1] as usize];
            let mut edges = 0;
            for v in 0..graph.offsets.len() - 1 {
                assert!(of(v).is_sorted_by(|a, b| a < b));
                for &target in of(v) {
                    assert!(target as usize != v && of(target as usize).contains(&(v as u32)));
                    edges += 1;
                }
            }
            assert!(edges > 20 && edges == graph.targets.len());
        }
        assert_eq!(Graph::wheel(9).targets.len(), 32);
        assert_eq!(Graph::grid(5).targets.len(), 80);
    }
}
