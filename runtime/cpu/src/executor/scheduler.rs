//! Decides which grid runs when: streams, joins, tail launches and the limit of pending launches.
//!
//! Every launched grid that has not ended is a [`Node`]. A node counts what it still waits for: 1 for its own blocks
//! and 1 for each child that has not ended. When the count reaches 0, its tail launches run as children, one after
//! another. Then the node has ended: its stream continues, and its parent's count drops by one.
//!
//! A node whose blocks have ended only joins its children. If nothing else depends on it (no stream, no further tail
//! launch), its parent adopts them: the node becomes a forwarding address, which is removed with the last child that
//! refers to it as its parent. So a chain of any length occupies only a few nodes.
//!
//! One lock protects all of this; a worker takes it once for several blocks.

mod blocks;
mod created;
mod running;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use slab::Slab;

use super::grid::{Grid, GridPointer, Tree};
use crate::fault::CpuFault;
use crate::hooks::{BlockHooks, GridId, Hooks, LaunchEvent, LaunchOrder, ThreadPosition};
use crate::seed::{Permutation, Random};
use blocks::Blocks;

pub(crate) type NodeId = usize;
pub(crate) type StreamId = usize;

/// Maximum spare grids kept for reuse.
const MAX_SPARE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// In a stream or in the ready queue.
    Waiting,
    /// Some of its blocks have started.
    Running,
    /// All its blocks have ended.
    Joining,
    /// Replaced by its parent, which counts its children.
    Forwarded,
}

#[derive(Debug)]
struct Node {
    id: GridId,
    phase: Phase,
    /// The node that counts this one, possibly a forwarding address. `None` for a launch from the host.
    parent: Option<NodeId>,
    /// Number of nodes whose `parent` is this one.
    references: u32,
    pending: u64,
    stream: Option<StreamId>,
    /// Waiting tail launches: only their grids, because a grid may make any number of them.
    tails: VecDeque<Box<Grid>>,
    /// Present until its blocks have ended.
    grid: Option<GridPointer>,
    tree: Arc<Tree>,
    limit: Option<Arc<WorkerLimit>>,
    /// Blocks that have not started.
    blocks: Blocks,
    /// Blocks that have not ended.
    blocks_left: u64,
    /// The grid that ended before this one could start.
    after: Option<GridId>,
}

/// Limits the number of workers that run a partition's grids at the same time.
#[derive(Debug)]
pub(crate) struct WorkerLimit {
    pub(crate) max: u32,
    /// Modified only under the scheduler's lock.
    active: AtomicU32,
}

impl WorkerLimit {
    pub(crate) fn new(max: u32) -> WorkerLimit {
        WorkerLimit { max, active: AtomicU32::new(0) }
    }

    fn is_free(&self) -> bool {
        self.active.load(Ordering::Relaxed) < self.max
    }
}

/// An entry in a stream's queue.
#[derive(Debug)]
enum Entry {
    Grid(NodeId),
    /// Blocks the entries behind it until marks in other streams are reached; cancelling opens it.
    Gate(Gate),
}

/// Number of marks not reached yet. Modified only under the scheduler's lock.
type Gate = Arc<AtomicU32>;

#[derive(Debug, Default)]
struct Stream {
    queue: VecDeque<Entry>,
    running: Option<NodeId>,
    /// Whether more may be launched into it.
    open: bool,
    /// State of a host stream.
    host: Option<HostStream>,
}

#[derive(Debug, Default)]
struct HostStream {
    /// Number of launches and gates submitted.
    submitted: u64,
    finished: u64,
    /// Number of launches submitted.
    launched: Arc<AtomicU64>,
    /// Number of finished entries that a host thread waits for; 0 if none waits.
    awaited: u64,
    /// Fault of the first grid that failed since the last report; later entries of the stream are dropped.
    failure: Option<Box<CpuFault>>,
    /// Live trees in order, for cancelling.
    trees: VecDeque<Arc<Tree>>,
    /// Points not reached yet, in order.
    marks: VecDeque<Point>,
}

/// A point that a stream has yet to reach.
#[derive(Debug)]
struct Point {
    /// Number of submitted entries before it.
    after: u64,
    mark: Mark,
    /// Gates that wait for it, with their streams.
    gates: Vec<(StreamId, Gate)>,
}

/// When the stream reached a point; empty until then.
pub(crate) type Mark = Arc<OnceLock<Instant>>;

/// A mark and its stream.
#[derive(Clone, Debug)]
pub(crate) struct MarkIn {
    pub(crate) stream: StreamId,
    pub(crate) mark: Mark,
    /// Number of launches into the stream before the mark, and its current counter.
    launches: u64,
    launched: Arc<AtomicU64>,
}

/// Blocks of a grid for one worker.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) node: NodeId,
    pub(crate) grid: GridPointer,
    /// Number of the first block, before the grid's permutation.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Whether no other blocks may start until these have ended.
    exclusive: bool,
}

/// A nested launch.
#[derive(Debug)]
pub(crate) struct NestedLaunch {
    pub(crate) parent: NodeId,
    pub(crate) launcher: ThreadPosition,
    pub(crate) order: LaunchOrder,
    pub(crate) grid: Box<Grid>,
}

/// Nested launches that have not started.
#[derive(Debug)]
pub(crate) struct Pending {
    count: AtomicU64,
    /// Maximum; 0 is unlimited.
    limit: AtomicU64,
}

impl Pending {
    pub(crate) fn new(limit: u64) -> Pending {
        Pending { count: AtomicU64::new(0), limit: AtomicU64::new(limit) }
    }

    /// Reserves a place; false if the pool is full.
    pub(crate) fn reserve(&self) -> bool {
        let limit = self.limit();
        let more = |count: u64| (limit == 0 || count < limit).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(crate) fn release(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set_limit(&self, launches: u64) {
        self.limit.store(launches, Ordering::Relaxed);
    }

    /// The count, if the pool is unlimited.
    pub(crate) fn unbounded(&self) -> Option<u64> {
        (self.limit() == 0).then(|| self.count.load(Ordering::Relaxed))
    }
}

pub(crate) struct Scheduler {
    nodes: Slab<Node>,
    streams: Slab<Stream>,
    /// Maximum number of nodes and of streams that ever existed at the same time.
    high_water: (usize, usize),
    /// Streams created by grids, by grid and handle.
    created: BTreeMap<(NodeId, u64), StreamId>,
    /// Handle of the next created stream.
    next_handle: u64,
    ready: VecDeque<NodeId>,
    #[expect(clippy::vec_box, reason = "grids move from list to list without being copied")]
    spare: Vec<Box<Grid>>,
    next_id: GridId,
    /// Number of waiting tail launches.
    waiting_tails: usize,
    /// Number of works that let no other blocks start. With a checker, these are the blocks of kernels that may wait
    /// for other blocks: they always find the others as with one worker, either ended or not started.
    exclusive: u32,
    pending: Arc<Pending>,
    random: Option<Random>,
    hooks: Option<Arc<dyn Hooks>>,
    workers: u64,
    /// Whether a host stream progressed, so that waiting host threads must check again.
    pub(crate) host_progress: bool,
    /// Whether workers must exit.
    pub(crate) closing: bool,
    /// Number of sleeping workers, and whether one was woken but has not checked yet.
    pub(crate) sleeping: u32,
    pub(crate) waking: bool,
}

impl Scheduler {
    pub(crate) fn new(
        workers: u64,
        pending: Arc<Pending>,
        seed: Option<u64>,
        hooks: Option<Arc<dyn Hooks>>,
    ) -> Scheduler {
        Scheduler {
            nodes: Slab::new(),
            streams: Slab::new(),
            high_water: (0, 0),
            created: BTreeMap::new(),
            next_handle: created::FIRST_HANDLE,
            ready: VecDeque::new(),
            spare: Vec::new(),
            next_id: 1,
            waiting_tails: 0,
            exclusive: 0,
            pending,
            random: seed.map(|seed| Random::new(seed, 1)),
            hooks,
            workers,
            host_progress: false,
            closing: false,
            sleeping: 0,
            waking: false,
        }
    }

    // ---- limits

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty() && self.exclusive == 0
    }

    /// Number of live grids and streams.
    pub(crate) fn live(&self) -> (usize, usize) {
        (self.nodes.len() + self.waiting_tails, self.streams.len())
    }

    /// Maximum number of grids and of streams that ever existed at the same time.
    pub(crate) fn high_water(&self) -> (usize, usize) {
        self.high_water
    }

    fn add_stream(&mut self, stream: Stream) -> StreamId {
        let id = self.streams.insert(stream);
        self.high_water.1 = self.high_water.1.max(self.streams.len());
        id
    }

    // ---- launching

    /// A grid for a new launch.
    pub(crate) fn spare_grid(&mut self) -> Box<Grid> {
        self.spare.pop().unwrap_or_else(|| Box::new(Grid::spare()))
    }

    /// Keeps a grid for another launch.
    pub(crate) fn recycle(&mut self, mut grid: Box<Grid>) {
        grid.tree = None;
        if self.spare.len() < MAX_SPARE {
            self.spare.push(grid);
        }
    }

    /// Numbers a launch and reports it to the checker.
    fn accept(
        &mut self,
        grid: &mut Grid,
        tree: &Arc<Tree>,
        launcher: Option<ThreadPosition>,
        check: Option<&mut (dyn BlockHooks + 'static)>,
        order: LaunchOrder,
    ) {
        grid.id = self.next_id;
        self.next_id += 1;
        grid.launched_by = order;
        grid.tree = Some(Arc::clone(tree));
        grid.order = match &mut self.random {
            Some(random) => Permutation::new(grid.blocks, random),
            None => Permutation::IDENTITY,
        };
        if let Some(hooks) = &self.hooks {
            let event = LaunchEvent {
                grid: grid.id,
                kernel: grid.name(),
                sources: tree.image.sources(),
                grid_dim: grid.grid_dim,
                block_dim: grid.block_dim,
                launcher,
                location: grid.location,
                order,
                parameters: (
                    grid.parameters.first() as usize,
                    grid.kernel().parameter_bytes as usize,
                ),
                memory: tree.image.memory(grid.descriptor),
            };
            hooks.on_launch(&event, check);
        }
    }

    /// Adds the node of an accepted launch.
    fn add(
        &mut self,
        grid: Box<Grid>,
        tree: Arc<Tree>,
        limit: Option<Arc<WorkerLimit>>,
        parent: Option<NodeId>,
    ) -> NodeId {
        if let Some(parent) = parent {
            self.nodes[parent].references += 1;
        }
        let node = self.nodes.insert(Node {
            id: grid.id,
            phase: Phase::Waiting,
            parent,
            references: 0,
            pending: 1,
            stream: None,
            tails: VecDeque::new(),
            // Not divided among workers in a partition, which may use any of them, nor with a seed, which fixes the order.
            blocks: Blocks::new(&grid, self.workers, self.random.is_some() || limit.is_some()),
            blocks_left: grid.blocks,
            grid: Some(GridPointer::new(grid)),
            tree,
            limit,
            after: None,
        });
        self.high_water.0 = self.high_water.0.max(self.nodes.len());
        node
    }

    /// Adds the node of an accepted nested launch.
    fn add_nested(&mut self, grid: Box<Grid>, parent: NodeId) -> NodeId {
        let tree = Arc::clone(&self.nodes[parent].tree);
        let limit = self.nodes[parent].limit.clone();
        self.add(grid, tree, limit, Some(parent))
    }

    pub(crate) fn launch_host(
        &mut self,
        stream: StreamId,
        mut grid: Box<Grid>,
        tree: Arc<Tree>,
        limit: Option<Arc<WorkerLimit>>,
    ) {
        self.accept(&mut grid, &tree, None, None, LaunchOrder::Host(stream));
        let node = self.add(grid, Arc::clone(&tree), limit, None);
        if let Some(host) = &mut self.streams[stream].host {
            host.submitted += 1;
            host.launched.fetch_add(1, Ordering::Relaxed);
            if host.failure.is_some() {
                tree.stop();
            }
            host.trees.push_back(tree);
        }
        self.enter_stream(node, stream);
    }

    /// Launches a grid with a reserved place. `block_stream`: the launching block's default stream, once created.
    /// `check`: that block's checker.
    pub(crate) fn launch_nested(
        &mut self,
        launch: NestedLaunch,
        check: Option<&mut (dyn BlockHooks + 'static)>,
        block_stream: &mut Option<StreamId>,
    ) {
        let NestedLaunch { parent, launcher, order, mut grid } = launch;
        let tree = Arc::clone(&self.nodes[parent].tree);
        self.accept(&mut grid, &tree, Some(launcher), check, order);
        if order == LaunchOrder::Tail {
            self.nodes[parent].tails.push_back(grid);
            self.waiting_tails += 1;
            return;
        }
        let node = self.add_nested(grid, parent);
        self.nodes[parent].pending += 1;
        if order == LaunchOrder::BlockDefault {
            let stream = match *block_stream {
                Some(stream) => stream,
                None => {
                    let stream = self.add_stream(Stream { open: true, ..Stream::default() });
                    *block_stream = Some(stream);
                    stream
                }
            };
            self.enter_stream(node, stream);
        } else if let LaunchOrder::Created(handle) = order
            && let Some(&stream) = self.created.get(&(parent, handle))
        {
            self.enter_stream(node, stream);
        } else {
            self.ready.push_back(node);
        }
    }
}

impl Node {
    fn may_run(&self) -> bool {
        self.limit.as_ref().is_none_or(|limit| limit.is_free())
    }

    /// Whether it only joins its children, apart from its place in a stream.
    fn may_forward(&self) -> bool {
        self.phase == Phase::Joining && self.tails.is_empty() && self.parent.is_some()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        for (_, node) in self.nodes.iter_mut() {
            if let Some(grid) = node.grid.take() {
                // SAFETY: the workers have ended; the node had the only copy.
                drop(unsafe { grid.into_box() });
            }
        }
    }
}
