//! Runs blocks: a worker executes their threads as coroutines.
//!
//! All kernel code runs inside coroutines, so that a trap or fault can leave it without unwinding. A block runs in one
//! of three modes:
//! - its threads never wait: one coroutine calls the image's `blocks` entry, which runs all threads of several blocks;
//! - its threads never wait, and the device has a seed: one coroutine calls the `thread` entry for each thread in the
//!   seed's order;
//! - its threads wait for each other, or a checker is attached: one coroutine per thread.

mod coroutines;
mod one;
mod threads;

use std::cell::{Cell, OnceCell, RefCell, RefMut, UnsafeCell};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use corosensei::trap::CoroutineTrapHandler;
use corosensei::{Coroutine, Yielder};
use gridlet_artifact::Dim3;

use super::grid::{Grid, Tree};
use super::pool::Shared;
use super::scheduler::{NodeId, StreamId, Work};
use super::warp::{WARP_THREADS, Warp};
use crate::abi::{
    Geometry, KernelDescriptor, Location, NAMES_THREADS, NEEDS_THREADS, RED_ZONE_BYTES,
    SHARED_ALIGNMENT,
};
use crate::fault::{CpuFault, FaultKind};
use crate::hooks::{BlockHooks, ThreadPosition};
use crate::level::Level;
use crate::memory::AlignedBytes;
use crate::seed::Random;
use crate::stack::{KernelStack, StackPool};

/// Maximum threads in a block (CUDA C++ Programming Guide, Technical Specifications).
pub(crate) const MAX_THREADS: usize = 1024;
const MAX_WARPS: usize = MAX_THREADS / WARP_THREADS as usize;

type KernelCoroutine = Coroutine<(), (), (), KernelStack>;

/// A thread of the running block.
pub(crate) struct Slot {
    coroutine: UnsafeCell<Option<KernelCoroutine>>,
    /// Leaves the coroutine from a signal handler.
    trap: Cell<Option<CoroutineTrapHandler<()>>>,
    yielder: Cell<*const Yielder<(), ()>>,
    geometry: UnsafeCell<Geometry>,
    /// The lowest address of its stack.
    stack_start: Cell<usize>,
    /// The operand of the thread's current warp operation, then its result.
    pub(crate) value: Cell<u64>,
    pub(crate) operand: Cell<u32>,
    /// Where the thread waits.
    location: Cell<Location>,
    at_barrier: Cell<bool>,
    /// The thread's last device-runtime error.
    pub(crate) last_error: Cell<i32>,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            coroutine: UnsafeCell::new(None),
            trap: Cell::new(None),
            yielder: Cell::new(ptr::null()),
            geometry: UnsafeCell::new(Geometry {
                thread_idx: [0; 3],
                block_idx: [0; 3],
                block_dim: [0; 3],
                grid_dim: [0; 3],
                dynamic_shared: ptr::null_mut(),
            }),
            stack_start: Cell::new(0),
            value: Cell::new(0),
            operand: Cell::new(0),
            location: Cell::new(0),
            at_barrier: Cell::new(false),
            last_error: Cell::new(0),
        }
    }

    /// Where the thread waits.
    pub(crate) fn location(&self) -> Location {
        self.location.get()
    }
}

/// The checker of a block, if any.
type Check = Option<Box<dyn BlockHooks>>;

/// How a block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Serial,
    Loop,
    Threads,
}

/// Why a block must end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) kind: FaultKind,
    pub(crate) location: Location,
    pub(crate) address: Option<u64>,
}

impl Stop {
    pub(crate) fn new(kind: FaultKind, location: Location) -> Stop {
        Stop { kind, location, address: None }
    }
}

/// Runs blocks on one worker, one at a time. Only that worker's thread uses it, but kernel code reaches it through the
/// callbacks while `run` is on the stack, so all mutable state is in cells.
pub(crate) struct Runner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) worker: u32,
    /// Number of suspended blocks below this runner on the worker's stack; see [`Runner::help_out`].
    pub(crate) depth: u32,
    inner: OnceCell<Box<Runner>>,
    stacks: RefCell<StackPool>,
    shared_memory: RefCell<AlignedBytes>,
    slots: OnceCell<Box<[Slot]>>,
    pub(crate) warps: [Warp; MAX_WARPS],
    ready_warps: Cell<u32>,

    grid: Cell<*const Grid>,
    pub(crate) node: Cell<NodeId>,
    block: Cell<[u32; 3]>,
    block_number: Cell<u64>,
    threads: Cell<u32>,
    mode: Cell<Mode>,
    /// Number of the running thread.
    pub(crate) current: Cell<u32>,
    /// Whether `current` is valid; in a `blocks` entry it may not be.
    knows_thread: Cell<bool>,
    alive: Cell<u32>,
    at_barrier: Cell<u32>,
    yielded: Cell<bool>,
    stop: Cell<Option<Stop>>,
    /// Whether kernel code is running, inside `resume`; read by signal handlers.
    running: Cell<bool>,
    /// The running thread asks to let other grids run first.
    pub(crate) wants_help: Cell<bool>,
    /// The block's default stream, once a thread has launched into it.
    pub(crate) default_stream: Cell<Option<StreamId>>,
    /// Parameter buffers handed out but not launched yet.
    #[expect(clippy::vec_box, reason = "grids move from list to list without being copied")]
    pub(crate) buffers: RefCell<Vec<Box<Grid>>>,
    /// The block's checker, on a device with one. Never borrowed while the thread may wait.
    check: RefCell<Check>,
    /// A grid for the next launch from a kernel.
    pub(crate) spare: Cell<Option<Box<Grid>>>,
    random: Cell<Option<Random>>,
}

thread_local! {
    /// The runner of the block that runs on this thread; null outside workers.
    static CURRENT: Cell<*const Runner> = const { Cell::new(ptr::null()) };
}

/// The runner of this thread. Safe in signal handlers: it only reads.
#[inline(always)]
pub(crate) fn current_runner<'a>() -> Option<&'a Runner> {
    // SAFETY: a worker sets the pointer for as long as the runner lives.
    unsafe { CURRENT.get().as_ref() }
}

/// Makes a runner the thread's current one until the guard drops.
pub(crate) struct Active {
    before: *const Runner,
}

impl Active {
    pub(crate) fn new(runner: &Runner) -> Active {
        Active { before: CURRENT.replace(runner) }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

impl Runner {
    pub(crate) fn new(shared: Arc<Shared>, worker: u32, depth: u32) -> Runner {
        let random = shared
            .seed
            .map(|seed| Random::new(seed, 1000 + u64::from(worker) * 16 + u64::from(depth)));
        Runner {
            shared,
            worker,
            depth,
            inner: OnceCell::new(),
            stacks: RefCell::new(StackPool::default()),
            shared_memory: RefCell::new(AlignedBytes::EMPTY),
            slots: OnceCell::new(),
            warps: [const { Warp::new() }; MAX_WARPS],
            ready_warps: Cell::new(0),
            grid: Cell::new(ptr::null()),
            node: Cell::new(0),
            block: Cell::new([0; 3]),
            block_number: Cell::new(0),
            threads: Cell::new(0),
            mode: Cell::new(Mode::Serial),
            current: Cell::new(0),
            knows_thread: Cell::new(false),
            alive: Cell::new(0),
            at_barrier: Cell::new(0),
            yielded: Cell::new(false),
            stop: Cell::new(None),
            running: Cell::new(false),
            wants_help: Cell::new(false),
            default_stream: Cell::new(None),
            buffers: RefCell::new(Vec::new()),
            check: RefCell::new(None),
            spare: Cell::new(None),
            random: Cell::new(random),
        }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, thread: u32) -> &Slot {
        match self.slots.get() {
            Some(slots) => &slots[thread as usize],
            None => &self.make_slots()[thread as usize],
        }
    }

    #[cold]
    #[inline(never)]
    fn make_slots(&self) -> &[Slot] {
        self.slots.get_or_init(|| (0..MAX_THREADS).map(|_| Slot::new()).collect())
    }

    /// The running block's grid.
    pub(crate) fn grid(&self) -> &Grid {
        // SAFETY: set by `run` for as long as its blocks run; the scheduler keeps the grid until then.
        unsafe { &*self.grid.get() }
    }

    pub(crate) fn tree(&self) -> Option<&Arc<Tree>> {
        self.grid().tree.as_ref()
    }

    /// Whether the block should end early because its launch failed elsewhere.
    pub(crate) fn is_stopped(&self) -> bool {
        self.tree().is_none_or(|tree| tree.is_stopped())
    }

    pub(crate) fn position_of(&self, thread: u32) -> ThreadPosition {
        let grid = self.grid();
        ThreadPosition {
            grid: grid.id,
            block: self.block.get(),
            block_number: self.block_number.get(),
            thread: grid.thread_index(thread),
            thread_number: thread,
        }
    }

    pub(crate) fn position(&self) -> ThreadPosition {
        self.position_of(self.current.get())
    }

    pub(crate) fn shared_base(&self) -> *mut u8 {
        self.shared_memory.borrow().first()
    }

    /// Records which thread is about to end the block, if the image reports it.
    pub(crate) fn note_thread(&self, thread: u32) {
        if self.mode.get() == Mode::Serial && thread < self.threads.get() {
            self.current.set(thread);
            self.knows_thread.set(true);
        }
    }

    /// Reports an event to the block's checker, if any.
    #[inline(always)]
    pub(crate) fn tell<T>(&self, event: impl FnOnce(&mut dyn BlockHooks) -> T) -> Option<T> {
        let mut check = self.check.borrow_mut();
        check.as_mut().map(|check| event(check.as_mut()))
    }

    /// The block's checker.
    pub(crate) fn check(&self) -> RefMut<'_, Check> {
        self.check.borrow_mut()
    }

    /// Whether the block has a checker.
    #[inline(always)]
    pub(crate) fn has_check(&self) -> bool {
        self.check.borrow().is_some()
    }

    /// Whether each thread of the block has its own coroutine.
    pub(crate) fn has_threads(&self) -> bool {
        self.mode.get() == Mode::Threads
    }

    // ---- whole blocks

    /// Runs the blocks of `work`.
    pub(crate) fn run(&self, work: &Work) {
        // SAFETY: the work's blocks have not ended.
        let grid = unsafe { work.grid.get() };
        self.grid.set(grid);
        self.node.set(work.node);
        let kernel = grid.kernel();
        let wider = kernel.blocks_v3.filter(|_| self.shared.level == Level::V3);
        match wider.or(kernel.blocks) {
            Some(entry) if self.mode_of(kernel) == Mode::Serial => {
                self.run_serially(grid, entry, work);
            }
            _ => {
                for number in work.first..work.first + work.count {
                    if self.is_stopped() {
                        break;
                    }
                    self.run_block(grid, grid.order.at(number));
                }
            }
        }
        self.grid.set(ptr::null());
    }

    fn mode_of(&self, kernel: &KernelDescriptor) -> Mode {
        match kernel.blocks {
            Some(_) if kernel.flags & NEEDS_THREADS == 0 && self.shared.hooks.is_none() => {
                let named = kernel.flags & NAMES_THREADS != 0;
                if named || self.shared.seed.is_some() { Mode::Loop } else { Mode::Serial }
            }
            _ => Mode::Threads,
        }
    }

    /// Initialises the runner for a block that is about to start.
    fn begin(&self, grid: &Grid, number: u64) {
        self.block.set(grid.block_index(number));
        self.block_number.set(number);
        self.threads.set(grid.threads());
        self.current.set(0);
        self.knows_thread.set(false);
        self.stop.set(None);
        self.mode.set(self.mode_of(grid.kernel()));
    }

    fn run_block(&self, grid: &Grid, number: u64) {
        let kernel = grid.kernel();
        self.begin(grid, number);
        let (mode, threads) = (self.mode.get(), self.threads.get());
        let coroutines = if mode == Mode::Threads { threads } else { 1 };
        let room = self.reserve(kernel, grid.shared_bytes, coroutines as usize);
        let Some((static_shared, dynamic_shared)) = room else {
            self.fail(Stop::new(FaultKind::NoMemory, 0));
            return;
        };
        if let Some(hooks) = &self.shared.hooks {
            let check = hooks.on_block_start(
                self.position_of(0),
                (static_shared as usize, kernel.shared_span_bytes as usize),
                (dynamic_shared as usize, grid.shared_bytes as usize),
            );
            *self.check.borrow_mut() = check;
        }
        if mode == Mode::Threads {
            self.run_threads(grid, kernel, dynamic_shared);
        } else {
            self.run_one_by_one(grid, kernel, dynamic_shared);
        }
        if let Some(stop) = self.stop.get() {
            self.fail(stop);
        }
        if let Some(check) = self.check.take() {
            check.on_end(self.stop.get().is_some());
        }
        self.release_block_resources();
    }

    /// Reserves shared memory and stacks for a block; returns the addresses of static and dynamic shared memory.
    fn reserve(
        &self,
        kernel: &KernelDescriptor,
        dynamic_bytes: u32,
        stacks: usize,
    ) -> Option<(*mut u8, *mut u8)> {
        // The checker detects an overrun of static shared memory only if unused bytes follow it.
        let gap = if self.shared.hooks.is_some() { RED_ZONE_BYTES } else { 0 };
        let static_bytes =
            (kernel.shared_span_bytes as usize + gap).next_multiple_of(SHARED_ALIGNMENT);
        let bytes = static_bytes + dynamic_bytes as usize + gap;
        let mut memory = self.shared_memory.borrow_mut();
        if memory.first().is_null() || memory.bytes() < bytes {
            *memory = AlignedBytes::new(bytes.max(4096), SHARED_ALIGNMENT)?;
        }
        let made = |range: Range<usize>| {
            if let Some(hooks) = &self.shared.hooks {
                hooks.on_stacks(range);
            }
        };
        self.stacks.borrow_mut().reserve(stacks, made).ok()?;
        let first = memory.first();
        Some((first, first.wrapping_add(static_bytes)))
    }

    /// Returns unused buffers and closes the block's default stream.
    fn release_block_resources(&self) {
        let stream = self.default_stream.take();
        let mut buffers = self.buffers.borrow_mut();
        if stream.is_none() && buffers.is_empty() {
            return;
        }
        let mut scheduler = self.shared.lock();
        for grid in buffers.drain(..) {
            scheduler.recycle(grid);
        }
        if let Some(stream) = stream {
            scheduler.close_block_stream(stream);
        }
    }

    /// Fails the launch tree of the block.
    fn fail(&self, stop: Stop) {
        let Some(tree) = self.tree() else { return };
        let dim = |index: [u32; 3]| Dim3::new(index[0], index[1], index[2]);
        let known = match self.mode.get() {
            Mode::Serial => self.knows_thread.get(),
            _ => stop.kind != FaultKind::NoMemory,
        };
        let fault = CpuFault {
            block: Some(dim(self.block.get())),
            thread: known.then(|| dim(self.grid().thread_index(self.current.get()))),
            address: stop.address,
            location: tree.source_line(stop.location),
            ..self.grid().fault(stop.kind)
        };
        if stop.kind != FaultKind::Checked {
            self.tell(|check| check.on_fault(self.current.get(), &fault));
        }
        tree.fail(fault);
    }
}
