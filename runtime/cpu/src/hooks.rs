//! Events that the CPU device reports to a checker. Without a checker, each costs only a pointer test.

use std::ops::Range;
use std::sync::Arc;

use crate::abi::Location;

/// A grid's number: unique in its device, in launch order.
pub type GridId = u64;

/// Identifies a thread by its grid, block and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadPosition {
    /// The grid.
    pub grid: GridId,
    /// `block_idx`.
    pub block: [u32; 3],
    /// Number of the block in x, y, z order.
    pub block_number: u64,
    /// `thread_idx`.
    pub thread: [u32; 3],
    /// Number of the thread in its block, in the same order.
    pub thread_number: u32,
}

/// The stream of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchOrder {
    /// A host stream, by number.
    Host(usize),
    /// The default stream of the launching block.
    BlockDefault,
    /// After the launching grid and its other descendants.
    Tail,
    /// Unordered.
    FireAndForget,
    /// A stream created by the launching grid, by its handle, which is never reused.
    Created(u64),
}

/// A named variable in shared memory or in a parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name in the source.
    pub name: Arc<str>,
    /// Offset of its first byte.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
}

/// The variables of a kernel, as listed by a checked image; empty for other images.
#[derive(Clone, Debug, Default)]
pub struct KernelMemory {
    /// The shared variables of a block, by offset.
    pub shared: Arc<[Variable]>,
    /// The parts of the parameter buffer that the launcher must write, by offset.
    pub parameters: Arc<[Variable]>,
}

/// An accepted launch.
#[derive(Clone, Debug)]
pub struct LaunchEvent<'a> {
    /// The new grid.
    pub grid: GridId,
    /// Its kernel.
    pub kernel: &'a str,
    /// Source file names by the file number of a [`Location`]; empty if the loader was not given them.
    pub sources: &'a [String],
    /// Extents of the grid in blocks.
    pub grid_dim: [u32; 3],
    /// Extents of a block in threads.
    pub block_dim: [u32; 3],
    /// The launching thread; `None` for the host.
    pub launcher: Option<ThreadPosition>,
    /// Location of the launch; 0 for the host.
    pub location: Location,
    /// Its stream.
    pub order: LaunchOrder,
    /// Address and size of the parameter buffer that its threads read.
    pub parameters: (usize, usize),
    /// The kernel's variables.
    pub memory: KernelMemory,
}

/// Whether the grid continues after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It continues.
    Continue,
    /// It ends with [`super::FaultKind::Checked`].
    Stop,
}

/// A waiting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number of the thread in its block.
    pub thread_number: u32,
    /// `thread_idx`.
    pub thread: [u32; 3],
    /// Where it waits.
    pub location: Location,
    /// Whether it waits at `sync_threads()`; otherwise at a warp operation.
    pub at_barrier: bool,
}

/// A mistake in a warp operation, which has an undefined result on a GPU or waits forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpMistake {
    /// The mask lacks the calling lane.
    OwnLane {
        /// The mask.
        mask: u32,
    },
    /// This lane of the mask ran to the end of the kernel without the operation.
    Ended {
        /// The lane.
        lane: u32,
    },
    /// Another lane of the mask waits for this one with another mask or in another operation.
    Different {
        /// The mask.
        mask: u32,
        /// Number of the other thread in its block.
        other: u32,
        /// Where it waits.
        other_location: Location,
        /// Its mask.
        other_mask: u32,
    },
    /// A shuffle reads from this lane, which does not take part.
    Source {
        /// The lane.
        lane: u32,
        /// Whether the mask names it, so that it must have ended.
        named: bool,
    },
}

/// The events of a device with a checker, called on the thread that causes them, concurrently from several workers. No
/// method may panic or launch.
pub trait Hooks: Send + Sync {
    /// Global memory was allocated, uninitialised.
    fn on_alloc(&self, _address: usize, _bytes: usize) {}
    /// The host named global memory, for reports.
    fn on_name(&self, _address: usize, _name: &str) {}
    /// Threads will have their stacks at these addresses.
    fn on_stacks(&self, _addresses: Range<usize>) {}
    /// Global memory is freed.
    fn on_free(&self, _address: usize, _bytes: usize) {}
    /// The host wrote to global memory, after waiting for all uses of it.
    fn on_host_write(&self, _address: usize, _bytes: usize) {}
    /// An image with code of other compilers was loaded; reports one of its segments, which may hold their data.
    fn on_image_segment(&self, _address: usize, _bytes: usize) {}
    /// The segment or variable is no longer used.
    fn on_image_segment_gone(&self, _address: usize) {}
    /// A checked image was loaded; reports one of its statics, whose `offset` is its address, after its segment.
    fn on_static(&self, _variable: &Variable) {}
    /// A checked image was loaded; reports one of its strings, whose `offset` is its address.
    fn on_string_constant(&self, _variable: &Variable) {}
    /// A launch was accepted. Called in the order of grid numbers. `launcher`: the checker of the launching thread's
    /// block; `None` for the host.
    fn on_launch(
        &self,
        _launch: &LaunchEvent<'_>,
        _launcher: Option<&mut (dyn BlockHooks + 'static)>,
    ) {
    }
    /// A grid's first block is about to start. `after`: the grid that ended before it in its stream, or the grid that
    /// launched it as its tail.
    fn on_grid_start(&self, _grid: GridId, _after: Option<GridId>) {}
    /// All blocks of a grid have ended; its descendants may still run.
    fn on_grid_executed(&self, _grid: GridId) {}
    /// A grid, its descendants and its tail launches have ended.
    fn on_grid_end(&self, _grid: GridId) {}
    /// The host waited for all its launches into a stream; they have ended, possibly with a failure.
    fn on_host_wait(&self, _stream: usize) {}
    /// The host made a stream wait for all launches into another one except the last `later`.
    fn on_stream_wait(&self, _stream: usize, _other: usize, _later: u64) {}
    /// A block starts, with the address and size of its static and of its dynamic shared memory. Returns the receiver of
    /// the block's events.
    fn on_block_start(
        &self,
        _first_thread: ThreadPosition,
        _static_shared: (usize, usize),
        _dynamic_shared: (usize, usize),
    ) -> Option<Box<dyn BlockHooks>> {
        None
    }
}

/// The events of one block in order, called from the worker that runs it; threads are identified by number. No method
/// may panic or launch.
pub trait BlockHooks {
    /// A thread obtained a parameter buffer, which is still unwritten.
    fn on_parameter_buffer(&mut self, _address: usize, _bytes: usize) {}
    /// A launch by a thread was accepted.
    fn on_launch(&mut self, _thread: u32, _launch: &LaunchEvent<'_>) {}
    /// A thread starts; `stack` is the address and size of its stack.
    fn on_thread_start(&mut self, _thread: u32, _stack: (usize, usize)) {}
    /// A thread has returned.
    fn on_thread_end(&mut self, _thread: u32) {}
    /// The block has ended. `failed`: whether it was stopped.
    fn on_end(self: Box<Self>, _failed: bool) {}
    /// A thread is about to access memory; kinds as in [`crate::abi`].
    fn on_access(
        &mut self,
        _thread: u32,
        _address: usize,
        _bytes: u32,
        _kind: u32,
        _location: Location,
    ) -> Verdict {
        Verdict::Continue
    }
    /// A thread is about to access an array at an out-of-bounds index; `array` is its name.
    fn on_index(
        &mut self,
        _thread: u32,
        _index: i64,
        _count: u64,
        _kind: u32,
        _array: &str,
        _location: Location,
    ) {
    }
    /// A thread is about to print the string at an address, at most `limit` bytes of it.
    fn on_string(
        &mut self,
        _thread: u32,
        _address: usize,
        _limit: Option<usize>,
        _location: Location,
    ) -> Verdict {
        Verdict::Continue
    }
    /// A thread has copied memory, which it reported before as accesses with [`crate::abi::ACCESS_BYTES`].
    fn on_copied(&mut self, _from: usize, _to: usize, _bytes: usize) {}
    /// A thread called a function; reports one of its local variables that pointers may reach.
    fn on_local(&mut self, _thread: u32, _variable: &Variable, _location: Location) {}
    /// The function returns: the lifetimes of the thread's `count` youngest local variables end.
    fn on_locals_end(&mut self, _thread: u32, _count: u32) {}
    /// A thread arrived at `sync_threads()`.
    fn on_barrier(&mut self, _thread: u32, _location: Location) {}
    /// All live threads of the block continue from `sync_threads()`.
    fn on_barrier_release(&mut self) {}
    /// Lanes of a warp met in `sync_warp`. Other warp operations are not reported, because they order nothing.
    fn on_warp_sync(&mut self, _warp: u32, _lanes: u32) {}
    /// A thread made a mistake in a warp operation.
    fn on_warp_mistake(&mut self, _thread: u32, _mistake: WarpMistake, _location: Location) {}
    /// No thread of the block can make progress. The grid ends with [`super::FaultKind::Deadlock`].
    fn on_stuck(&mut self, _waiting: &[Waiting]) {}
    /// A thread is at the head of a loop that may wait forever.
    fn on_poll(&mut self, _thread: u32, _location: Location) -> Verdict {
        Verdict::Continue
    }
    /// A thread is at the head of a loop that terminates by itself.
    fn on_turn(&mut self, _thread: u32) {}
    /// The grid fails for a reason other than the checker's verdict.
    fn on_fault(&mut self, _thread: u32, _fault: &super::CpuFault) {}
}
