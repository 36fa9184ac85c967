//! Ordering established by atomics and fences.

use std::sync::atomic::Ordering;

use super::block::BlockCheck;
use super::clock::join;
use super::order::add_point;
use super::{Fences, lock};
use crate::abi::{ACCESS_ACQUIRE, ACCESS_ATOMIC_LOAD, ACCESS_ATOMIC_STORE, ACCESS_RELEASE};

impl BlockCheck {
    /// Joins the threads' knowledge from atomics, for example at a barrier. A fence before a barrier also counts for the
    /// threads after it, as in `fence_device(); sync_threads(); if first { atomic_add(…) }`.
    pub(super) fn share(&mut self, threads: impl Iterator<Item = u32> + Clone) {
        if !self.detector.published.load(Ordering::Relaxed)
            && threads.clone().all(|thread| self.threads[thread as usize].released.is_none())
        {
            return;
        }
        for thread in threads.clone() {
            self.settle(thread);
            self.collect_pending(thread);
        }
        let (mut clock, mut released, mut pending) = (None, None, None);
        for thread in threads.clone() {
            let thread = &self.threads[thread as usize];
            join(&mut clock, &thread.clock);
            join(&mut released, &thread.released);
            join(&mut pending, &thread.pending);
        }
        for thread in threads {
            let thread = &mut self.threads[thread as usize];
            thread.clock.clone_from(&clock);
            thread.released.clone_from(&released);
            thread.pending.clone_from(&pending);
        }
    }

    pub(super) fn fence(&mut self, thread: u32) {
        self.collect_pending(thread);
        let own = &mut self.threads[thread as usize];
        let pending = own.pending.take();
        join(&mut own.clock, &pending);
        self.release(thread);
    }

    /// Lets the thread's atomics publish everything that it has done so far.
    fn release(&mut self, thread: u32) {
        let mut released = self.knowledge(thread);
        add_point(&mut released, &self.now(thread));
        self.threads[thread as usize].released = released;
        self.tick();
    }

    /// Records the ordering that an atomic establishes.
    pub(super) fn synchronise(&mut self, thread: u32, address: usize, kind: u32, flags: u32) {
        let implied = self.detector.options.fences == Fences::Implied;
        if implied || flags & ACCESS_RELEASE != 0 {
            self.release(thread);
        }
        if kind != ACCESS_ATOMIC_STORE {
            if implied || flags & ACCESS_ACQUIRE != 0 {
                self.threads[thread as usize].acquiring = Some(address);
            } else {
                self.remember_atomic(thread, address);
            }
        }
        let own = &mut self.threads[thread as usize];
        if kind != ACCESS_ATOMIC_LOAD && own.released.is_some() {
            lock(&self.detector.variables).publish(address, &own.released);
            self.detector.published.store(true, Ordering::Relaxed);
        }
    }

    /// Remembers the atomic so that the thread's next fence acquires the value that it reads.
    fn remember_atomic(&mut self, thread: u32, address: usize) {
        let own = &mut self.threads[thread as usize];
        if own.pending_addresses.contains(&address) {
            return;
        }
        let oldest = std::mem::replace(&mut own.pending_addresses[own.next_pending], address);
        own.next_pending = (own.next_pending + 1) % own.pending_addresses.len();
        if oldest != 0 && self.detector.published.load(Ordering::Relaxed) {
            join(&mut own.pending, &lock(&self.detector.variables).read(oldest));
        }
    }

    /// Joins the clocks of the atomics that the thread has read.
    fn collect_pending(&mut self, thread: u32) {
        let own = &mut self.threads[thread as usize];
        let addresses = std::mem::take(&mut own.pending_addresses);
        if self.detector.published.load(Ordering::Relaxed) {
            let variables = lock(&self.detector.variables);
            for address in addresses.into_iter().filter(|address| *address != 0) {
                join(&mut own.pending, &variables.read(address));
            }
        }
    }

    /// Applies the acquire of the thread's last atomic.
    pub(super) fn settle(&mut self, thread: u32) {
        let own = &mut self.threads[thread as usize];
        if let Some(address) = own.acquiring.take()
            && self.detector.published.load(Ordering::Relaxed)
        {
            join(&mut own.clock, &lock(&self.detector.variables).read(address));
        }
    }
}
