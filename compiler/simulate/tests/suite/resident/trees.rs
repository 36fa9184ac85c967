//! Random trees of grids, compared with what CUDA's order of launches allows.
//!
//! `trees.grid` runs a tree from a description in memory, and stamps starts, ends and launches with a clock. Each grid checks
//! that it sees what its launcher and its predecessors wrote. Here the stamps are checked:
//! - a grid runs all its threads once if its launch succeeded, and otherwise not at all;
//! - a grid in a stream starts after its predecessor and everything that one launched;
//! - a tail launch starts after its launcher's grid and everything that one launched, and after earlier tail launches.
//!
//! `GRIDLET_FIRST_TREE=n` and `GRIDLET_TREES=n` choose other trees, and how many.

use std::ops::Range;

use gridlet_simulate::{Device, Grid, Options, Policy};

use super::{Nested, Root, Workers};

const NO_EDGE: u32 = u32::MAX;

/// A child's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Forget,
    Default,
    Tail,
    /// One of two streams that the launching thread creates.
    Created(u32),
}

/// The kernels, by their number in `trees.grid`.
const KERNELS: [(&str, &[Stream]); 5] = [
    ("leaf", &[]),
    ("forget", &[Stream::Forget]),
    (
        "any_stream",
        &[Stream::Forget, Stream::Default, Stream::Tail, Stream::Created(0), Stream::Created(1)],
    ),
    ("tails", &[Stream::Forget, Stream::Tail]),
    ("barriers", &[Stream::Forget, Stream::Default]),
];
const BARRIERS: usize = 4;

#[derive(Clone, Debug)]
struct Node {
    kernel: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    /// The launches of this grid, in the order in which each thread makes its own.
    edges: Range<usize>,
    edge: Option<usize>,
}

impl Node {
    fn blocks(&self) -> u32 {
        self.grid.iter().product()
    }

    fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    fn threads(&self) -> u32 {
        self.blocks() * self.block_threads()
    }
}

#[derive(Clone, Debug)]
struct Edge {
    child: usize,
    stream: Stream,
    /// The number of the launching thread in its grid.
    launcher: u32,
}

#[derive(Clone, Debug)]
struct Tree {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % end
    }
}

impl Tree {
    fn random(seed: u64) -> Tree {
        let mut random = Random::new(seed);
        let count = 2 + random.below(60) as usize;
        // Some trees are deep, some wide, some have only one kind of kernel.
        let width = 1 + random.below(8);
        let only = (random.below(3) == 0).then(|| random.below(5) as usize);
        let small = random.below(2) == 0;
        let root =
            Tree::node(&mut random, Some(only.filter(|kernel| *kernel != 0).unwrap_or(2)), small);
        let mut tree = Tree { nodes: vec![root], edges: vec![] };
        let mut at = 0;
        while at < tree.nodes.len() {
            let streams = KERNELS[tree.nodes[at].kernel].1;
            let first = tree.edges.len();
            let room = count.saturating_sub(tree.nodes.len()) as u32;
            let launches = if streams.is_empty() {
                0
            } else {
                random.below(width + 1).max(u32::from(at == 0)).min(room)
            };
            // All by one thread, or by any.
            let single = (random.below(2) == 0).then(|| random.below(tree.nodes[at].threads()));
            for _ in 0..launches {
                let child = tree.nodes.len();
                let mut node = Tree::node(&mut random, only, small);
                node.edge = Some(tree.edges.len());
                tree.nodes.push(node);
                let stream = streams[random.below(streams.len() as u32) as usize];
                let launcher = single.unwrap_or_else(|| random.below(tree.nodes[at].threads()));
                tree.edges.push(Edge { child, stream, launcher });
            }
            tree.nodes[at].edges = first..tree.edges.len();
            at += 1;
        }
        tree
    }

    fn node(random: &mut Random, kernel: Option<usize>, small: bool) -> Node {
        let kernel = kernel.unwrap_or_else(|| random.below(5) as usize);
        let (grid, block) = match random.below(if small { 3 } else { 8 }) {
            0 | 1 => ([1, 1, 1], [1, 1, 1]),
            2 => ([1, 1, 1], [1 + random.below(40), 1, 1]),
            3 => ([1, 1, 1], [1 + random.below(75), 1, 1]),
            4 => ([1 + random.below(12), 1, 1], [1, 1, 1]),
            5 => ([1 + random.below(5), 1, 1], [1 + random.below(40), 1, 1]),
            6 => ([1 + random.below(3), 1 + random.below(3), 1 + random.below(2)], [3, 2, 1]),
            _ => ([1, 1 + random.below(3), 1], [1 + random.below(4), 1 + random.below(4), 2]),
        };
        let threads: u32 = block.iter().product();
        let shared = if kernel == BARRIERS && random.below(2) == 0 { threads * 4 } else { 0 };
        Node { kernel, grid, block, shared, edges: 0..0, edge: None }
    }

    /// A grid and everything that it launches.
    fn subtree(&self, node: usize, to: &mut Vec<usize>) {
        to.push(node);
        for edge in self.nodes[node].edges.clone() {
            self.subtree(self.edges[edge].child, to);
        }
    }

    /// The launches that the same thread made before into the same stream.
    fn before(&self, node: usize, edge: usize) -> impl DoubleEndedIterator<Item = usize> {
        let own = &self.edges[edge];
        (self.nodes[node].edges.start..edge).filter(|at| {
            let other = &self.edges[*at];
            other.launcher == own.launcher && other.stream == own.stream
        })
    }

    /// The grids whose results the child of an edge sees.
    fn checks(&self, node: usize, edge: usize) -> Vec<usize> {
        let mut seen = vec![];
        match self.edges[edge].stream {
            Stream::Forget => {}
            Stream::Default | Stream::Created(_) => {
                if let Some(last) = self.before(node, edge).next_back() {
                    self.subtree(self.edges[last].child, &mut seen);
                }
            }
            Stream::Tail => {
                seen.push(node);
                for other in self.nodes[node].edges.clone() {
                    if self.edges[other].stream != Stream::Tail {
                        self.subtree(self.edges[other].child, &mut seen);
                    }
                }
                for other in self.before(node, edge) {
                    self.subtree(self.edges[other].child, &mut seen);
                }
            }
        }
        seen
    }
}

/// What a run left in memory.
struct Log {
    start: Vec<u32>,
    end: Vec<u32>,
    ran: Vec<u32>,
    launched: Vec<u32>,
    status: Vec<u32>,
}

impl Log {
    /// The stamp at which a grid and everything that it launched had ended.
    fn complete(&self, tree: &Tree, node: usize) -> u32 {
        let edges = tree.nodes[node].edges.clone().filter(|edge| self.status[*edge] == 0);
        let children = edges.map(|edge| self.complete(tree, tree.edges[edge].child));
        children.fold(self.end[node], u32::max)
    }

    /// Every violated rule.
    fn violations(&self, tree: &Tree, tight: bool) -> Vec<String> {
        let mut wrong = vec![];
        for (at, node) in tree.nodes.iter().enumerate() {
            let launched = node.edge.is_none_or(|edge| self.status[edge] == 0);
            let wanted = if launched { node.threads() } else { 0 };
            if self.ran[at] != wanted {
                wrong.push(format!("node {at}: {} threads ran, not {wanted}", self.ran[at]));
            }
            if let Some(edge) = node.edge
                && launched
                && self.start[at] < self.launched[edge]
            {
                wrong.push(format!("node {at} started before its launch"));
            }
        }
        for (at, node) in tree.nodes.iter().enumerate().filter(|(at, _)| self.ran[*at] > 0) {
            let edges = || node.edges.clone().filter(|edge| self.status[*edge] == 0);
            for edge in node.edges.clone() {
                let status = self.status[edge];
                if status != 0 && !(tight && status == 69) {
                    wrong.push(format!("edge {edge}: status {}", status as i32));
                }
            }
            let before_tails = edges()
                .filter(|edge| tree.edges[*edge].stream != Stream::Tail)
                .map(|edge| self.complete(tree, tree.edges[edge].child))
                .fold(self.end[at], u32::max);
            for edge in edges() {
                let own = &tree.edges[edge];
                let start = self.start[own.child];
                if own.stream == Stream::Tail && start < before_tails {
                    wrong.push(format!("tail {} of {at} starts too early", own.child));
                }
                for earlier in tree.before(at, edge).filter(|edge| self.status[*edge] == 0) {
                    let other = tree.edges[earlier].child;
                    if own.stream != Stream::Forget && start < self.complete(tree, other) {
                        let stream = own.stream;
                        wrong.push(format!(
                            "{} does not wait for {other} in {stream:?} of {at}",
                            own.child
                        ));
                    }
                }
                // Other threads of the block use the same default stream, and all threads the same tail stream.
                for other in edges().filter(|other| *other < edge) {
                    let (first, second) = (&tree.edges[other], own);
                    let block = |edge: &Edge| edge.launcher / node.block_threads();
                    let same = match (first.stream, second.stream) {
                        (Stream::Default, Stream::Default) => block(first) == block(second),
                        (Stream::Tail, Stream::Tail) => true,
                        _ => false,
                    };
                    if same
                        && start < self.complete(tree, first.child)
                        && self.start[first.child] < self.complete(tree, own.child)
                    {
                        wrong.push(format!("{} and {} of {at} overlap", first.child, own.child));
                    }
                }
            }
        }
        wrong
    }
}

/// Arrays of the world in device memory.
struct World {
    address: u64,
    status: u64,
    start: u64,
    end: u64,
    ran: u64,
    launched: u64,
}

impl World {
    fn new(device: &mut Device<'_>, tree: &Tree) -> World {
        let mut put = |words: &[u32]| {
            let address = device.allocate(words.len().max(1) * 4);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            device.write(address, &bytes);
            address
        };
        let mut nodes = vec![];
        let mut results = 0;
        for node in &tree.nodes {
            let edge = node.edge.map_or(NO_EDGE, |edge| edge as u32);
            nodes.extend([node.edges.start as u32, node.edges.len() as u32, results]);
            nodes.extend([node.threads(), edge, node.kernel as u32]);
            nodes.extend(node.grid.into_iter().chain(node.block));
            nodes.push(node.shared);
            results += node.threads();
        }
        let mut edges = vec![];
        let mut checks = vec![];
        for (at, node) in tree.nodes.iter().enumerate() {
            for edge in node.edges.clone() {
                let own = &tree.edges[edge];
                let seen = tree.checks(at, edge);
                let stream = match own.stream {
                    Stream::Forget => 0,
                    Stream::Default => 1,
                    Stream::Tail => 2,
                    Stream::Created(which) => 3 + which,
                };
                let first = checks.len() as u32;
                edges.extend([own.child as u32, stream, own.launcher, first, seen.len() as u32]);
                checks.extend(seen.iter().map(|node| *node as u32));
            }
        }
        let (nodes_at, edges_at, checks_at) = (put(&nodes), put(&edges), put(&checks));
        let per_node = vec![0; tree.nodes.len()];
        let given = put(&vec![0; tree.edges.len()]);
        let status = put(&vec![u32::MAX; tree.edges.len()]);
        let results_at = put(&vec![0; results as usize]);
        let start = put(&vec![u32::MAX; tree.nodes.len()]);
        let (end, ran) = (put(&per_node), put(&per_node));
        let launched = put(&vec![0; tree.edges.len()]);
        let clock = put(&[1]);
        let pointers = [
            nodes_at, edges_at, checks_at, given, status, results_at, start, end, ran, launched,
            clock,
        ];
        let mut world: Vec<u32> = vec![];
        world.extend(pointers.iter().flat_map(|at| [*at as u32, (*at >> 32) as u32]));
        world.push(results);
        let address = put(&world);
        World { address, status, start, end, ran, launched }
    }

    fn log(&self, device: &Device<'_>, tree: &Tree) -> Log {
        let nodes = |at| device.read_words(at, tree.nodes.len());
        let edges = |at| device.read_words(at, tree.edges.len());
        Log {
            start: nodes(self.start),
            end: nodes(self.end),
            ran: nodes(self.ran),
            launched: edges(self.launched),
            status: edges(self.status),
        }
    }
}

fn run(
    nested: &Nested,
    tree: &Tree,
    workers: &Workers,
    options: &Options,
) -> Result<usize, String> {
    let mut device = Device::new(&nested.program);
    let arena = nested.memory(&mut device, workers);
    let mut lost = 0;
    // The second run finds the arena as the first left it.
    for _ in 0..2 {
        let world = World::new(&mut device, tree);
        let mut parameters = world.address.to_le_bytes().to_vec();
        parameters.extend(0_u32.to_le_bytes());
        let root = &tree.nodes[0];
        let grid = Grid { grid: root.grid, block: root.block, shared: root.shared };
        let kernel = KERNELS[root.kernel].0;
        let launched = nested.launch(
            &mut device,
            arena,
            &Root { kernel, grid, parameters: &parameters },
            workers,
            options,
        );
        launched.map_err(|failure| failure.to_string())?;
        let log = world.log(&device, tree);
        lost += log.status.iter().filter(|status| **status == 69).count();
        let violations = log.violations(tree, workers.more_records < 1000);
        if !violations.is_empty() {
            return Err(violations.join("\n"));
        }
    }
    Ok(lost)
}

/// The number in an environment variable.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_trees_run_in_order() {
    let nested = Nested::new(include_str!("trees.grid"));
    let first = number("GRIDLET_FIRST_TREE", 0);
    let mut failed = vec![];
    let mut refused = 0;
    for seed in first..first + number("GRIDLET_TREES", 100) {
        let tree = Tree::random(seed);
        let mut random = Random::new(seed ^ 0xabcd);
        let tight = random.below(3) == 0;
        let workers = Workers {
            count: 1 + random.below(4),
            more_warps: random.below(3),
            more_records: if tight { random.below(20) } else { 1000 + random.below(1000) },
        };
        let options = Options {
            policy: Policy::ALL[random.below(6) as usize],
            weak: random.below(2) == 0,
            lockstep: random.below(2) == 0,
            // Some workers may start only when others have left.
            running_blocks: random.below(4),
            // The time that a round takes decides how many blocks the next one has.
            tick: [1, 100, u64::MAX][random.below(3) as usize],
            ..Options::seed(seed)
        };
        match run(&nested, &tree, &workers, &options) {
            Ok(lost) => refused += lost,
            Err(message) => {
                failed.push(format!("tree {seed}: {workers:?} {options:?}: {message}\n{tree:#?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{} trees:\n{}", failed.len(), failed.join("\n"));
    assert!(refused > 0, "no tree filled the launch memory");
}

/// The rules themselves: a run that breaks one of them is found.
#[test]
fn violations_are_found() {
    let node =
        |kernel, edges, edge| Node { kernel, grid: [1; 3], block: [1; 3], shared: 0, edges, edge };
    let edge = |child, stream| Edge { child, stream, launcher: 0 };
    let tree = Tree {
        nodes: vec![
            node(2, 0..3, None),
            node(0, 3..3, Some(0)),
            node(0, 3..3, Some(1)),
            node(0, 3..3, Some(2)),
        ],
        edges: vec![edge(1, Stream::Default), edge(2, Stream::Default), edge(3, Stream::Tail)],
    };
    let good = || Log {
        start: vec![1, 5, 8, 12],
        end: vec![7, 6, 11, 13],
        ran: vec![1; 4],
        launched: vec![2, 3, 4],
        status: vec![0; 3],
    };
    assert_eq!(good().violations(&tree, false), Vec::<String>::new());
    type Change = fn(&mut Log);
    let bad: [(&str, Change); 6] = [
        ("node 3: 0 threads ran, not 1", |log| log.ran[3] = 0),
        ("node 1 started before its launch", |log| log.start[1] = 1),
        ("2 does not wait for 1 in Default of 0", |log| log.start[2] = 5),
        ("1 and 2 of 0 overlap", |log| log.start[2] = 5),
        ("tail 3 of 0 starts too early", |log| log.start[3] = 10),
        ("edge 0: status 69", |log| (log.status[0], log.ran[1]) = (69, 0)),
    ];
    for (message, change) in bad {
        let mut log = good();
        change(&mut log);
        let found = log.violations(&tree, false);
        assert!(found.contains(&message.to_owned()), "`{message}` is not in {found:?}");
    }
}
