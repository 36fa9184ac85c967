//! Detects incomplete barriers and endless waiting loops.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::block::BlockCheck;
use super::{Verdict, Waiting};
use crate::abi::Location;

/// Polls of a block between two updates of the device-wide count.
const POLL_BATCH: u32 = 256;

/// Maximum number of addresses that a waiting loop may read.
const WATCHED: usize = 4;

/// Counts polls since the last progress anywhere on the device.
#[derive(Debug)]
pub(super) struct Idle {
    polls: AtomicU64,
    limit: u64,
}

impl Idle {
    pub(super) fn new(limit: u64) -> Idle {
        Idle { polls: AtomicU64::new(0), limit }
    }

    pub(super) fn progress(&self) {
        self.polls.store(0, Ordering::Relaxed);
    }

    /// Adds idle polls and returns whether the limit was exceeded.
    fn add(&self, polls: u32) -> bool {
        let before = self.polls.fetch_add(u64::from(polls), Ordering::Relaxed);
        before + u64::from(polls) > self.limit
    }
}

/// Detects that a thread repeatedly reads the same memory and finds it unchanged.
#[derive(Debug, Default)]
pub(super) struct Spinning {
    watched: [usize; WATCHED],
    /// The values read once the thread appears to be waiting.
    values: [Option<u64>; WATCHED],
    next: usize,
    /// Accesses since the last poll.
    accesses: u32,
    progressed: bool,
    /// Polls without progress.
    idle: u32,
}

impl Spinning {
    /// An access inside live memory is about to happen. Returns whether the thread made progress.
    pub(super) fn accessed(&mut self, address: usize, bytes: u32, plain_write: bool) -> bool {
        self.accesses = self.accesses.saturating_add(1);
        if plain_write {
            self.progressed = true;
            return true;
        }
        let new = match self.watched.iter().position(|watched| *watched == address) {
            Some(_) if self.idle == 0 => false,
            Some(at) => {
                let now = read(address, bytes);
                self.values[at].replace(now).is_some_and(|before| before != now)
            }
            None => {
                self.watched[self.next] = address;
                self.values[self.next] = None;
                self.next = (self.next + 1) % WATCHED;
                true
            }
        };
        self.progressed |= new;
        new
    }

    /// The thread made progress.
    fn went_on(&mut self) {
        self.progressed = false;
        self.accesses = 0;
        self.idle = 0;
    }

    /// A loop that may wait starts another iteration. Returns whether the thread made progress since the last one.
    fn polled(&mut self) -> bool {
        // A loop that accesses no memory makes progress by computing.
        let progressed = self.progressed || self.accesses == 0;
        self.progressed = false;
        self.accesses = 0;
        self.idle = if progressed { 0 } else { self.idle.saturating_add(1) };
        progressed
    }
}

/// Reads memory that the caller has checked to be live, of a size that an atomic can have.
pub(super) fn read(address: usize, bytes: u32) -> u64 {
    // A kernel computed the address, so its provenance is exposed.
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the range lies in a live allocation of the device and is aligned to its size, both checked by
    // `BlockCheck::access`; other threads may write it at the same time, hence atomics.
    unsafe {
        match bytes {
            1 => u64::from(AtomicU8::from_ptr(pointer).load(Ordering::Relaxed)),
            2 => u64::from(AtomicU16::from_ptr(pointer.cast()).load(Ordering::Relaxed)),
            4 => u64::from(AtomicU32::from_ptr(pointer.cast()).load(Ordering::Relaxed)),
            8 | 16 => AtomicU64::from_ptr(pointer.cast()).load(Ordering::Relaxed),
            _ => 0,
        }
    }
}

/// Which threads have arrived at the barrier.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) threads: u32,
    pub(super) ended: u32,
    pub(super) first: Option<(u32, Location)>,
    /// The first thread to arrive at a different `sync_threads()` than `first`.
    pub(super) elsewhere: Option<(u32, Location)>,
    /// Whether each thread has arrived.
    pub(super) present: Vec<bool>,
}

impl Arrivals {
    pub(super) fn new(threads: u32) -> Arrivals {
        Arrivals {
            threads,
            ended: 0,
            first: None,
            elsewhere: None,
            present: vec![false; threads as usize],
        }
    }

    pub(super) fn thread_ended(&mut self) {
        self.ended += 1;
    }

    /// The first thread that has not arrived.
    pub(super) fn absent(&self) -> Option<u32> {
        (0..self.threads)
            .zip(&self.present)
            .find(|(_, present)| !**present)
            .map(|(thread, _)| thread)
    }

    fn arrive(&mut self, thread: u32, location: Location) {
        self.present[thread as usize] = true;
        match self.first {
            None => self.first = Some((thread, location)),
            Some((_, other)) if other != location => {
                self.elsewhere.get_or_insert((thread, location));
            }
            Some(_) => {}
        }
    }

    fn clear(&mut self) {
        self.first = None;
        self.elsewhere = None;
        self.present.fill(false);
    }
}

impl BlockCheck {
    /// The thread arrived at `sync_threads()`.
    pub fn barrier_reached(&mut self, thread: u32, location: Location) {
        self.arrivals.arrive(thread, location);
    }

    /// All live threads have arrived and continue.
    pub fn barrier_released(&mut self) {
        if !self.reported_barrier && (self.arrivals.ended > 0 || self.arrivals.elsewhere.is_some())
        {
            self.reported_barrier = true;
            self.report_barrier();
        }
        self.arrivals.clear();
        self.order_by_barrier();
    }

    /// The thread is at the head of a loop that terminates by itself.
    pub fn turn(&mut self, thread: u32) {
        self.spinning(thread).went_on();
        self.progressed = true;
    }

    /// The thread is at the head of a loop that may wait forever.
    pub fn poll(&mut self, thread: u32, location: Location) -> Verdict {
        self.progressed |= self.spinning(thread).polled();
        self.polls += 1;
        if self.polls < POLL_BATCH {
            return Verdict::Continue;
        }
        self.polls = 0;
        if std::mem::take(&mut self.progressed) {
            self.detector.idle.progress();
            return Verdict::Continue;
        }
        if !self.detector.idle.add(POLL_BATCH) {
            // The thread being waited for may need this processor.
            std::thread::yield_now();
            return Verdict::Continue;
        }
        self.detector.idle.progress();
        self.report_endless(thread, location);
        Verdict::Stop
    }

    pub(super) fn report_stuck(&mut self, waiting: &[(u32, Waiting)]) {
        let warp = waiting.iter().find_map(|(thread, waiting)| match waiting {
            Waiting::Warp(location) => Some((*thread, *location)),
            Waiting::Barrier(_) => None,
        });
        match warp {
            Some((thread, location)) => self.report_warp(thread, location),
            None if self.reported_barrier => {}
            None => {
                for (thread, waiting) in waiting {
                    if let Waiting::Barrier(location) = waiting
                        && !self.arrivals.present[*thread as usize]
                    {
                        self.arrivals.arrive(*thread, *location);
                    }
                }
                self.reported_barrier = true;
                self.report_barrier();
            }
        }
    }
}
