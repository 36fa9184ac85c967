//! What the CPU device tells a checker. Without one, nothing here costs more than a test of a pointer.

use std::sync::Arc;

use super::abi::Location;

/// A grid's number: unique in its device, in the order of the launches.
pub type GridId = u64;

/// Where something happens: a thread of a block of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadPosition {
    /// The grid.
    pub grid: GridId,
    /// `block_idx`.
    pub block: [u32; 3],
    /// The block, counted in the order of x, then y, then z.
    pub block_number: u64,
    /// `thread_idx`.
    pub thread: [u32; 3],
    /// The thread in its block, counted the same way.
    pub thread_number: u32,
}

/// Which stream a launch went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchOrder {
    /// A stream of the host, by its number.
    Host(u32),
    /// The default stream of the launching block.
    BlockDefault,
    /// After the launching grid and all it launched.
    Tail,
    /// Unordered.
    FireAndForget,
    /// A stream that the launching grid created, by its handle, which is its own for all time.
    Created(u64),
}

/// A part of a block's shared memory or of a parameter buffer, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// As the source has it.
    pub name: Arc<str>,
    /// Of its first byte.
    pub offset: usize,
    /// Its size.
    pub bytes: usize,
}

/// What the code of a checked image says of a kernel's memory; nothing for other images.
#[derive(Clone, Debug, Default)]
pub struct KernelMemory {
    /// The shared variables of a block, by offset.
    pub shared: Arc<[Variable]>,
    /// What of the parameter buffer its launcher must write, by offset.
    pub parameters: Arc<[Variable]>,
}

/// A launch that was accepted.
#[derive(Clone, Debug)]
pub struct LaunchEvent<'a> {
    /// The new grid.
    pub grid: GridId,
    /// Its kernel.
    pub kernel: &'a str,
    /// The names of the source files that a [`Location`] numbers; empty if the loader was not told.
    pub sources: &'a [String],
    /// Blocks.
    pub grid_dim: [u32; 3],
    /// Threads of a block.
    pub block_dim: [u32; 3],
    /// The thread that launched it; `None` for the host.
    pub launcher: Option<ThreadPosition>,
    /// Where in the source; 0 for the host.
    pub location: Location,
    /// Its stream.
    pub order: LaunchOrder,
    /// First byte and size of the parameter buffer that its threads read.
    pub parameters: (usize, usize),
    /// What its memory holds.
    pub memory: KernelMemory,
}

/// Whether the grid goes on after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Continue,
    /// It ends here, with [`super::FaultKind::Checked`].
    Stop,
}

/// Why a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The thread, counted in its block.
    pub thread_number: u32,
    /// `thread_idx`.
    pub thread: [u32; 3],
    /// Where it waits.
    pub location: Location,
    /// At `sync_threads()`; otherwise at a warp operation.
    pub at_barrier: bool,
}

/// The events of a checked device, called on the thread that causes them. Several workers call at once; the
/// events of one block come from one worker, in order. No method may panic or launch.
pub trait Hooks: Send + Sync {
    /// Global memory was allocated; its contents are not defined.
    fn on_alloc(&self, _address: usize, _bytes: usize) {}
    /// Global memory is freed.
    fn on_free(&self, _address: usize, _bytes: usize) {}
    /// The host wrote to global memory, after it waited for whatever uses that.
    fn on_host_write(&self, _address: usize, _bytes: usize) {}
    /// An image was loaded: one of its segments with statics or constants.
    fn on_image_segment(&self, _address: usize, _bytes: usize) {}
    /// Nothing of that segment, or that variable, is used any more.
    fn on_image_segment_gone(&self, _address: usize) {}
    /// A checked image was loaded: one of its statics, whose `offset` is its address. Its segment is told before.
    fn on_static(&self, _variable: &Variable) {}
    /// A thread was given a parameter buffer, in which nothing is written yet.
    fn on_parameter_buffer(&self, _thread: ThreadPosition, _address: usize, _bytes: usize) {}
    /// A launch was accepted. Called in the order of the grids' numbers.
    fn on_launch(&self, _launch: &LaunchEvent<'_>) {}
    /// A grid's first block is about to start. `after`: the grid that ended before it in its stream, or the
    /// grid whose tail it is.
    fn on_grid_start(&self, _grid: GridId, _after: Option<GridId>) {}
    /// All blocks of a grid have ended; what it launched may still run.
    fn on_grid_executed(&self, _grid: GridId) {}
    /// A grid, all it launched and its tail launches have ended.
    fn on_grid_end(&self, _grid: GridId) {}
    /// The host waited for all that it launched into a stream, which has ended, if with a failure.
    fn on_host_wait(&self, _stream: u32) {}
    /// A block starts. First byte and size of its shared memory: the static part, then the dynamic part.
    fn on_block_start(
        &self,
        _first_thread: ThreadPosition,
        _static_shared: (usize, usize),
        _dynamic_shared: (usize, usize),
    ) {
    }
    /// A thread starts, on a stack of so many bytes from that address.
    fn on_thread_start(&self, _thread: ThreadPosition, _stack: (usize, usize)) {}
    /// A thread has returned.
    fn on_thread_end(&self, _thread: ThreadPosition) {}
    /// A block has ended. `failed`: it was stopped.
    fn on_block_end(&self, _grid: GridId, _block_number: u64, _failed: bool) {}
    /// A thread is about to access memory: one of the kinds in [`super::abi`].
    fn on_access(
        &self,
        _thread: ThreadPosition,
        _address: usize,
        _bytes: u32,
        _kind: u32,
        _location: Location,
    ) -> Verdict {
        Verdict::Continue
    }
    /// A thread is about to access an array of so many elements at another index; `array` is its name.
    fn on_index(
        &self,
        _thread: ThreadPosition,
        _index: i64,
        _count: u64,
        _kind: u32,
        _array: &str,
        _location: Location,
    ) {
    }
    /// A thread has copied so many bytes, from, to, as it said by accesses with [`super::abi::ACCESS_BYTES`].
    fn on_copied(&self, _thread: ThreadPosition, _from: usize, _to: usize, _bytes: usize) {}
    /// A thread called a function: one of its local variables that pointers may reach.
    fn on_local(&self, _thread: ThreadPosition, _variable: &Variable, _location: Location) {}
    /// The function returns: so many of the thread's youngest local variables are gone.
    fn on_locals_end(&self, _thread: ThreadPosition, _count: u32) {}
    /// A thread arrived at `sync_threads()`.
    fn on_barrier(&self, _thread: ThreadPosition, _location: Location) {}
    /// All `waiting` threads of the block go on from `sync_threads()`; the block's other threads have ended.
    fn on_barrier_release(
        &self,
        _grid: GridId,
        _block_number: u64,
        _waiting: u32,
        _block_threads: u32,
    ) -> Verdict {
        Verdict::Continue
    }
    /// Those lanes of a warp met in `sync_warp`. Of other warp operations, which order nothing, a checker does not
    /// hear.
    fn on_warp_sync(&self, _grid: GridId, _block_number: u64, _warp: u32, _lanes: u32) {}
    /// No thread of the block can go on. The grid ends with [`super::FaultKind::Deadlock`].
    fn on_stuck(&self, _first_thread: ThreadPosition, _waiting: &[Waiting]) {}
    /// A thread is at the head of a loop.
    fn on_poll(&self, _thread: ThreadPosition, _location: Location) -> Verdict {
        Verdict::Continue
    }
    /// A grid fails for a reason that the checker did not give.
    fn on_fault(&self, _thread: ThreadPosition, _fault: &super::CpuFault) {}
}
