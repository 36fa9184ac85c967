//! The order of events that follows from the structure of launches.
//!
//! Grids form a tree whose root is the host. The order of two grids is decided where their paths diverge below their
//! lowest common ancestor: one path may contain a launch that waits for the other's (same stream, tail launch), or one
//! of the grids is the ancestor itself and acted before it launched the other. A parent never waits for a child, so a
//! child's accesses never precede later accesses of its parent.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::clock::{Clock, SharedClock, join};
use super::{DeviceStream, KernelInfo, Launch};
use crate::abi::Location;

/// Identifies an access: the thread, and its block's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) block: u32,
    pub(super) thread: u16,
    pub(super) time: u32,
}

/// A thread's current point: it knows its own accesses at times below `time`, and those of all threads of its block at
/// times below `barrier`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) block: u32,
    pub(super) thread: u16,
    pub(super) time: u32,
    pub(super) barrier: u32,
}

/// The host, root of the tree.
pub(super) const HOST: u32 = 0;

/// A grid's stream. All but created streams belong to one parent grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    /// Unordered.
    Free,
    Host(u64),
    /// The default stream of this block.
    Block(u32),
    /// The parent's tail launches.
    Tail,
    Created(u64),
}

#[derive(Debug)]
pub(super) struct Grid {
    pub(super) kernel: Option<Arc<KernelInfo>>,
    pub(super) block_dim: [u32; 3],
    pub(super) grid_dim: [u32; 3],
    /// Address range of the parameter buffer.
    pub(super) parameters: Range<usize>,
    pub(super) parent: u32,
    /// Point of the launching thread; `None` for the host.
    pub(super) launcher: Option<Point>,
    /// Location of the launch.
    pub(super) location: Location,
    depth: u32,
    /// A more distant ancestor, so that tree walks take logarithmic time.
    jump: u32,
    stream: Stream,
    /// Position in the stream.
    sequence: u32,
    /// The previous grid in the stream; `HOST` if none.
    previous: u32,
    /// Number of tail launches that this grid has made, and the last one.
    tails: u32,
    last_tail: u32,
    /// For launches by the host: how far the host or the stream had waited for other streams.
    waited: Waited,
    start: SharedClock,
    end: SharedClock,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) grid: u32,
    pub(super) index: [u32; 3],
}

/// By stream: sequence number below which all grids are known to have ended.
type Waited = Option<Arc<BTreeMap<u64, u32>>>;

#[derive(Debug, Default)]
struct StreamState {
    next: u32,
    last: u32,
    waited: Waited,
}

#[derive(Debug)]
pub(super) struct Order {
    grids: Vec<Grid>,
    blocks: Vec<Block>,
    /// The block and its time, by epoch; epoch 0 is none.
    epochs: Vec<(u32, u32)>,
    host_streams: BTreeMap<u64, StreamState>,
    created_streams: BTreeMap<u64, StreamState>,
    host_waited: Waited,
    /// Number of live grids.
    live: u64,
    /// Incremented at every reset; shadow words of older generations are empty.
    generation: u32,
}

impl Default for Order {
    fn default() -> Self {
        Order {
            grids: vec![host_root()],
            blocks: Vec::new(),
            epochs: vec![(u32::MAX, 0)],
            host_streams: BTreeMap::new(),
            created_streams: BTreeMap::new(),
            host_waited: None,
            live: 0,
            generation: 0,
        }
    }
}

fn host_root() -> Grid {
    Grid {
        kernel: None,
        block_dim: [1; 3],
        grid_dim: [1; 3],
        parameters: 0..0,
        parent: HOST,
        launcher: None,
        location: 0,
        depth: 0,
        jump: HOST,
        stream: Stream::Free,
        sequence: 0,
        previous: HOST,
        tails: 0,
        last_tail: HOST,
        waited: None,
        start: None,
        end: None,
    }
}

impl Order {
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    pub(super) fn grid(&self, grid: u32) -> &Grid {
        &self.grids[grid as usize]
    }

    pub(super) fn block(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    /// The block and time of an epoch.
    pub(super) fn epoch(&self, epoch: u32) -> (u32, u32) {
        self.epochs[epoch as usize]
    }

    pub(super) fn new_epoch(&mut self, block: u32, time: u32) -> u32 {
        self.epochs.push((block, time));
        index(self.epochs.len() - 1)
    }

    pub(super) fn new_block(&mut self, grid: u32, index_in_grid: [u32; 3]) -> (u32, SharedClock) {
        self.blocks.push(Block { grid, index: index_in_grid });
        (index(self.blocks.len() - 1), self.grids[grid as usize].start.clone())
    }

    pub(super) fn block_ended(&mut self, grid: u32, clock: &SharedClock) {
        join(&mut self.grids[grid as usize].end, clock);
    }

    pub(super) fn host_launch(&mut self, launch: Launch, stream: u64) -> u32 {
        let id = index(self.grids.len());
        let state = self.host_streams.entry(stream).or_default();
        let (sequence, previous) = (state.next, state.last);
        state.next += 1;
        state.last = id;
        let mut waited = state.waited.clone();
        join_waited(&mut waited, &self.host_waited);
        self.add(Grid {
            waited,
            ..new_grid(launch, HOST, Stream::Host(stream), sequence, previous)
        })
    }

    pub(super) fn host_stream_waits(&mut self, stream: u64, other: u64, later: u32) {
        let reached = self.reached(other, later);
        join_waited(&mut self.host_streams.entry(stream).or_default().waited, &reached);
    }

    pub(super) fn host_waited(&mut self, stream: Option<u64>) {
        let streams = match stream {
            Some(stream) => vec![stream],
            None => self.host_streams.keys().copied().collect(),
        };
        for stream in streams {
            let reached = self.reached(stream, 0);
            join_waited(&mut self.host_waited, &reached);
        }
    }

    /// The progress that a wait for the stream guarantees, excluding its last `later` launches.
    fn reached(&self, stream: u64, later: u32) -> Waited {
        let state = self.host_streams.get(&stream)?;
        let mut reached = state.waited.clone();
        join_waited(
            &mut reached,
            &Some(Arc::new(BTreeMap::from([(stream, state.next.saturating_sub(later))]))),
        );
        reached
    }

    /// Resets the order if all grids have ended and the host has waited for them: they precede everything that follows.
    pub(super) fn forget_if_idle(&mut self) -> bool {
        let waited = self.host_waited.as_deref();
        let all_waited = self.host_streams.iter().all(|(stream, state)| {
            state.next == 0
                || waited.and_then(|waited| waited.get(stream)).is_some_and(|n| *n == state.next)
        });
        let idle = self.live == 0 && all_waited;
        if idle {
            *self = Order { generation: self.generation.wrapping_add(1), ..Order::default() };
        }
        idle
    }

    /// A launch by a thread. `block_stream`: number of launches into the block's default stream, and the last one.
    pub(super) fn device_launch(
        &mut self,
        launch: Launch,
        launcher: Point,
        stream: DeviceStream,
        location: Location,
        block_stream: &mut (u32, u32),
        knows: SharedClock,
    ) -> u32 {
        let id = index(self.grids.len());
        let parent = self.blocks[launcher.block as usize].grid;
        let (stream, sequence, previous) = match stream {
            DeviceStream::FireAndForget => (Stream::Free, 0, HOST),
            DeviceStream::Default => {
                let (sequence, previous) = *block_stream;
                *block_stream = (sequence + 1, id);
                (Stream::Block(launcher.block), sequence, previous)
            }
            DeviceStream::Tail => {
                let parent = &mut self.grids[parent as usize];
                let place = (Stream::Tail, parent.tails, parent.last_tail);
                parent.tails += 1;
                parent.last_tail = id;
                place
            }
            DeviceStream::Created(handle) => {
                let state = self.created_streams.entry(handle).or_default();
                let place = (Stream::Created(handle), state.next, state.last);
                state.next += 1;
                state.last = id;
                place
            }
        };
        let grid = new_grid(launch, parent, stream, sequence, previous);
        self.add(Grid { launcher: Some(launcher), location, start: knows, ..grid })
    }

    fn add(&mut self, mut grid: Grid) -> u32 {
        let parent = self.grid(grid.parent);
        let jump = self.grid(parent.jump);
        grid.depth = parent.depth + 1;
        // Myers, "An applicative random-access stack": equal jumps merge into one twice as long.
        let equal = parent.depth - jump.depth == jump.depth - self.grid(jump.jump).depth;
        grid.jump = if equal && parent.depth > 0 { jump.jump } else { grid.parent };
        self.grids.push(grid);
        self.live += 1;
        index(self.grids.len() - 1)
    }

    pub(super) fn grid_started(&mut self, grid: u32) {
        let previous = match self.grid(grid) {
            Grid { previous: HOST, stream: Stream::Tail, parent, .. } => *parent,
            other => other.previous,
        };
        let known = self.grid(previous).end.clone();
        join(&mut self.grids[grid as usize].start, &known);
    }

    pub(super) fn grid_ended(&mut self, grid: u32) {
        self.live = self.live.saturating_sub(1);
        let (end, parent) = (self.grid(grid).end.clone(), self.grid(grid).parent);
        if parent != HOST {
            join(&mut self.grids[parent as usize].end, &end);
        }
    }

    /// Whether the access precedes the point.
    pub(super) fn before(&self, stamp: Stamp, point: &Point) -> bool {
        if stamp.block == point.block {
            return stamp.time < point.barrier
                || (stamp.thread == point.thread && stamp.time < point.time);
        }
        let (earlier, later) = (self.block(stamp.block).grid, self.block(point.block).grid);
        if earlier == later {
            return false;
        }
        match self.part(earlier, later) {
            // The earlier grid is the common ancestor: its access may follow its launch on the path to `later`.
            (None, Some(later)) => {
                let later = self.grid(later);
                later.stream == Stream::Tail
                    || later.launcher.is_some_and(|launcher| self.before(stamp, &launcher))
            }
            (Some(earlier), Some(later)) => self.waits(self.grid(later), self.grid(earlier)),
            // A parent never waits for its child.
            (_, None) => false,
        }
    }

    /// Whether `later`, a sibling of `earlier`, starts only after `earlier` and its descendants have ended.
    fn waits(&self, later: &Grid, earlier: &Grid) -> bool {
        if later.stream == earlier.stream && later.stream != Stream::Free {
            return earlier.sequence < later.sequence;
        }
        match (earlier.stream, later.stream) {
            (_, Stream::Tail) => true,
            (Stream::Host(stream), Stream::Host(_)) => later
                .waited
                .as_ref()
                .and_then(|waited| waited.get(&stream))
                .is_some_and(|done| earlier.sequence < *done),
            _ => false,
        }
    }

    /// Where the paths to two different grids diverge: the children of their lowest common ancestor on the way to each.
    /// `None` for a grid that is itself the ancestor.
    fn part(&self, mut a: u32, mut b: u32) -> (Option<u32>, Option<u32>) {
        let (depth_a, depth_b) = (self.grid(a).depth, self.grid(b).depth);
        if depth_a > depth_b {
            let child = self.lift(a, depth_b + 1);
            a = self.grid(child).parent;
            if a == b {
                return (Some(child), None);
            }
        } else if depth_b > depth_a {
            let child = self.lift(b, depth_a + 1);
            b = self.grid(child).parent;
            if a == b {
                return (None, Some(child));
            }
        }
        while self.grid(a).parent != self.grid(b).parent {
            let (jump_a, jump_b) = (self.grid(a).jump, self.grid(b).jump);
            (a, b) = if jump_a == jump_b {
                (self.grid(a).parent, self.grid(b).parent)
            } else {
                (jump_a, jump_b)
            };
        }
        (Some(a), Some(b))
    }

    /// The grid's ancestor at this depth.
    fn lift(&self, mut grid: u32, depth: u32) -> u32 {
        while self.grid(grid).depth > depth {
            let here = self.grid(grid);
            grid = if self.grid(here.jump).depth >= depth { here.jump } else { here.parent };
        }
        grid
    }
}

fn new_grid(launch: Launch, parent: u32, stream: Stream, sequence: u32, previous: u32) -> Grid {
    Grid {
        kernel: Some(launch.kernel),
        block_dim: launch.block_dim,
        grid_dim: launch.grid_dim,
        parameters: launch.parameters,
        parent,
        stream,
        sequence,
        previous,
        ..host_root()
    }
}

fn join_waited(into: &mut Waited, from: &Waited) {
    let Some(from) = from else { return };
    match into {
        None => *into = Some(Arc::clone(from)),
        Some(waited) if Arc::ptr_eq(waited, from) => {}
        Some(waited) => {
            let waited = Arc::make_mut(waited);
            for (&stream, &done) in from.iter() {
                let entry = waited.entry(stream).or_default();
                *entry = done.max(*entry);
            }
        }
    }
}

/// Adds a point to a possibly shared clock.
pub(super) fn add_point(clock: &mut SharedClock, point: &Point) {
    Arc::make_mut(clock.get_or_insert_with(|| Arc::new(Clock::default()))).add(point);
}

/// Indices are 32 bits to keep shadow words small; memory runs out long before they overflow.
fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
