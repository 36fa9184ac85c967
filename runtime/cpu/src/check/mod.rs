//! `--check`: finds what a wrong kernel does and says it in words.
//!
//! The executor tells a [`Detector`] what happens (memory, launches, blocks) and each block's [`BlockCheck`]
//! what its threads do. From that the detector keeps
//! - for each byte, whether somebody wrote it (`shadow`),
//! - for each word, who touched it last (`shadow`), and
//! - what is ordered before what (`order`): program order, barriers of a block, `sync_warp`, launches, streams,
//!   tail launches, waits of the host, and atomics between fences.
//!
//! Two accesses race if one of them writes, they are not both atomic, and neither is ordered before the other:
//! whether they met in time does not matter. So a race is found in whatever order the threads ran, except where
//! a shadow word forgets: it keeps the last write and the last two reads by different threads.
//!
//! # What the executor does
//! - It runs checked images thread by thread (never the serial entry).
//! - It leaves [`RED_ZONE_BYTES`](crate::abi::RED_ZONE_BYTES) unused after each allocation and between static
//!   and dynamic shared memory, and reuses freed memory late, so that strays do not land in a neighbour. Images do
//!   the same behind each variable.
//! - It registers an image's writable and constant segments as [`Memory::Image`], then the variables in them.
//! - On [`Verdict::Stop`] it ends the grid instead of returning to the thread.
//!
//! # What is not reported
//! Memory from `malloc` that nobody frees: it lives as long as the device, as on a GPU, and a later kernel may use
//! it. Local variables that nobody wrote: the language has none.
//!
//! A block's threads run on one worker at a time, so [`BlockCheck`] needs no lock; [`Detector`] is shared.

mod atomics;
mod block;
mod checker;
mod clock;
mod explain;
mod locals;
mod memory;
mod order;
mod render;
mod repeats;
mod report;
mod shadow;
#[cfg(test)]
mod tests;
mod waits;

pub use block::BlockCheck;
pub use checker::Checker;
pub use render::{SourceLines, render, render_all};
pub use report::{ChainLink, Kind, OtherAccess, Place, Report};

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::abi::Location;
use crate::hooks::{KernelMemory, Variable};
use crate::sync::lock;
use repeats::Repeats;

/// How the detector behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Different reports that are kept; further ones are counted.
    pub report_limit: usize,
    /// Polls of loops that only look at memory, without progress anywhere, after which they are taken to wait
    /// for ever.
    pub idle_polls: u64,
    /// How fences are known.
    pub fences: Fences,
}

impl Default for Options {
    fn default() -> Self {
        Options { report_limit: 20, idle_polls: 1 << 22, fences: Fences::Traced }
    }
}

/// How fences are known to the detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fences {
    /// The image reports them ([`abi::ACCESS_FENCE`](crate::abi::ACCESS_FENCE)).
    Traced,
    /// It does not: each atomic is taken to have a fence before and after it. Finds fewer races.
    Implied,
}

/// Whether the thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It does.
    Continue,
    /// The grid cannot go on (the access would hit memory that is not the program's, or the wait is endless):
    /// the executor ends it.
    Stop,
}

/// A grid that was launched. Valid until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GridId(u32);

/// What reports say of a kernel.
#[derive(Debug)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// Source file names, by the file number of a [`Location`].
    pub sources: Vec<String>,
    /// What its image says of its memory.
    pub memory: KernelMemory,
}

/// A launch, by the host or a thread.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Arc<KernelInfo>,
    /// Blocks of the grid: x, y, z.
    pub grid_dim: [u32; 3],
    /// Threads of a block: x, y, z.
    pub block_dim: [u32; 3],
    /// Addresses of the parameter buffer.
    pub parameters: Range<usize>,
}

/// The stream of a launch by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceStream {
    /// The launches of the threads of one block run one after another.
    Default,
    /// After the grid and everything else it launched.
    Tail,
    /// Free.
    FireAndForget,
    /// A stream that the device created; the number is its own for all time.
    Created(u64),
}

/// What a range of memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Allocated by the host.
    Buffer,
    /// Allocated by `malloc` of a kernel at that line.
    Heap(Location),
    /// A segment of an image, for what is none of the variables that the image names.
    Image,
    /// A `static`.
    Static,
}

/// What a thread that does not run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// `sync_threads()` at that line.
    Barrier(Location),
    /// A warp operation at that line.
    Warp(Location),
}

/// Collects what happens and finds what is wrong with it.
#[derive(Debug)]
pub struct Detector {
    options: Options,
    memory: RwLock<memory::Table>,
    /// Changes whenever `memory` does, so that blocks know when what they remember of it is stale.
    memory_version: AtomicU64,
    order: RwLock<order::Order>,
    variables: Mutex<clock::Variables>,
    /// Whether any thread has published through an atomic; atomics cost a lock only from then on.
    published: AtomicBool,
    reports: Mutex<report::Collection>,
    idle: waits::Idle,
    /// Of blocks that have ended.
    repeats: Mutex<Vec<Repeats>>,
}

impl Detector {
    /// A detector that has seen nothing.
    pub fn new(options: Options) -> Arc<Detector> {
        Arc::new(Detector {
            memory: RwLock::default(),
            memory_version: AtomicU64::new(1),
            order: RwLock::default(),
            variables: Mutex::default(),
            published: AtomicBool::new(false),
            reports: Mutex::new(report::Collection::new(options.report_limit)),
            idle: waits::Idle::new(options.idle_polls),
            repeats: Mutex::default(),
            options,
        })
    }

    /// Memory that kernels may use from now on. `initialised`: whether reading it before a write is right.
    pub fn allocated(&self, start: usize, bytes: usize, memory: Memory, initialised: bool) {
        self.write_memory().add(start, bytes, memory, initialised);
        self.memory_version.fetch_add(1, Ordering::Release);
    }

    /// A `static` of an image; its `offset` is its address.
    pub fn static_variable(&self, variable: &Variable) {
        self.write_memory().add_static(variable);
        self.memory_version.fetch_add(1, Ordering::Release);
    }

    /// A copy from memory to memory was made: what nobody wrote there nobody wrote here.
    pub fn copied(&self, from: usize, to: usize, bytes: usize) {
        let memory = self.read_memory();
        let (Some(source), Some(target)) = (memory.find(from), memory.find(to)) else { return };
        let end = from.saturating_add(bytes).min(source.end());
        for range in source.unwritten(from..end) {
            let start = to + (range.start - from);
            target.set_unwritten(start..start + range.len());
        }
    }

    /// The allocation that starts there is gone. Unknown starts are ignored. `location` is the line of a
    /// kernel's `free`, 0 for the host.
    pub fn freed(&self, start: usize, location: Location) {
        self.write_memory().free(start, location);
        self.memory_version.fetch_add(1, Ordering::Release);
    }

    /// The host wrote these bytes (copies wait for all launches before them, so they race with none).
    pub fn host_wrote(&self, start: usize, bytes: usize) {
        if let Some(allocation) = self.read_memory().find(start) {
            allocation.host_wrote(start, bytes);
        }
    }

    /// The host launched a grid into one of its streams; a stream's number is its own for all time.
    pub fn host_launch(&self, launch: Launch, stream: u64) -> GridId {
        GridId(self.write_order().host_launch(launch, stream))
    }

    /// The host made `stream` wait for all that was launched into `other` but the last `later` launches.
    pub fn host_stream_waits(&self, stream: u64, other: u64, later: u64) {
        let later = u32::try_from(later).unwrap_or(u32::MAX);
        self.write_order().host_stream_waits(stream, other, later);
    }

    /// The host waited for all that was launched into the stream (`None`: into all its streams).
    pub fn host_waited(&self, stream: Option<u64>) {
        let mut order = self.write_order();
        order.host_waited(stream);
        if order.forget_if_idle() {
            lock(&self.variables).clear();
            self.published.store(false, Ordering::Relaxed);
        }
    }

    /// The grid starts: what it waited for has ended. Must precede its blocks.
    pub fn grid_started(&self, grid: GridId) {
        self.write_order().grid_started(grid.0);
        self.idle.progress();
    }

    /// The grid has ended, with all it launched. It is not named again.
    pub fn grid_ended(&self, grid: GridId) {
        self.write_order().grid_ended(grid.0);
        self.idle.progress();
    }

    /// A block starts. `index` is its `block_idx`; then come the address of its shared variables and its dynamic
    /// shared memory.
    pub fn block_started(
        self: &Arc<Self>,
        grid: GridId,
        index: [u32; 3],
        static_shared: usize,
        dynamic_shared: Range<usize>,
    ) -> BlockCheck {
        self.idle.progress();
        BlockCheck::new(Arc::clone(self), grid.0, index, static_shared, dynamic_shared)
    }

    /// What was found so far, in the order of finding.
    pub fn reports(&self) -> Vec<Report> {
        lock(&self.reports).reports()
    }

    /// How many different findings there were beyond the limit.
    pub fn further_reports(&self) -> u64 {
        lock(&self.reports).further()
    }

    /// Gives what was found and forgets it.
    pub fn take_reports(&self) -> Vec<Report> {
        lock(&self.reports).take()
    }

    fn read_memory(&self) -> RwLockReadGuard<'_, memory::Table> {
        self.memory.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write_memory(&self) -> RwLockWriteGuard<'_, memory::Table> {
        self.memory.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn read_order(&self) -> RwLockReadGuard<'_, order::Order> {
        self.order.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write_order(&self) -> RwLockWriteGuard<'_, order::Order> {
        self.order.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
