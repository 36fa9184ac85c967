//! The worker threads and their shared state.

use std::io::{self, Write};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gridlet_artifact::LaunchLimits;

use super::block::{Active, Runner};
use super::heap::Heap;
use super::scheduler::{NodeId, Pending, Scheduler, Work};
use super::signals;
use crate::hooks::Hooks;
use crate::level::Level;
use crate::memory::Allocations;
use crate::sync::lock;

/// How long an idle worker looks for work before it sleeps, because waking up takes longer.
const SPIN: Duration = Duration::from_micros(20);
/// Number of attempts to take the lock before sleeping, and the pause between attempts in loop iterations.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: u32 = 20;
/// With an unbounded pool: number of pending launches above which a launching thread lets other grids run first.
const HELP_ABOVE: u64 = 4096;
/// Number of pending launches at which such a thread continues.
const HELP_UNTIL: u64 = 1024;
/// Maximum suspended blocks on a worker's stack.
pub(crate) const MAX_DEPTH: u32 = 4;
/// How long a closing device waits for its workers.
const PATIENCE: Duration = Duration::from_secs(5);

/// State shared by the device, its streams and its workers.
pub(crate) struct Shared {
    scheduler: Mutex<Scheduler>,
    /// Idle workers wait here.
    work: Condvar,
    /// Host threads that wait for a stream wait here.
    done: Condvar,
    /// Whether a grid is ready; read without the lock.
    has_ready: AtomicBool,
    /// Number of workers looking for work, which need not be woken.
    searching: AtomicU32,
    pub(crate) pending: Arc<Pending>,
    pub(crate) seed: Option<u64>,
    /// Which entries of images to run.
    pub(crate) level: Level,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) limits: LaunchLimits,
    pub(crate) allocations: Allocations,
    pub(crate) heap: Heap,
    /// Output of `printf`; standard output if `None`.
    pub(crate) output: Mutex<Option<Box<dyn Write + Send>>>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

/// The locked scheduler. Unlocking it wakes waiters that can proceed.
pub(crate) struct Locked<'a> {
    shared: &'a Shared,
    guard: MutexGuard<'a, Scheduler>,
}

impl std::ops::Deref for Locked<'_> {
    type Target = Scheduler;

    fn deref(&self) -> &Scheduler {
        &self.guard
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Scheduler {
        &mut self.guard
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let has_ready = self.guard.has_ready();
        if self.shared.has_ready.load(Ordering::Relaxed) != has_ready {
            self.shared.has_ready.store(has_ready, Ordering::Relaxed);
        }
        // Wake one worker, which wakes the next. A worker that stops searching checks once more before it sleeps.
        let wants_worker = has_ready && self.shared.searching.load(Ordering::SeqCst) == 0;
        if wants_worker && self.guard.sleeping > 0 && !self.guard.waking {
            self.guard.waking = true;
            self.shared.work.notify_one();
        }
        if self.guard.host_progress {
            self.guard.host_progress = false;
            self.shared.done.notify_all();
        }
    }
}

impl Shared {
    pub(crate) fn new(
        scheduler: Scheduler,
        pending: Arc<Pending>,
        seed: Option<u64>,
        level: Level,
        hooks: Option<Arc<dyn Hooks>>,
        limits: LaunchLimits,
    ) -> Shared {
        let allocations = Allocations::new(hooks.is_some());
        let heap = Heap::new(hooks.is_some());
        Shared {
            scheduler: Mutex::new(scheduler),
            work: Condvar::new(),
            done: Condvar::new(),
            has_ready: AtomicBool::new(false),
            searching: AtomicU32::new(0),
            pending,
            seed,
            level,
            hooks,
            limits,
            allocations,
            heap,
            output: Mutex::new(None),
            workers: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        // The lock is held so briefly that sleeping takes longer.
        for _ in 0..LOCK_TRIES {
            if let Some(locked) = self.try_lock() {
                return locked;
            }
            for _ in 0..LOCK_PAUSE {
                std::hint::spin_loop();
            }
        }
        Locked { shared: self, guard: lock(&self.scheduler) }
    }

    fn try_lock(&self) -> Option<Locked<'_>> {
        let guard = match self.scheduler.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Locked { shared: self, guard })
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// The system's error if it cannot start another thread.
    pub(crate) fn start(self: &Arc<Self>, count: u32) -> io::Result<()> {
        signals::install();
        for index in 0..count {
            let shared = Arc::clone(self);
            let handle = thread::Builder::new()
                .name(format!("gridlet-cpu-{index}"))
                .spawn(move || work(&shared, index))?;
            lock(&self.workers).push(handle);
        }
        Ok(())
    }

    /// Waits until `ready` returns true, at most until `deadline` (`None`: forever).
    pub(crate) fn wait_until(
        &self,
        deadline: Option<Instant>,
        mut ready: impl FnMut(&mut Scheduler) -> bool,
    ) -> bool {
        let mut guard = lock(&self.scheduler);
        loop {
            if ready(&mut guard) {
                return true;
            }
            guard = match deadline {
                None => self.done.wait(guard).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let (guard, _) =
                        self.done.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
                    guard
                }
            };
        }
    }

    /// Makes workers leave kernels whose launch was stopped, even in a loop without callbacks.
    pub(crate) fn interrupt(&self) {
        for worker in &*lock(&self.workers) {
            signals::interrupt(worker.as_pthread_t());
        }
    }

    /// Stops all grids and joins the workers. Detaches any worker that cannot be stopped.
    pub(crate) fn close(&self) {
        {
            let mut scheduler = self.lock();
            scheduler.closing = true;
            scheduler.stop_all();
        }
        self.work.notify_all();
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_micros(50);
        loop {
            {
                let mut workers = lock(&self.workers);
                let (ended, left): (Vec<_>, Vec<_>) =
                    workers.drain(..).partition(JoinHandle::is_finished);
                *workers = left;
                for worker in ended {
                    // A panicked worker has no result.
                    let _ = worker.join();
                }
                if workers.is_empty() || Instant::now() > deadline {
                    return;
                }
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
            self.work.notify_all();
            self.interrupt();
        }
    }

    /// Whether the thread that just launched should let waiting grids run first.
    pub(crate) fn needs_help(&self, depth: u32) -> bool {
        depth < MAX_DEPTH && self.pending.unbounded().is_some_and(|n| n > HELP_ABOVE)
    }

    /// Runs grids until few launches are pending.
    pub(crate) fn help(&self, runner: &Runner) {
        let mut scheduler = self.lock();
        while self.pending.unbounded().is_some_and(|pending| pending > HELP_UNTIL) {
            let Some(work) = scheduler.claim_anyway(runner.worker, None) else { return };
            drop(scheduler);
            runner.run(&work);
            scheduler = self.lock();
            scheduler.finish(&work);
        }
    }
}

impl Shared {
    /// Runs blocks of another grid for a block that polls memory, because they may make the change that it waits for.
    /// Excludes the same grid: its later blocks may wait for this one.
    pub(crate) fn help_other(&self, runner: &Runner, waiting: NodeId) {
        let claimed = self.lock().claim_except(runner.worker, Some(waiting));
        if let Some(work) = claimed {
            runner.run(&work);
            self.lock().finish(&work);
        }
    }
}

impl Shared {
    /// Looks for work for a while.
    fn search(&self, worker: u32) -> Option<Work> {
        self.searching.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        let mut found = None;
        while found.is_none() && start.elapsed() < SPIN {
            // If the lock is contended, another thread is already at work on the queue.
            if self.has_ready.load(Ordering::Relaxed)
                && let Some(mut scheduler) = self.try_lock()
            {
                found = scheduler.claim(worker);
                if found.is_some() {
                    // Before unlocking, which wakes another worker if more grids are ready.
                    self.searching.fetch_sub(1, Ordering::SeqCst);
                    return found;
                }
            }
            std::hint::spin_loop();
        }
        self.searching.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

/// Main loop of a worker.
fn work(shared: &Arc<Shared>, index: u32) {
    let _alternate_stack = signals::AlternateStack::new();
    let runner = Box::new(Runner::new(Arc::clone(shared), index, 0));
    let _active = Active::new(&runner);
    loop {
        let mut next = shared.lock().claim(index);
        while let Some(work) = next {
            runner.run(&work);
            let mut scheduler = shared.lock();
            scheduler.finish(&work);
            next = scheduler.claim(index);
            drop(scheduler);
            next = next.or_else(|| shared.search(index));
        }
        let mut guard = lock(&shared.scheduler);
        if guard.closing {
            return;
        }
        if !guard.can_claim() {
            guard.sleeping += 1;
            guard = shared.work.wait(guard).unwrap_or_else(PoisonError::into_inner);
            guard.sleeping -= 1;
            guard.waking = false;
        }
    }
}
