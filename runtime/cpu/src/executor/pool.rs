//! The worker threads, and what they share.

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

/// A worker that finds nothing to do looks again for so long before it sleeps, because waking takes longer.
const SPIN: Duration = Duration::from_micros(20);
/// How often to try for the lock before sleeping, and how long to pause in between, in turns of a loop.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: u32 = 20;
/// With an unbounded pool: a thread whose launch makes it more than so many pending lets others run first.
const HELP_ABOVE: u64 = 4096;
/// And goes on at so many.
const HELP_UNTIL: u64 = 1024;
/// Blocks that may wait on a worker for others to run.
pub(crate) const MAX_DEPTH: u32 = 4;
/// How long the end of a device waits for its workers.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the device, its streams and its workers share.
pub(crate) struct Shared {
    scheduler: Mutex<Scheduler>,
    /// Workers without work wait here.
    work: Condvar,
    /// Hosts that wait for a stream.
    done: Condvar,
    /// Whether something is ready: looked at without the lock.
    has_ready: AtomicBool,
    /// Workers that look for something to do, and need not be woken.
    searching: AtomicU32,
    pub(crate) pending: Arc<Pending>,
    pub(crate) seed: Option<u64>,
    /// Which entries of images run.
    pub(crate) level: Level,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) limits: LaunchLimits,
    pub(crate) allocations: Allocations,
    pub(crate) heap: Heap,
    /// Where `printf` goes; standard output if `None`.
    pub(crate) output: Mutex<Option<Box<dyn Write + Send>>>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

/// The scheduler, locked. When it goes, whoever has something to do now is woken.
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
        // One at a time: who wakes wakes the next. Who gives up searching looks once more before it sleeps.
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
        // It is held for so short a time that sleeping takes longer.
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
    /// The system's, if it gives no more threads.
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

    /// Waits until `ready` says so of the scheduler, at most until `deadline` (`None`: for ever).
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

    /// Makes workers leave kernels whose launch was stopped, even in a loop that calls nothing.
    pub(crate) fn interrupt(&self) {
        for worker in &*lock(&self.workers) {
            signals::interrupt(worker.as_pthread_t());
        }
    }

    /// Stops everything and ends the workers. One that cannot be stopped is left behind.
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
                    // A worker that panicked has nothing to give back.
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

    /// Runs grids until few are pending.
    pub(crate) fn help(&self, runner: &Runner) {
        let mut scheduler = self.lock();
        while self.pending.unbounded().is_some_and(|pending| pending > HELP_UNTIL) {
            let Some(work) = scheduler.claim(runner.worker) else { return };
            drop(scheduler);
            runner.run(&work);
            scheduler = self.lock();
            scheduler.finish(&work);
        }
    }
}

impl Shared {
    /// Runs something of another grid than the one that waits for memory to change, since that may be what it waits
    /// for. Not of the same grid: later blocks may wait for this one.
    pub(crate) fn help_other(&self, runner: &Runner, waiting: NodeId) {
        let claimed = self.lock().claim_except(runner.worker, Some(waiting));
        if let Some(work) = claimed {
            runner.run(&work);
            self.lock().finish(&work);
        }
    }
}

impl Shared {
    /// Looks for something to do for a while.
    fn search(&self, worker: u32) -> Option<Work> {
        self.searching.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        let mut found = None;
        while found.is_none() && start.elapsed() < SPIN {
            // Who does not get the lock at once is not needed.
            if self.has_ready.load(Ordering::Relaxed)
                && let Some(mut scheduler) = self.try_lock()
            {
                found = scheduler.claim(worker);
                if found.is_some() {
                    // Before the lock goes, which wakes another one if more is ready.
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

/// A worker's life.
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
