//! Runs blocks whose threads wait for each other, with one coroutine per thread.

use super::super::grid::Grid;
use super::super::pool::MAX_DEPTH;
use super::super::warp::WARP_THREADS;
use super::{Runner, Stop};
use crate::abi::{Geometry, KernelDescriptor, Location};
use crate::fault::FaultKind;
use crate::hooks::Waiting;
use crate::seed::Random;

/// Number of rounds in which all threads of a block poll without progress before another grid gets a turn.
const IDLE_ROUNDS: u32 = 1000;

impl Runner {
    pub(super) fn run_threads(
        &self,
        grid: &Grid,
        kernel: &KernelDescriptor,
        dynamic_shared: *mut u8,
    ) {
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
                // SAFETY: as in `run_serially`.
                unsafe {
                    let runner = &*this;
                    let thread = runner.current.get();
                    runner.tell(|check| check.on_thread_start(thread, stack.usable()));
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
                    // A checker reports such waits instead, because nothing guarantees that they end.
                    if idle_rounds.is_multiple_of(IDLE_ROUNDS)
                        && self.depth < MAX_DEPTH
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
            // A thread that asked to let other grids run continues right after them.
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

    /// Picks the next thread to run and marks it as not ready.
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

    pub(in crate::executor) fn make_ready(&self, warp: u32, lanes: u32) {
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
        self.tell(|check| check.on_thread_end(thread));
        self.alive.set(self.alive.get() - 1);
        let warp = thread / WARP_THREADS;
        self.lane_ended(warp, thread % WARP_THREADS);
        if self.alive.get() > 0 && self.at_barrier.get() == self.alive.get() {
            self.release_barrier();
        }
    }

    /// Ends the block because no thread can make progress.
    fn stuck(&self) {
        let waiting = || {
            (0..self.threads.get()).filter(|thread| {
                let warp = &self.warps[(thread / WARP_THREADS) as usize];
                warp.alive.get() & 1 << (thread % WARP_THREADS) != 0
            })
        };
        let first = waiting().next().unwrap_or(0);
        self.current.set(first);
        if self.has_check() {
            let list: Vec<Waiting> = waiting()
                .map(|thread| Waiting {
                    thread_number: thread,
                    thread: self.grid().thread_index(thread),
                    location: self.slot(thread).location.get(),
                    at_barrier: self.slot(thread).at_barrier.get(),
                })
                .collect();
            self.tell(|check| check.on_stuck(&list));
        }
        let location = self.slot(first).location.get();
        self.stop.set(Some(Stop::new(FaultKind::Deadlock, location)));
    }

    // ---- called from kernel code

    /// `sync_threads()`. Inlined, like the functions below: after a stack switch, every return is mispredicted.
    #[inline(always)]
    pub(in crate::executor) fn barrier(&self, location: Location) {
        if !self.has_threads() {
            return;
        }
        let thread = self.current.get();
        self.tell(|check| check.on_barrier(thread, location));
        self.at_barrier.set(self.at_barrier.get() + 1);
        let warp = &self.warps[(thread / WARP_THREADS) as usize];
        let bit = 1 << (thread % WARP_THREADS);
        if self.at_barrier.get() == self.alive.get() {
            // The last thread to arrive does not wait. The others of its warp may become ready from here on.
            self.release_barrier();
            return;
        }
        warp.at_barrier.set(warp.at_barrier.get() | bit);
        self.wait(location, true);
    }

    #[cold]
    #[inline(never)]
    fn release_barrier(&self) {
        self.at_barrier.set(0);
        self.tell(|check| check.on_barrier_release());
        if self.is_stopped() {
            self.set_stop(FaultKind::Cancelled, 0);
        }
        for warp in 0..self.threads.get().div_ceil(WARP_THREADS) {
            let lanes = self.warps[warp as usize].at_barrier.take();
            self.make_ready(warp, lanes);
        }
    }

    /// Lets the other threads run first.
    pub(in crate::executor) fn let_others_run(&self, location: Location) {
        // With a checker, only the block's own threads get a turn.
        if !self.has_threads() || (self.alive.get() == 1 && self.has_check()) {
            return;
        }
        let thread = self.current.get();
        let yielded = &self.warps[(thread / WARP_THREADS) as usize].yielded;
        yielded.set(yielded.get() | 1 << (thread % WARP_THREADS));
        self.yielded.set(true);
        self.wait(location, false);
    }
}

/// Picks one of the set bits.
fn pick(set: u32, random: &mut Random) -> u32 {
    let rotation = random.below(32) as u32;
    (set.rotate_right(rotation).trailing_zeros() + rotation) % 32
}

/// Advances an index in x, y, z order.
fn advance(index: &mut [u32; 3], extents: [u32; 3]) {
    for (position, extent) in index.iter_mut().zip(extents) {
        *position += 1;
        if *position < extent {
            return;
        }
        *position = 0;
    }
}
