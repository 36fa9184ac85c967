//! `--check`: detects incorrect memory accesses and synchronisation in kernels, and explains them.
//!
//! The executor reports events (memory, launches, blocks) to a [`Detector`] and each block's thread events to a
//! [`BlockCheck`]. From these the detector tracks
//! - which bytes are initialised (`shadow`),
//! - which threads accessed each word last (`shadow`), and
//! - the order of events (`order`): program order, block barriers, `sync_warp`, launches, streams, tail launches, host
//!   waits, and atomics between fences.
//!
//! Two accesses race if at least one of them writes, they are not both atomic, and neither is ordered before the
//! other, whether or not they overlapped in time. So the detector finds a race in any interleaving, unless shadow
//! memory has dropped one of the accesses: a shadow word keeps the last write and the last two reads by different
//! threads.
//!
//! # Duties of the executor
//! - It runs checked images thread by thread and never calls the serial entry.
//! - It leaves [`RED_ZONE_BYTES`](crate::abi::RED_ZONE_BYTES) unused after each allocation and between static and
//!   dynamic shared memory, and delays reuse of freed memory, so that stray accesses do not hit a neighbour. Images
//!   do the same after each variable, and also before each static.
//! - It registers an image's variables and strings. If the image has code of other compilers, it first registers the
//!   writable and constant segments as [`Memory::Image`].
//! - On [`Verdict::Stop`] it ends the grid instead of returning to the thread.
//!
//! # Not reported
//! - Leaks: memory from `malloc` lives as long as the device, as on a GPU, and a later kernel may use or free it.
//! - Copies of structs and arrays with parts that are not set: the copy counts as set where it lies in memory.
//!
//! A block's threads all run on one worker, so [`BlockCheck`] needs no lock; [`Detector`] is shared.

mod atomics;
mod block;
mod checker;
mod clock;
mod explain;
mod locals;
mod memory;
mod order;
mod overlap;
mod render;
mod repeats;
mod report;
mod shadow;
mod strings;
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

/// Options of the detector.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of distinct reports kept; further ones are only counted.
    pub report_limit: usize,
    /// Number of polls without progress anywhere on the device after which a loop that only reads memory counts as
    /// waiting forever.
    pub idle_polls: u64,
    /// Whether images report their fences.
    pub fences: Fences,
}

impl Default for Options {
    fn default() -> Self {
        Options { report_limit: 20, idle_polls: 1 << 22, fences: Fences::Traced }
    }
}

/// How the detector learns of fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fences {
    /// The image reports them ([`abi::ACCESS_FENCE`](crate::abi::ACCESS_FENCE)).
    Traced,
    /// The image does not: the detector assumes a fence before and after each atomic, and finds fewer races.
    Implied,
}

/// Whether the thread may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It may.
    Continue,
    /// The executor must end the grid: the access is outside the program's memory, or the wait is endless.
    Stop,
}

/// Identifies a launched grid until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GridId(u32);

/// Kernel data for reports.
#[derive(Debug)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// Source file names, by the file number of a [`Location`].
    pub sources: Vec<String>,
    /// The variables in its memory, from its image.
    pub memory: KernelMemory,
}

/// A launch by the host or a thread.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Arc<KernelInfo>,
    /// Blocks of the grid: x, y, z.
    pub grid_dim: [u32; 3],
    /// Threads of a block: x, y, z.
    pub block_dim: [u32; 3],
    /// Address range of the parameter buffer.
    pub parameters: Range<usize>,
}

/// The stream of a launch from a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceStream {
    /// The block's default stream: launches of all its threads run one after another.
    Default,
    /// After the parent grid and all its other descendants.
    Tail,
    /// Unordered.
    FireAndForget,
    /// A stream created by the device, with a number that is never reused.
    Created(u64),
}

/// Kind of a memory range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Allocated by the host.
    Buffer,
    /// Allocated by a kernel's `malloc` at this location.
    Heap(Location),
    /// A segment of an image: any data outside the variables that the image lists.
    Image,
    /// A `static`.
    Static,
    /// A string of an image.
    String,
}

/// The operation that a thread waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// `sync_threads()` at this location.
    Barrier(Location),
    /// A warp operation at this location.
    Warp(Location),
}

/// Collects events and reports errors in them.
#[derive(Debug)]
pub struct Detector {
    options: Options,
    memory: RwLock<memory::Table>,
    /// Changes with `memory`, to invalidate the blocks' caches.
    memory_version: AtomicU64,
    order: RwLock<order::Order>,
    variables: Mutex<clock::Variables>,
    /// Whether any thread has published through an atomic; until then, atomics take no lock.
    published: AtomicBool,
    reports: Mutex<report::Collection>,
    idle: waits::Idle,
    overlaps: Mutex<overlap::Overlaps>,
    /// Tables of ended blocks, for reuse.
    repeats: Mutex<Vec<Repeats>>,
}

impl Detector {
    /// Creates a detector.
    pub fn new(options: Options) -> Arc<Detector> {
        Arc::new(Detector {
            memory: RwLock::default(),
            memory_version: AtomicU64::new(1),
            order: RwLock::default(),
            variables: Mutex::default(),
            published: AtomicBool::new(false),
            reports: Mutex::new(report::Collection::new(options.report_limit)),
            idle: waits::Idle::new(options.idle_polls),
            overlaps: Mutex::default(),
            repeats: Mutex::default(),
            options,
        })
    }

    /// Kernels may use this memory from now on. `initialised`: whether reads before the first write are valid.
    pub fn allocated(&self, start: usize, bytes: usize, memory: Memory, initialised: bool) {
        self.write_memory().add(start, bytes, memory, initialised);
        self.memory_version.fetch_add(1, Ordering::Release);
    }

    /// The host named the allocation that starts at an address.
    pub fn named(&self, start: usize, name: &str) {
        self.read_memory().set_name(start, name);
    }

    /// Threads of any block will have their stacks at these addresses.
    pub fn stacks(&self, addresses: Range<usize>) {
        self.write_memory().stacks.push(addresses);
    }

    /// Adds a `static` of an image; its `offset` is the address.
    pub fn static_variable(&self, variable: &Variable) {
        self.write_memory().add_static(variable);
        self.memory_version.fetch_add(1, Ordering::Release);
    }

    /// Memory was copied; the destination becomes uninitialised where the source is.
    pub fn copied(&self, from: usize, to: usize, bytes: usize) {
        let memory = self.read_memory();
        let (Some(source), Some(target)) = (memory.find(from), memory.find(to)) else { return };
        let end = from.saturating_add(bytes).min(source.end());
        for range in source.unwritten(from..end) {
            let start = to + (range.start - from);
            target.set_unwritten(start..start + range.len());
        }
    }

    /// The allocation at `start` was freed; unknown addresses are ignored. `location` is the kernel's `free`, or 0
    /// for the host.
    pub fn freed(&self, start: usize, location: Location) {
        self.write_memory().free(start, location);
        self.memory_version.fetch_add(1, Ordering::Release);
    }

    /// The host wrote these bytes. Host copies wait for all earlier launches, so they race with none.
    pub fn host_wrote(&self, start: usize, bytes: usize) {
        if let Some(allocation) = self.read_memory().find(start) {
            allocation.host_wrote(start, bytes);
        }
    }

    /// The host launched a grid into one of its streams; stream numbers are never reused.
    pub fn host_launch(&self, launch: Launch, stream: u64) -> GridId {
        GridId(self.write_order().host_launch(launch, stream))
    }

    /// The host made `stream` wait for all launches into `other` except the last `later`.
    pub fn host_stream_waits(&self, stream: u64, other: u64, later: u64) {
        let later = u32::try_from(later).unwrap_or(u32::MAX);
        self.write_order().host_stream_waits(stream, other, later);
    }

    /// The host waited for all launches into the stream (`None`: into all its streams).
    pub fn host_waited(&self, stream: Option<u64>) {
        let mut order = self.write_order();
        order.host_waited(stream);
        if order.forget_if_idle() {
            lock(&self.variables).clear();
            self.published.store(false, Ordering::Relaxed);
        }
    }

    /// The grid starts: everything that it waited for has ended. Must precede its blocks.
    pub fn grid_started(&self, grid: GridId) {
        self.write_order().grid_started(grid.0);
        self.idle.progress();
    }

    /// The grid and its descendants have ended. Its identifier is not used again.
    pub fn grid_ended(&self, grid: GridId) {
        self.write_order().grid_ended(grid.0);
        lock(&self.overlaps).grid_ended(grid.0);
        self.idle.progress();
    }

    /// A block starts. `index` is its `block_idx`; `static_shared` and `dynamic_shared` are the addresses of its shared
    /// memory.
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

    /// The findings so far, in the order found.
    pub fn reports(&self) -> Vec<Report> {
        lock(&self.reports).reports()
    }

    /// Number of distinct findings beyond the limit.
    pub fn further_reports(&self) -> u64 {
        lock(&self.reports).further()
    }

    /// Takes the findings so far.
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
