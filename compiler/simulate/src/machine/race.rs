//! Finds accesses of two threads to one word of which at least one writes and is no atomic operation, and which nothing
//! orders: no barrier, no operation of a warp, no atomic operations on one word.
//!
//! Every thread has a clock with an entry for each thread; an entry tells up to which of its steps the other thread is
//! known to have come (Flanagan and Freund, "FastTrack: efficient and precise dynamic race detection"). Atomic operations
//! count as acquire and release whatever fences are around them: missing fences are the business of `memory/weak.rs`. A
//! store of the value that is there already does not count.

use std::collections::{BTreeSet, HashMap};

use super::thread::Frame;

/// Where an access is: function and operation, and those of its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) inner: (u32, u32),
    pub(super) outer: (u32, u32),
}

impl Site {
    pub(super) fn of(now: &Frame, caller: Option<&Frame>) -> Self {
        let outer = caller.map_or((u32::MAX, 0), |caller| (caller.function, caller.next));
        Site { inner: (now.function, now.next), outer }
    }
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Load,
    Store,
    /// An atomic load, or the load of another atomic operation.
    AtomicLoad,
    /// The store of an atomic operation.
    AtomicStore,
}

impl Kind {
    fn is_atomic(self) -> bool {
        matches!(self, Kind::AtomicLoad | Kind::AtomicStore)
    }

    fn is_load(self) -> bool {
        matches!(self, Kind::Load | Kind::AtomicLoad)
    }
}

/// The last access of a kind by a thread.
#[derive(Clone, Copy, Debug)]
struct Seen {
    thread: usize,
    time: u32,
    site: Site,
    kind: Kind,
    /// A bit for each byte of the word.
    bytes: u8,
}

/// A pair of accesses, the earlier one first.
pub(super) type Pair = ((Kind, Site), (Kind, Site));

#[derive(Clone, Debug)]
pub(super) struct Races {
    clocks: Vec<Vec<u32>>,
    /// By address divided by 4.
    words: HashMap<u64, Vec<Seen>>,
    /// The clocks that atomic operations pass on, by address divided by 4.
    passed: HashMap<u64, Vec<u32>>,
    pub(super) found: BTreeSet<Pair>,
}

impl Races {
    pub(super) fn new(threads: usize) -> Self {
        let mut clocks = vec![vec![0; threads]; threads];
        clocks.iter_mut().enumerate().for_each(|(at, clock)| clock[at] = 1);
        let found = BTreeSet::new();
        Races { clocks, words: HashMap::new(), passed: HashMap::new(), found }
    }

    /// Notes an access to up to `bytes` bytes.
    pub(super) fn access(
        &mut self,
        thread: usize,
        address: u64,
        bytes: u32,
        kind: Kind,
        site: Site,
    ) {
        let words = address / 4..=(address + u64::from(bytes.max(1)) - 1) / 4;
        if kind.is_atomic() {
            let clock = &mut self.clocks[thread];
            if let Some(passed) = self.passed.get(words.start()) {
                join(clock, passed);
            }
        }
        let clock = &self.clocks[thread];
        let end = address + u64::from(bytes.max(1));
        for word in words.clone() {
            let inside = (word * 4..word * 4 + 4).map(|byte| (address..end).contains(&byte));
            let bytes = inside.enumerate().fold(0, |bits, (at, is)| bits | u8::from(is) << at);
            let seen = self.words.entry(word).or_default();
            seen.retain(|old| {
                let is_before = clock[old.thread] >= old.time;
                let agree = old.kind.is_load() && kind.is_load()
                    || old.kind.is_atomic() && kind.is_atomic();
                let conflicts = !agree && old.thread != thread && old.bytes & bytes != 0;
                if conflicts && !is_before {
                    self.found.insert(((old.kind, old.site), (kind, site)));
                }
                // What comes before a store, or before this access of the same thread and kind, need not be kept.
                let replaced = old.thread == thread && old.kind == kind;
                let covered = old.bytes & !bytes == 0;
                !(is_before && covered && (kind == Kind::Store || replaced))
            });
            seen.push(Seen { thread, time: clock[thread], site, kind, bytes });
        }
        if kind.is_atomic() {
            let clock = &mut self.clocks[thread];
            let passed = self.passed.entry(*words.start()).or_default();
            passed.resize(clock.len(), 0);
            join(passed, clock);
            clock[thread] += 1;
        }
    }

    /// Threads that have waited for each other.
    pub(super) fn meet(&mut self, threads: &[usize]) {
        let Some((&first, rest)) = threads.split_first() else { return };
        let mut common = std::mem::take(&mut self.clocks[first]);
        for &thread in rest {
            join(&mut common, &self.clocks[thread]);
        }
        for &thread in rest {
            self.clocks[thread].copy_from_slice(&common);
            self.clocks[thread][thread] += 1;
        }
        common[first] += 1;
        self.clocks[first] = common;
    }
}

fn join(to: &mut [u32], from: &[u32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = (*to).max(*from);
    }
}
