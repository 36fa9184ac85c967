//! Ordering established by atomics and fences.

use std::sync::atomic::Ordering;

use super::block::BlockCheck;
use super::clock::{Scoped, SharedClock, join};
use super::order::add_point;
use super::{Fences, lock};
use crate::abi::{
    ACCESS_ACQUIRE, ACCESS_ATOMIC_LOAD, ACCESS_ATOMIC_STORE, ACCESS_BLOCK, ACCESS_RELEASE,
};

impl BlockCheck {
    /// Joins the threads' knowledge from atomics, for example at a barrier. A fence before a barrier also counts for the
    /// threads after it, as in `fence_device(); sync_threads(); if first { atomic_add(…) }`.
    pub(super) fn share(&mut self, threads: impl Iterator<Item = u32> + Clone) {
        if !self.detector.published.load(Ordering::Relaxed)
            && threads.clone().all(|thread| self.threads[thread as usize].released.is_empty())
        {
            return;
        }
        for thread in threads.clone() {
            self.settle(thread);
            self.collect_pending(thread);
        }
        let (mut clock, mut released, mut pending) = (None, Scoped::default(), Scoped::default());
        for thread in threads.clone() {
            let thread = &self.threads[thread as usize];
            join(&mut clock, &thread.clock);
            released.join(&thread.released);
            pending.join(&thread.pending);
        }
        for thread in threads {
            let thread = &mut self.threads[thread as usize];
            thread.clock.clone_from(&clock);
            thread.released.clone_from(&released);
            thread.pending.clone_from(&pending);
        }
    }

    /// A fence, for the threads of the block only if `in_block`.
    pub(super) fn fence(&mut self, thread: u32, in_block: bool) {
        self.collect_pending(thread);
        let own = &mut self.threads[thread as usize];
        let known = own.pending.block.take();
        join(&mut own.clock, &known);
        if !in_block {
            let known = own.pending.device.take();
            join(&mut own.clock, &known);
        }
        self.release(thread, in_block);
    }

    /// Lets the thread's atomics publish everything that it has done so far.
    fn release(&mut self, thread: u32, in_block: bool) {
        let done = self.done(thread);
        let released = &mut self.threads[thread as usize].released;
        if !in_block {
            released.device.clone_from(&done);
        }
        released.block = done;
    }

    /// Everything that the thread has done or knows so far; what it does next is not part of it.
    fn done(&mut self, thread: u32) -> SharedClock {
        let mut done = self.knowledge(thread);
        add_point(&mut done, &self.now(thread));
        self.tick();
        done
    }

    /// Records the ordering that an atomic establishes.
    pub(super) fn synchronise(&mut self, thread: u32, address: usize, kind: u32, flags: u32) {
        let implied = self.detector.options.fences == Fences::Implied;
        if implied {
            self.release(thread, false);
        }
        if kind != ACCESS_ATOMIC_STORE {
            if implied || flags & ACCESS_ACQUIRE != 0 {
                let in_block = !implied && flags & ACCESS_BLOCK != 0;
                self.acquire(thread, address, in_block);
                self.threads[thread as usize].acquiring = Some((address, in_block));
            } else {
                self.remember_atomic(thread, address);
            }
        }
        if kind == ACCESS_ATOMIC_LOAD {
            return;
        }
        let mut published = self.threads[thread as usize].released.clone();
        if !implied && flags & ACCESS_RELEASE != 0 {
            // Only this store publishes it; later relaxed ones to other variables do not.
            let done = self.done(thread);
            published.block.clone_from(&done);
            if flags & ACCESS_BLOCK == 0 {
                published.device = done;
            }
        }
        let replaces = kind == ACCESS_ATOMIC_STORE && flags & ACCESS_RELEASE == 0 && !implied;
        let any_published = self.detector.published.load(Ordering::Relaxed);
        if !published.is_empty() || (replaces && any_published) {
            let writer = (self.block, u16::try_from(thread).unwrap_or(u16::MAX));
            lock(&self.detector.variables).publish(address, writer, &published, replaces);
            self.detector.published.store(true, Ordering::Relaxed);
        }
    }

    /// What the variable at an address tells the thread.
    fn told_by(&self, address: usize) -> Scoped {
        match self.detector.published.load(Ordering::Relaxed) {
            true => lock(&self.detector.variables).read(address, self.block),
            false => Scoped::default(),
        }
    }

    /// Remembers the atomic so that the thread's next fence acquires the value that it reads.
    fn remember_atomic(&mut self, thread: u32, address: usize) {
        // A later store may replace what the value tells before the fence comes.
        let told = self.told_by(address);
        let own = &mut self.threads[thread as usize];
        own.pending.join(&told);
        if own.pending_addresses.contains(&address) {
            return;
        }
        let oldest = std::mem::replace(&mut own.pending_addresses[own.next_pending], address);
        own.next_pending = (own.next_pending + 1) % own.pending_addresses.len();
        if oldest != 0 {
            let told = self.told_by(oldest);
            self.threads[thread as usize].pending.join(&told);
        }
    }

    /// Joins the clocks of the atomics that the thread has read.
    fn collect_pending(&mut self, thread: u32) {
        let own = &mut self.threads[thread as usize];
        let addresses = std::mem::take(&mut own.pending_addresses);
        if self.detector.published.load(Ordering::Relaxed) {
            let variables = lock(&self.detector.variables);
            for address in addresses.into_iter().filter(|address| *address != 0) {
                own.pending.join(&variables.read(address, self.block));
            }
        }
    }

    /// The thread knows what the variable at an address tells; if `in_block`, only what it tells threads of the same block.
    fn acquire(&mut self, thread: u32, address: usize, in_block: bool) {
        let told = self.told_by(address);
        let own = &mut self.threads[thread as usize];
        if !in_block {
            join(&mut own.clock, &told.device);
        }
        join(&mut own.clock, &told.block);
    }

    /// Applies the acquire of the thread's last atomic.
    pub(super) fn settle(&mut self, thread: u32) {
        if let Some((address, in_block)) = self.threads[thread as usize].acquiring.take() {
            self.acquire(thread, address, in_block);
        }
    }
}
