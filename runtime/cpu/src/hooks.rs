//! What the CPU device tells a checker. Without one, nothing here costs more than a test of a pointer.

use std::sync::Arc;

use crate::abi::Location;

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
    Host(usize),
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

/// The events of a checked device, called on the thread that causes them. Several workers call at once. No method
/// may panic or launch.
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
    /// A launch was accepted. Called in the order of the grids' numbers. `launcher`: what hears of the block whose
    /// thread launched; `None` for the host.
    fn on_launch(
        &self,
        _launch: &LaunchEvent<'_>,
        _launcher: Option<&mut (dyn BlockHooks + 'static)>,
    ) {
    }
    /// A grid's first block is about to start. `after`: the grid that ended before it in its stream, or the
    /// grid whose tail it is.
    fn on_grid_start(&self, _grid: GridId, _after: Option<GridId>) {}
    /// All blocks of a grid have ended; what it launched may still run.
    fn on_grid_executed(&self, _grid: GridId) {}
    /// A grid, all it launched and its tail launches have ended.
    fn on_grid_end(&self, _grid: GridId) {}
    /// The host waited for all that it launched into a stream, which has ended, if with a failure.
    fn on_host_wait(&self, _stream: usize) {}
    /// The host made a stream wait for all that was launched into another one but the last `later` launches.
    fn on_stream_wait(&self, _stream: usize, _other: usize, _later: u64) {}
    /// A block starts. First byte and size of its shared memory: the static part, then the dynamic part. Gives
    /// what hears of it from now on.
    fn on_block_start(
        &self,
        _first_thread: ThreadPosition,
        _static_shared: (usize, usize),
        _dynamic_shared: (usize, usize),
    ) -> Option<Box<dyn BlockHooks>> {
        None
    }
}

/// The events of one block, in order, from the worker that runs it; its threads are named by their numbers. No
/// method may panic or launch.
pub trait BlockHooks {
    /// A thread was given a parameter buffer, in which nothing is written yet.
    fn on_parameter_buffer(&mut self, _address: usize, _bytes: usize) {}
    /// A launch by a thread was accepted.
    fn on_launch(&mut self, _thread: u32, _launch: &LaunchEvent<'_>) {}
    /// A thread starts, on a stack of so many bytes from that address.
    fn on_thread_start(&mut self, _thread: u32, _stack: (usize, usize)) {}
    /// A thread has returned.
    fn on_thread_end(&mut self, _thread: u32) {}
    /// The block has ended. `failed`: it was stopped.
    fn on_end(self: Box<Self>, _failed: bool) {}
    /// A thread is about to access memory: one of the kinds in [`crate::abi`].
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
    /// A thread is about to access an array of so many elements at another index; `array` is its name.
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
    /// A thread has copied so many bytes, from, to, as it said by accesses with [`crate::abi::ACCESS_BYTES`].
    fn on_copied(&mut self, _from: usize, _to: usize, _bytes: usize) {}
    /// A thread called a function: one of its local variables that pointers may reach.
    fn on_local(&mut self, _thread: u32, _variable: &Variable, _location: Location) {}
    /// The function returns: so many of the thread's youngest local variables are gone.
    fn on_locals_end(&mut self, _thread: u32, _count: u32) {}
    /// A thread arrived at `sync_threads()`.
    fn on_barrier(&mut self, _thread: u32, _location: Location) {}
    /// All threads of the block that have not ended go on from `sync_threads()`.
    fn on_barrier_release(&mut self) {}
    /// Those lanes of a warp met in `sync_warp`. Of other warp operations, which order nothing, a checker does not
    /// hear.
    fn on_warp_sync(&mut self, _warp: u32, _lanes: u32) {}
    /// No thread of the block can go on. The grid ends with [`super::FaultKind::Deadlock`].
    fn on_stuck(&mut self, _waiting: &[Waiting]) {}
    /// A thread is at the head of a loop that may wait for ever.
    fn on_poll(&mut self, _thread: u32, _location: Location) -> Verdict {
        Verdict::Continue
    }
    /// A thread is at the head of a loop that ends by itself.
    fn on_turn(&mut self, _thread: u32) {}
    /// The grid fails for a reason that the checker did not give.
    fn on_fault(&mut self, _thread: u32, _fault: &super::CpuFault) {}
}
