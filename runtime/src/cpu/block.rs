//! Running a block: its threads as coroutines of one worker.
//!
//! All kernel code runs inside coroutines, so that a trap or a fault can leave it without unwinding. A block
//! takes one of three ways:
//! - its kernel never waits: the image's `serial` entry runs all threads, in one coroutine;
//! - the same with a seed: one coroutine calls the `thread` entry for each thread, in the seed's order;
//! - its threads wait for each other, or a checker looks on: a coroutine for each thread.

use std::cell::{Cell, OnceCell, RefCell, UnsafeCell};
use std::ptr;
use std::sync::Arc;

use corosensei::trap::CoroutineTrapHandler;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::abi::{
    Geometry, KernelDescriptor, Location, NAMES_THREADS, NEEDS_THREADS, RED_ZONE_BYTES,
    SHARED_ALIGNMENT,
};
use super::fault::{CpuFault, FaultKind};
use super::grid::{Grid, Tree};
use super::hooks::{ThreadPosition, Waiting};
use super::memory::AlignedBytes;
use super::pool::{MOST_DEPTH, Shared};
use super::scheduler::{NodeId, StreamId, Work};
use super::seed::{Permutation, Random};
use super::stack::{KernelStack, StackPool};
use super::warp::{WARP_THREADS, Warp};
use crate::Dim3;

/// Threads of the largest block (CUDA C++ Programming Guide, Technical Specifications).
pub(super) const MOST_THREADS: usize = 1024;
const MOST_WARPS: usize = MOST_THREADS / WARP_THREADS as usize;

/// How often all threads of a block look in vain before another grid gets a turn.
const IDLE_ROUNDS: u32 = 1000;

type KernelCoroutine = Coroutine<(), (), (), KernelStack>;

/// A thread of the running block.
pub(super) struct Slot {
    coroutine: UnsafeCell<Option<KernelCoroutine>>,
    /// Leaves the coroutine from a signal handler.
    trap: Cell<Option<CoroutineTrapHandler<()>>>,
    yielder: Cell<*const Yielder<(), ()>>,
    geometry: UnsafeCell<Geometry>,
    /// What the thread gives to a warp operation, then what it gets.
    pub(super) value: Cell<u64>,
    pub(super) operand: Cell<u32>,
    /// Where it waits.
    location: Cell<Location>,
    at_barrier: Cell<bool>,
    /// Its last error in a call of the device runtime.
    pub(super) last_error: Cell<i32>,
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
            value: Cell::new(0),
            operand: Cell::new(0),
            location: Cell::new(0),
            at_barrier: Cell::new(false),
            last_error: Cell::new(0),
        }
    }
}

/// How the block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Serial,
    Loop,
    Threads,
}

/// Why a block must end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) kind: FaultKind,
    pub(super) location: Location,
    pub(super) address: Option<u64>,
}

/// Runs blocks on one worker, one at a time. Only that worker's thread touches it; kernel code reaches it
/// through the callbacks while `run` is on the stack, so everything that changes is in a cell.
pub(super) struct Runner {
    pub(super) shared: Arc<Shared>,
    pub(super) worker: u32,
    /// How many blocks wait on this worker for this runner's: see [`Runner::help_out`].
    pub(super) depth: u32,
    inner: OnceCell<Box<Runner>>,
    stacks: RefCell<StackPool>,
    shared_memory: RefCell<AlignedBytes>,
    slots: OnceCell<Box<[Slot]>>,
    pub(super) warps: [Warp; MOST_WARPS],
    ready_warps: Cell<u32>,

    grid: Cell<*const Grid>,
    pub(super) node: Cell<NodeId>,
    block: Cell<[u32; 3]>,
    block_number: Cell<u64>,
    threads: Cell<u32>,
    mode: Cell<Mode>,
    /// Number of the thread that runs.
    pub(super) current: Cell<u32>,
    alive: Cell<u32>,
    at_barrier: Cell<u32>,
    yielded: Cell<bool>,
    stop: Cell<Option<Stop>>,
    /// Inside `resume`: for signal handlers.
    running: Cell<bool>,
    /// The running thread asks for other grids to run first.
    pub(super) wants_help: Cell<bool>,
    /// Of the block, once a thread launched into it.
    pub(super) default_stream: Cell<Option<StreamId>>,
    /// Parameter buffers handed out and not launched yet.
    #[expect(clippy::vec_box, reason = "grids move from list to list without being copied")]
    pub(super) buffers: RefCell<Vec<Box<Grid>>>,
    random: Cell<Option<Random>>,
}

thread_local! {
    /// The runner whose block runs on this thread; null outside of workers.
    static CURRENT: Cell<*const Runner> = const { Cell::new(ptr::null()) };
}

/// The runner of this thread. For signal handlers: does nothing but read.
#[inline(always)]
pub(super) fn current_runner<'a>() -> Option<&'a Runner> {
    // SAFETY: a worker sets the pointer for as long as the runner lives.
    unsafe { CURRENT.get().as_ref() }
}

/// Makes a runner this thread's, until the guard drops.
pub(super) struct Active {
    before: *const Runner,
}

impl Active {
    pub(super) fn new(runner: &Runner) -> Active {
        Active { before: CURRENT.replace(runner) }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

impl Runner {
    pub(super) fn new(shared: Arc<Shared>, worker: u32, depth: u32) -> Runner {
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
            warps: [const { Warp::new() }; MOST_WARPS],
            ready_warps: Cell::new(0),
            grid: Cell::new(ptr::null()),
            node: Cell::new(0),
            block: Cell::new([0; 3]),
            block_number: Cell::new(0),
            threads: Cell::new(0),
            mode: Cell::new(Mode::Serial),
            current: Cell::new(0),
            alive: Cell::new(0),
            at_barrier: Cell::new(0),
            yielded: Cell::new(false),
            stop: Cell::new(None),
            running: Cell::new(false),
            wants_help: Cell::new(false),
            default_stream: Cell::new(None),
            buffers: RefCell::new(Vec::new()),
            random: Cell::new(random),
        }
    }

    #[inline(always)]
    pub(super) fn slot(&self, thread: u32) -> &Slot {
        match self.slots.get() {
            Some(slots) => &slots[thread as usize],
            None => &self.make_slots()[thread as usize],
        }
    }

    #[cold]
    #[inline(never)]
    fn make_slots(&self) -> &[Slot] {
        self.slots.get_or_init(|| (0..MOST_THREADS).map(|_| Slot::new()).collect())
    }

    /// The grid of the block that runs.
    pub(super) fn grid(&self) -> &Grid {
        // SAFETY: set by `run` for as long as its blocks run; the scheduler keeps the grid until then.
        unsafe { &*self.grid.get() }
    }

    pub(super) fn tree(&self) -> Option<&Arc<Tree>> {
        self.grid().tree.as_ref()
    }

    /// Whether the block should end early, because its launch failed elsewhere.
    pub(super) fn is_stopped(&self) -> bool {
        self.tree().is_none_or(|tree| tree.is_stopped())
    }

    pub(super) fn position_of(&self, thread: u32) -> ThreadPosition {
        let grid = self.grid();
        ThreadPosition {
            grid: grid.id,
            block: self.block.get(),
            block_number: self.block_number.get(),
            thread: grid.thread_index(thread),
            thread_number: thread,
        }
    }

    pub(super) fn position(&self) -> ThreadPosition {
        self.position_of(self.current.get())
    }

    pub(super) fn shared_base(&self) -> *mut u8 {
        self.shared_memory.borrow().first()
    }

    pub(super) fn block_number(&self) -> u64 {
        self.block_number.get()
    }

    /// Whether the threads of the block are coroutines.
    pub(super) fn has_threads(&self) -> bool {
        self.mode.get() == Mode::Threads
    }

    // ---- whole blocks

    /// Runs the blocks of `work`.
    pub(super) fn run(&self, work: &Work) {
        // SAFETY: the work's blocks have not ended.
        let grid = unsafe { work.grid.get() };
        self.grid.set(grid);
        self.node.set(work.node);
        for number in work.first..work.first + work.count {
            if self.is_stopped() {
                break;
            }
            self.run_block(grid, grid.order.at(number));
        }
        self.grid.set(ptr::null());
    }

    fn run_block(&self, grid: &Grid, number: u64) {
        let kernel = grid.kernel();
        let threads = grid.threads();
        self.block.set(grid.block_index(number));
        self.block_number.set(number);
        self.threads.set(threads);
        self.current.set(0);
        self.stop.set(None);
        let mode = match kernel.serial {
            Some(_) if kernel.flags & NEEDS_THREADS == 0 && self.shared.hooks.is_none() => {
                let named = kernel.flags & NAMES_THREADS != 0;
                if named || self.shared.seed.is_some() { Mode::Loop } else { Mode::Serial }
            }
            _ => Mode::Threads,
        };
        self.mode.set(mode);

        let coroutines = if mode == Mode::Threads { threads } else { 1 };
        let room = self.reserve(kernel, grid.shared_bytes, coroutines as usize);
        let Some((static_shared, dynamic_shared)) = room else {
            self.fail(Stop { kind: FaultKind::NoMemory, location: 0, address: None });
            return;
        };
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_block_start(
                self.position_of(0),
                (static_shared as usize, kernel.shared_span_bytes as usize),
                (dynamic_shared as usize, grid.shared_bytes as usize),
            );
        }
        if mode == Mode::Threads {
            self.run_threads(grid, kernel, dynamic_shared);
        } else {
            self.run_as_one(grid, kernel, dynamic_shared, mode);
        }
        if let Some(stop) = self.stop.get() {
            self.fail(stop);
        }
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_block_end(grid.id, number, self.stop.get().is_some());
        }
        self.let_go();
    }

    /// Shared memory and stacks for a block; the addresses of static and dynamic shared memory.
    fn reserve(
        &self,
        kernel: &KernelDescriptor,
        dynamic_bytes: u32,
        stacks: usize,
    ) -> Option<(*mut u8, *mut u8)> {
        // A checker finds accesses beyond the end only if nothing else is there.
        let gap = if self.shared.hooks.is_some() { RED_ZONE_BYTES } else { 0 };
        let static_bytes =
            (kernel.shared_span_bytes as usize + gap).next_multiple_of(SHARED_ALIGNMENT);
        let bytes = static_bytes + dynamic_bytes as usize + gap;
        let mut memory = self.shared_memory.borrow_mut();
        if memory.first().is_null() || memory.bytes() < bytes {
            *memory = AlignedBytes::new(bytes.max(4096), SHARED_ALIGNMENT)?;
        }
        self.stacks.borrow_mut().reserve(stacks).ok()?;
        let first = memory.first();
        Some((first, first.wrapping_add(static_bytes)))
    }

    /// Gives back what the block did not use up, and says that its default stream is complete.
    fn let_go(&self) {
        let stream = self.default_stream.take();
        let mut buffers = self.buffers.borrow_mut();
        if stream.is_none() && buffers.is_empty() {
            return;
        }
        let mut scheduler = self.shared.lock();
        for grid in buffers.drain(..) {
            scheduler.cancel_nested(grid);
        }
        if let Some(stream) = stream {
            scheduler.close_block_stream(stream);
        }
    }

    /// Ends the block's whole launch.
    fn fail(&self, stop: Stop) {
        let Some(tree) = self.tree() else { return };
        let dim = |index: [u32; 3]| Dim3::new(index[0], index[1], index[2]);
        let known = self.mode.get() != Mode::Serial && stop.kind != FaultKind::NoMemory;
        let fault = CpuFault {
            block: Some(dim(self.block.get())),
            thread: known.then(|| dim(self.grid().thread_index(self.current.get()))),
            address: stop.address,
            location: tree.source_line(stop.location),
            ..self.grid().fault(stop.kind)
        };
        if let Some(hooks) = &self.shared.hooks
            && stop.kind != FaultKind::Checked
        {
            hooks.on_fault(self.position(), &fault);
        }
        tree.fail(fault);
    }

    // ---- one coroutine

    fn run_as_one(
        &self,
        grid: &Grid,
        kernel: &KernelDescriptor,
        dynamic_shared: *mut u8,
        mode: Mode,
    ) {
        let slot = self.slot(0);
        let geometry = slot.geometry.get();
        // SAFETY: nothing runs in the slot.
        unsafe {
            geometry.write(Geometry {
                thread_idx: [0; 3],
                block_idx: self.block.get(),
                block_dim: grid.block_dim,
                grid_dim: grid.grid_dim,
                dynamic_shared,
            });
        }
        let parameters = grid.parameters.first().cast_const();
        let (serial, thread) = (kernel.serial, kernel.thread);
        let order = match (mode, self.random.get()) {
            (Mode::Loop, Some(mut random)) => {
                let order = Permutation::new(u64::from(grid.threads()), &mut random);
                self.random.set(Some(random));
                order
            }
            _ => Permutation::IDENTITY,
        };
        let this: *const Runner = self;
        self.start(slot, self.stacks.borrow().get(0), move || {
            // SAFETY: the runner and the grid outlive the block; the entries are the image's, called as the ABI
            // says.
            unsafe {
                match serial {
                    Some(serial) if mode == Mode::Serial => serial(geometry, parameters),
                    _ => {
                        let runner = &*this;
                        for number in 0..runner.threads.get() {
                            let number = order.at(u64::from(number)) as u32;
                            runner.current.set(number);
                            (*geometry).thread_idx = runner.grid().thread_index(number);
                            thread(geometry, parameters);
                        }
                    }
                }
            }
        });
        while !self.resume(slot) && self.stop.get().is_none() {}
        self.abandon(slot);
    }

    // ---- a coroutine for each thread

    fn run_threads(&self, grid: &Grid, kernel: &KernelDescriptor, dynamic_shared: *mut u8) {
        let threads = grid.threads();
        let parameters = grid.parameters.first().cast_const();
        let entry = kernel.thread;
        let mut index = [0; 3];
        for thread in 0..threads {
            let slot = self.slot(thread);
            let geometry = slot.geometry.get();
            // SAFETY: nothing runs in the slot.
            unsafe {
                geometry.write(Geometry {
                    thread_idx: index,
                    block_idx: self.block.get(),
                    block_dim: grid.block_dim,
                    grid_dim: grid.grid_dim,
                    dynamic_shared,
                });
            }
            advance(&mut index, grid.block_dim);
            let stack = self.stacks.borrow().get(thread as usize);
            let this: *const Runner = self;
            self.start(slot, stack, move || {
                // SAFETY: as in `run_as_one`.
                unsafe {
                    let runner = &*this;
                    if let Some(hooks) = &runner.shared.hooks {
                        hooks.on_thread_start(runner.position(), stack.usable());
                    }
                    entry(geometry, parameters);
                }
            });
        }
        self.alive.set(threads);
        self.at_barrier.set(0);
        self.yielded.set(false);
        self.ready_warps.set(0);
        for warp in 0..threads.div_ceil(WARP_THREADS) {
            let lanes = (threads - warp * WARP_THREADS).min(WARP_THREADS);
            let lanes = u32::MAX >> (WARP_THREADS - lanes);
            self.warps[warp as usize].start(lanes);
            self.make_ready(warp, lanes);
        }

        let mut idle_rounds = 0u32;
        while self.alive.get() > 0 && self.stop.get().is_none() {
            let Some(thread) = self.choose() else {
                if self.yielded.replace(false) {
                    self.wake_yielded();
                    idle_rounds += 1;
                    // A checker reports such waits instead: nothing promises that they end.
                    if idle_rounds.is_multiple_of(IDLE_ROUNDS)
                        && self.depth < MOST_DEPTH
                        && self.shared.hooks.is_none()
                    {
                        self.help_other();
                    }
                    continue;
                }
                self.stuck();
                break;
            };
            self.current.set(thread);
            let slot = self.slot(thread);
            let mut ended = self.resume(slot);
            // A thread that asked for help goes on at once.
            while !ended && self.stop.get().is_none() && self.wants_help.take() {
                ended = self.resume(slot);
            }
            if self.stop.get().is_some() {
                break;
            }
            if ended {
                self.thread_ended(thread);
            }
        }
        if self.alive.get() > 0 {
            for thread in 0..threads {
                self.abandon(self.slot(thread));
            }
        }
    }

    /// The next thread to run, no longer ready.
    #[inline(always)]
    fn choose(&self) -> Option<u32> {
        let ready = self.ready_warps.get();
        if ready == 0 {
            return None;
        }
        let (warp, lane) = match self.random.get() {
            None => {
                let warp = ready.trailing_zeros();
                (warp, self.warps[warp as usize].ready.get().trailing_zeros())
            }
            Some(mut random) => {
                let warp = pick(ready, &mut random);
                let lane = pick(self.warps[warp as usize].ready.get(), &mut random);
                self.random.set(Some(random));
                (warp, lane)
            }
        };
        let lanes = &self.warps[warp as usize].ready;
        lanes.set(lanes.get() & !(1 << lane));
        if lanes.get() == 0 {
            self.ready_warps.set(ready & !(1 << warp));
        }
        Some(warp * WARP_THREADS + lane)
    }

    pub(super) fn make_ready(&self, warp: u32, lanes: u32) {
        if lanes != 0 {
            let ready = &self.warps[warp as usize].ready;
            ready.set(ready.get() | lanes);
            self.ready_warps.set(self.ready_warps.get() | 1 << warp);
        }
    }

    fn wake_yielded(&self) {
        for warp in 0..self.threads.get().div_ceil(WARP_THREADS) {
            let lanes = self.warps[warp as usize].yielded.take();
            self.make_ready(warp, lanes);
        }
    }

    fn thread_ended(&self, thread: u32) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_thread_end(self.position_of(thread));
        }
        self.alive.set(self.alive.get() - 1);
        let warp = thread / WARP_THREADS;
        self.lane_ended(warp, thread % WARP_THREADS);
        if self.alive.get() > 0 && self.at_barrier.get() == self.alive.get() {
            self.release_barrier();
        }
    }

    /// No thread can go on.
    fn stuck(&self) {
        let waiting = || {
            (0..self.threads.get()).filter(|thread| {
                let warp = &self.warps[(thread / WARP_THREADS) as usize];
                warp.alive.get() & 1 << (thread % WARP_THREADS) != 0
            })
        };
        let first = waiting().next().unwrap_or(0);
        self.current.set(first);
        if let Some(hooks) = &self.shared.hooks {
            let list: Vec<Waiting> = waiting()
                .map(|thread| Waiting {
                    thread_number: thread,
                    thread: self.grid().thread_index(thread),
                    location: self.slot(thread).location.get(),
                    at_barrier: self.slot(thread).at_barrier.get(),
                })
                .collect();
            hooks.on_stuck(self.position_of(first), &list);
        }
        let location = self.slot(first).location.get();
        self.stop.set(Some(Stop { kind: FaultKind::Deadlock, location, address: None }));
    }

    // ---- called from kernel code

    /// `sync_threads()`. Inlined, as is all below it: after a switch each return is mispredicted.
    #[inline(always)]
    pub(super) fn barrier(&self, location: Location) {
        if !self.has_threads() {
            return;
        }
        let thread = self.current.get();
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_barrier(self.position(), location);
        }
        self.at_barrier.set(self.at_barrier.get() + 1);
        let warp = &self.warps[(thread / WARP_THREADS) as usize];
        let bit = 1 << (thread % WARP_THREADS);
        if self.at_barrier.get() == self.alive.get() {
            // The last one does not wait. The others of its warp may be ready from here on.
            self.release_barrier();
            return;
        }
        warp.at_barrier.set(warp.at_barrier.get() | bit);
        self.wait(location, true);
    }

    #[cold]
    #[inline(never)]
    fn release_barrier(&self) {
        let waiting = self.at_barrier.replace(0);
        if let Some(hooks) = &self.shared.hooks {
            let grid = self.grid().id;
            let verdict = hooks.on_barrier_release(
                grid,
                self.block_number.get(),
                waiting,
                self.threads.get(),
            );
            self.obey(verdict, 0);
        }
        if self.is_stopped() {
            self.set_stop(FaultKind::Cancelled, 0);
        }
        for warp in 0..self.threads.get().div_ceil(WARP_THREADS) {
            let lanes = self.warps[warp as usize].at_barrier.take();
            self.make_ready(warp, lanes);
        }
    }

    /// Lets the other threads run first.
    pub(super) fn let_others_run(&self, location: Location) {
        if !self.has_threads() {
            return;
        }
        let thread = self.current.get();
        let yielded = &self.warps[(thread / WARP_THREADS) as usize].yielded;
        yielded.set(yielded.get() | 1 << (thread % WARP_THREADS));
        self.yielded.set(true);
        self.wait(location, false);
    }

    /// Suspends the running thread until something made it ready.
    #[inline(always)]
    pub(super) fn wait(&self, location: Location, at_barrier: bool) {
        let slot = self.slot(self.current.get());
        slot.location.set(location);
        slot.at_barrier.set(at_barrier);
        self.suspend();
    }

    /// Suspends the running coroutine.
    #[inline(always)]
    pub(super) fn suspend(&self) {
        let slot = if self.has_threads() { self.slot(self.current.get()) } else { self.slot(0) };
        // SAFETY: the coroutine that runs set it when it started, and it lives as long as the coroutine does.
        unsafe { (*slot.yielder.get()).suspend(()) };
    }

    fn set_stop(&self, kind: FaultKind, location: Location) {
        if self.stop.get().is_none() {
            self.stop.set(Some(Stop { kind, location, address: None }));
        }
    }

    pub(super) fn obey(&self, verdict: super::hooks::Verdict, location: Location) {
        if verdict == super::hooks::Verdict::Stop {
            self.set_stop(FaultKind::Checked, location);
        }
    }

    /// Leaves the kernel for good if the block's threads have to stop.
    #[inline(always)]
    pub(super) fn leave_if_block_stopped(&self) {
        if self.stop.get().is_some() {
            self.leave();
        }
    }

    /// Leaves the kernel for good if the block has to stop.
    pub(super) fn leave_if_stopped(&self) {
        if self.stop.get().is_some() {
            self.leave();
        }
        if self.is_stopped() {
            self.end(FaultKind::Cancelled, 0);
        }
    }

    /// Ends the block from within.
    pub(super) fn end(&self, kind: FaultKind, location: Location) -> ! {
        self.set_stop(kind, location);
        self.leave()
    }

    #[cold]
    #[inline(never)]
    fn leave(&self) -> ! {
        loop {
            // The block's scheduler sees `stop` and abandons the coroutine.
            self.suspend();
        }
    }

    // ---- coroutines

    /// Puts a coroutine into a slot.
    fn start(&self, slot: &Slot, stack: KernelStack, body: impl FnOnce()) {
        slot.last_error.set(0);
        slot.location.set(0);
        let slot_pointer: *const Slot = slot;
        // SAFETY: the runner keeps the stack, and everything that `body` refers to, until the coroutine has ended
        // or was abandoned.
        let coroutine = unsafe {
            Coroutine::with_stack_unchecked(stack, move |yielder: &Yielder<(), ()>, ()| {
                (*slot_pointer).yielder.set(yielder);
                body();
            })
        };
        slot.trap.set(Some(coroutine.trap_handler()));
        // SAFETY: no reference to the slot's coroutine is alive.
        unsafe { *slot.coroutine.get() = Some(coroutine) };
    }

    /// Runs a slot's coroutine until it waits (false) or has ended (true).
    #[inline(always)]
    fn resume(&self, slot: &Slot) -> bool {
        self.running.set(true);
        // SAFETY: only this function refers to the coroutine, and a coroutine does not resume itself.
        let result = match unsafe { &mut *slot.coroutine.get() } {
            Some(coroutine) => coroutine.resume(()),
            None => CoroutineResult::Return(()),
        };
        self.running.set(false);
        match result {
            CoroutineResult::Return(()) => {
                // SAFETY: it has ended, and its reference with the match above.
                unsafe { *slot.coroutine.get() = None };
                true
            }
            CoroutineResult::Yield(()) => {
                if self.wants_help.get() {
                    self.help_out();
                }
                false
            }
        }
    }

    /// Forgets a coroutine in the middle of what it does.
    fn abandon(&self, slot: &Slot) {
        // SAFETY: it does not run. Its stack holds frames of the image, which have nothing to drop, and of
        // callbacks, which hold nothing that drops while they suspend.
        unsafe {
            if let Some(coroutine) = &mut *slot.coroutine.get() {
                coroutine.force_reset();
            }
            *slot.coroutine.get() = None;
        }
    }

    /// Runs waiting grids while this block waits, because too many are waiting.
    #[cold]
    #[inline(never)]
    fn help_out(&self) {
        let inner = self.inner();
        let _active = Active::new(inner);
        self.shared.help(inner);
    }

    /// Runs blocks of another grid while all threads of this block only look at memory.
    #[cold]
    #[inline(never)]
    fn help_other(&self) {
        let inner = self.inner();
        let _active = Active::new(inner);
        self.shared.help_other(inner, self.node.get());
    }

    /// Runs blocks while this one's block waits.
    fn inner(&self) -> &Runner {
        self.inner.get_or_init(|| {
            Box::new(Runner::new(Arc::clone(&self.shared), self.worker, self.depth + 1))
        })
    }

    // ---- signals

    /// What a signal handler needs to leave the kernel: whether the running coroutine's stack holds that
    /// stack pointer, and its handler.
    pub(super) fn trap_at(&self, stack_pointer: usize) -> Option<CoroutineTrapHandler<()>> {
        if !self.running.get() {
            return None;
        }
        let slots = self.slots.get()?;
        let slot = &slots[if self.has_threads() { self.current.get() as usize } else { 0 }];
        slot.trap.get().filter(|trap| trap.stack_ptr_in_bounds(stack_pointer))
    }

    /// Whether that address lies in the guard of the running coroutine's stack.
    pub(super) fn is_guard(&self, address: usize) -> bool {
        let index = if self.has_threads() { self.current.get() as usize } else { 0 };
        // Nothing changes the pool while a coroutine runs.
        self.stacks.try_borrow().is_ok_and(|stacks| stacks.get(index).guards(address))
    }

    /// The lowest address of the running coroutine's stack.
    pub(super) fn stack_start(&self) -> usize {
        let index = if self.has_threads() { self.current.get() as usize } else { 0 };
        self.stacks.borrow().get(index).usable().0
    }

    /// Remembers where the running thread of a checked image is, for faults that say no place.
    pub(super) fn note_location(&self, location: Location) {
        self.slot(self.current.get()).location.set(location);
    }

    /// From a signal handler: the block ends with that.
    pub(super) fn note_signal(&self, stop: Stop) {
        if self.stop.get().is_none() {
            self.stop.set(Some(Stop { location: self.last_location(), ..stop }));
        }
    }

    /// Near where the running thread is; 0 if that is not known.
    fn last_location(&self) -> Location {
        let is_checked = self.has_threads() && self.shared.hooks.is_some();
        let slots = self.slots.get().filter(|_| is_checked);
        slots.map_or(0, |slots| slots[self.current.get() as usize].location.get())
    }
}

/// Any of the bits that are set.
fn pick(set: u32, random: &mut Random) -> u32 {
    let rotation = random.below(32) as u32;
    (set.rotate_right(rotation).trailing_zeros() + rotation) % 32
}

/// The next index in the order x, y, z.
fn advance(index: &mut [u32; 3], extents: [u32; 3]) {
    for (position, extent) in index.iter_mut().zip(extents) {
        *position += 1;
        if *position < extent {
            return;
        }
        *position = 0;
    }
}
