//! Checks the events of one block's threads.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::clock::{Scoped, SharedClock, join};
use super::explain::Subject;
use super::locals::Locals;
use super::memory::{Allocation, Findings, Use};
use super::order::{Order, Point, Stamp, add_point};
use super::repeats::{Access, Repeats};
use super::shadow::{Atomic, Mark, Needs, Touch};
use super::waits::{Arrivals, Spinning};
use super::{Detector, DeviceStream, GridId, Launch, Memory, Verdict, Waiting, lock};
use crate::abi::{
    ACCESS_ACQUIRE, ACCESS_ATOMIC, ACCESS_ATOMIC_LOAD, ACCESS_ATOMIC_STORE, ACCESS_BLOCK,
    ACCESS_BYTES, ACCESS_FENCE, ACCESS_FREE, ACCESS_MALLOC, ACCESS_PARAMETER,
    ACCESS_PARAMETER_SHIFT, ACCESS_READ, ACCESS_RELEASE, ACCESS_UNSET, ACCESS_WRITE, Location,
    RED_ZONE_BYTES,
};
use crate::hooks::Variable;

/// Number of threads in a warp.
const WARP: u32 = 32;

/// Number of allocations that a block caches to avoid table lookups.
const RECENT_ALLOCATIONS: usize = 4;

/// Number of cached order queries: most accesses compare with the same few threads.
const KNOWN_ORDERS: usize = 8;

/// Up to this size an access's size is its alignment; larger accesses are copies of aggregates.
const WIDEST_ACCESS: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct Thread {
    stack: Range<usize>,
    locals: Locals,
    /// Knowledge gained through atomics; empty in most programs.
    pub(super) clock: SharedClock,
    /// Knowledge that the thread's atomics publish since its last fence.
    pub(super) released: Scoped,
    /// Knowledge that the next fence acquires: from the last addresses read atomically and, joined here, from all. The
    /// detector sees an atomic before it happens, so it looks up the clock at that time and again at a later event.
    pub(super) pending: Scoped,
    pub(super) pending_addresses: [usize; 4],
    pub(super) next_pending: usize,
    /// Address of the last acquiring atomic, and whether its scope is the block, until the next event.
    pub(super) acquiring: Option<(usize, bool)>,
    spinning: Spinning,
}

/// Order between the lanes of a warp through `sync_warp` since the block's last barrier: lane `i` knows lane `j`'s
/// accesses at times below `[i][j]`.
type Lanes = [[u32; WARP as usize]; WARP as usize];

/// Where a block found an allocation.
#[derive(Clone, Copy, Debug)]
enum Holder {
    Shared(usize),
    Buffer(usize),
    Recent(usize),
}

/// The detector's view of a running block. Threads are numbered in x, y, z order.
#[derive(Debug)]
pub struct BlockCheck {
    pub(super) detector: Arc<Detector>,
    pub(super) grid: u32,
    pub(super) block: u32,
    generation: u32,
    /// Logical time, which stamps accesses: advances at each barrier, fence, launch and `sync_warp` of any thread.
    time: u32,
    /// Time of the last barrier.
    barrier: u32,
    /// Epoch of the current time; 0 until needed.
    epoch: u32,
    pub(super) threads: Vec<Thread>,
    lanes: Vec<Option<Box<Lanes>>>,
    /// Number of launches into the block's default stream, and the last one.
    default_stream: (u32, u32),
    /// The block's shared variables and dynamic shared memory.
    shared: Vec<Arc<Allocation>>,
    /// Parameter buffers that threads have obtained but not launched yet.
    buffers: Vec<Arc<Allocation>>,
    parameters: Range<usize>,
    recent: Vec<Arc<Allocation>>,
    next_recent: usize,
    memory_version: u64,
    repeats: Repeats,
    /// Cache of accesses known to precede the thread's current time; order never reverses.
    ordered: Cell<[(u32, u16, u16); KNOWN_ORDERS]>,
    pub(super) arrivals: Arrivals,
    pub(super) polls: u32,
    pub(super) progressed: bool,
    /// Whether a barrier was already reported; each block reports it once.
    pub(super) reported_barrier: bool,
}

impl BlockCheck {
    pub(super) fn new(
        detector: Arc<Detector>,
        grid: u32,
        index: [u32; 3],
        static_shared: usize,
        dynamic_shared: Range<usize>,
    ) -> BlockCheck {
        let (block, clock, generation, threads, parameters, kernel) = {
            let mut order = detector.write_order();
            let (block, clock) = order.new_block(grid, index);
            let launched = order.grid(grid);
            let threads = launched.block_dim.iter().product::<u32>();
            let (parameters, kernel) = (launched.parameters.clone(), launched.kernel.clone());
            (block, clock, order.generation(), threads, parameters, kernel)
        };
        let variables = kernel.iter().flat_map(|kernel| kernel.memory.shared.iter());
        let shared = variables
            .map(|variable| Allocation::variable(static_shared, variable, Use::Shared, false))
            .chain([Allocation::new(dynamic_shared, Use::DynamicShared, false)])
            .map(Arc::new)
            .collect();
        let repeats = lock(&detector.repeats).pop().unwrap_or_default();
        let new_thread = || Thread { clock: clock.clone(), ..Thread::default() };
        BlockCheck {
            grid,
            block,
            generation,
            time: 1,
            barrier: 1,
            epoch: 0,
            threads: (0..threads).map(|_| new_thread()).collect(),
            lanes: (0..threads.div_ceil(WARP)).map(|_| None).collect(),
            default_stream: (0, 0),
            shared,
            buffers: Vec::new(),
            parameters,
            recent: Vec::new(),
            next_recent: 0,
            memory_version: 0,
            repeats,
            ordered: Cell::new([(0, 0, 0); KNOWN_ORDERS]),
            arrivals: Arrivals::new(threads),
            polls: 0,
            progressed: false,
            reported_barrier: false,
            detector,
        }
    }

    /// A thread starts on this stack.
    pub fn thread_started(&mut self, thread: u32, stack: Range<usize>) {
        self.threads[thread as usize].stack = stack;
    }

    /// A thread returned.
    pub fn thread_ended(&mut self, thread: u32) {
        self.threads[thread as usize].stack = 0..0;
        self.arrivals.thread_ended();
        self.progressed = true;
    }

    /// A thread is about to access memory or execute a fence; `kind` as in [`crate::abi`].
    pub fn access(
        &mut self,
        thread: u32,
        address: usize,
        bytes: u32,
        kind: u32,
        location: Location,
    ) -> Verdict {
        let parameter = (kind & ACCESS_PARAMETER) >> ACCESS_PARAMETER_SHIFT;
        let kind = kind & !ACCESS_PARAMETER;
        if parameter > 0 {
            self.check_overlap(thread, (address, bytes), kind, parameter as u8, location);
        }
        let plain = bytes <= WIDEST_ACCESS && (kind == ACCESS_READ || kind == ACCESS_WRITE);
        let access = plain.then(|| Access {
            address,
            location,
            bytes: bytes as u16,
            thread: thread_number(thread),
        });
        let is_write = kind == ACCESS_WRITE;
        if let Some(access) = &access
            && self.repeats.contain(access, is_write)
            && self.memory_version == self.detector.memory_version.load(Ordering::Acquire)
        {
            let own = &mut self.threads[thread as usize];
            if own.acquiring.is_none() {
                self.progressed |= own.spinning.accessed(address, bytes, is_write);
                return Verdict::Continue;
            }
        }
        self.look_at(thread, address, bytes, kind, location, access)
    }

    /// Compares an access through a pointer parameter of a `#[noalias]` kernel with those through the others.
    fn check_overlap(
        &self,
        thread: u32,
        (address, bytes): (usize, u32),
        kind: u32,
        parameter: u8,
        location: Location,
    ) {
        let kind = kind & 0xf;
        let writes = !matches!(kind, ACCESS_READ | ACCESS_ATOMIC_LOAD);
        let range = (address, bytes as usize);
        let found =
            lock(&self.detector.overlaps).access(self.grid, parameter, range, writes, location);
        if let Some((other, wrote)) = found {
            let subject = Subject { thread, location, address, bytes, kind };
            self.report_overlap(&subject, other, wrote);
        }
    }

    /// Checks an access that does not repeat an earlier one.
    fn look_at(
        &mut self,
        thread: u32,
        address: usize,
        bytes: u32,
        kind: u32,
        location: Location,
        plain: Option<Access>,
    ) -> Verdict {
        self.settle(thread);
        let flags = kind & (ACCESS_ACQUIRE | ACCESS_RELEASE | ACCESS_BYTES | ACCESS_BLOCK);
        let kind = kind & !flags;
        if kind == ACCESS_FENCE {
            self.fence(thread, flags & ACCESS_BLOCK != 0);
            return Verdict::Continue;
        }
        if kind == ACCESS_UNSET {
            self.locals(thread).unset(address);
            return Verdict::Continue;
        }
        let subject = Subject { thread, location, address, bytes, kind };
        if kind == ACCESS_MALLOC || kind == ACCESS_FREE {
            return self.heap(&subject);
        }
        let is_bytes = flags & ACCESS_BYTES != 0;
        let is_whole = !is_bytes && bytes <= 2 * WIDEST_ACCESS && bytes.is_power_of_two();
        let alignment = if is_whole { bytes.min(WIDEST_ACCESS) } else { 1 };
        if !address.is_multiple_of(alignment as usize) {
            self.report_misaligned(&subject, alignment);
            return Verdict::Stop;
        }
        let range = address..address.saturating_add(bytes as usize);
        let needs = match kind {
            ACCESS_READ if is_bytes => Needs::Nothing,
            ACCESS_READ if bytes > WIDEST_ACCESS => Needs::AnyByte,
            ACCESS_READ | ACCESS_ATOMIC | ACCESS_ATOMIC_LOAD => Needs::EveryByte,
            _ => Needs::Nothing,
        };
        let writes = !matches!(kind, ACCESS_READ | ACCESS_ATOMIC_LOAD);
        let is_atomic = matches!(kind, ACCESS_ATOMIC | ACCESS_ATOMIC_LOAD | ACCESS_ATOMIC_STORE);
        let own = &mut self.threads[thread as usize];
        if own.stack.contains(&address) {
            let Some(local) = own.locals.holder(&range) else {
                let stray = own.locals.explain(address);
                self.report_local(&subject, &stray);
                return Verdict::Stop;
            };
            let unset = local.touch(&range, needs, writes);
            if is_atomic {
                let local = local.clone();
                self.report_local_atomic(&subject, &local);
            } else if let Some(byte) = unset {
                let local = local.clone();
                self.report_unset(&subject, &local, byte);
            }
            return Verdict::Continue;
        }
        // The threads of a grid only read it. Unwritten parameters were reported at the launch.
        if self.parameters.contains(&address) && range.end <= self.parameters.end {
            return Verdict::Continue;
        }
        let found = self.find(address);
        let Some(at) = found.filter(|at| range.end <= self.allocation(*at).end()) else {
            self.report_stray(&subject);
            return Verdict::Stop;
        };
        let atomic = match is_atomic {
            false => Atomic::No,
            true if flags & ACCESS_BLOCK != 0 => Atomic::Block,
            true => Atomic::Device,
        };
        if is_atomic {
            self.synchronise(thread, address, kind, flags);
        }
        let mark = Mark { epoch: self.epoch(), location, thread: thread_number(thread), atomic };
        let touch = Touch { mark, needs, writes, generation: self.generation };
        self.repeats.touch(address, bytes as usize, mark.thread, plain.map(|_| writes));
        let allocation = self.allocation(at);
        let findings = allocation.touch(range, &touch, |mark| {
            self.are_atomic_in_block(mark, atomic) || self.is_ordered(thread, mark)
        });
        if findings.unwritten.is_some() || findings.conflict.is_some() {
            self.report_findings(&subject, allocation, &findings);
        } else if let Some(plain) = plain {
            self.repeats.add(plain, writes);
        }
        let spinning = &mut self.threads[thread as usize].spinning;
        self.progressed |= is_bytes || spinning.accessed(address, bytes, writes && !is_atomic);
        Verdict::Continue
    }

    #[cold]
    fn report_findings(&self, subject: &Subject, allocation: &Allocation, findings: &Findings) {
        if let Some(offset) = findings.unwritten {
            self.report_unwritten(subject, allocation, offset);
        }
        if let Some(conflict) = findings.conflict {
            self.report_race(subject, allocation, &conflict);
        }
    }

    /// Checks `malloc` and `free`.
    fn heap(&mut self, subject: &Subject) -> Verdict {
        self.progressed = true;
        let (address, location) = (subject.address, subject.location);
        if address == 0 {
            return Verdict::Continue;
        }
        if subject.kind == ACCESS_MALLOC {
            let memory = Memory::Heap(location);
            self.detector.allocated(address, subject.bytes as usize, memory, false);
            return Verdict::Continue;
        }
        let found = self.find(address).map(|at| Arc::clone(self.allocation(at))).filter(|found| {
            found.start == address && matches!(found.purpose, Use::Program(Memory::Heap(_)))
        });
        let Some(allocation) = found else {
            self.report_bad_free(subject);
            return Verdict::Stop;
        };
        // A free acts as a write of the whole allocation: all other uses must precede it.
        let generation = self.generation;
        let ordered = |mark| self.is_ordered(subject.thread, mark);
        let conflict = allocation.unordered_use(generation, ordered);
        if let Some(conflict) = conflict {
            self.report_race(subject, &allocation, &conflict);
        }
        self.detector.freed(address, location);
        Verdict::Continue
    }

    /// `sync_warp` released these threads.
    pub fn warp_synced(&mut self, threads: &[u32]) {
        let Some(warp) = threads.first().map(|thread| thread / WARP) else { return };
        self.tick();
        let (time, barrier) = (self.time, self.barrier);
        let lanes = self.lanes[warp as usize]
            .get_or_insert_with(|| Box::new([[barrier; WARP as usize]; WARP as usize]));
        let mut known = [0; WARP as usize];
        for thread in threads {
            let own = (thread % WARP) as usize;
            lanes[own][own] = time;
            for (known, of_lane) in known.iter_mut().zip(&lanes[own]) {
                *known = (*of_lane).max(*known);
            }
        }
        for thread in threads {
            lanes[(thread % WARP) as usize] = known;
        }
        self.share(threads.iter().copied());
        self.progressed = true;
    }

    /// A thread's launch was accepted.
    pub fn launch(
        &mut self,
        thread: u32,
        launch: Launch,
        stream: DeviceStream,
        location: Location,
    ) -> GridId {
        self.settle(thread);
        self.take_parameters(thread, &launch, location);
        let knows = self.knowledge(thread);
        let launcher = self.now(thread);
        let mut default_stream = self.default_stream;
        let grid = self.detector.write_order().device_launch(
            launch,
            launcher,
            stream,
            location,
            &mut default_stream,
            knows,
        );
        self.default_stream = default_stream;
        self.tick();
        self.progressed = true;
        GridId(grid)
    }

    /// A thread received a parameter buffer for a launch.
    pub fn parameter_buffer(&mut self, buffer: Range<usize>) {
        self.repeats.forget();
        // The buffer of a failed launch may be reused.
        self.buffers.retain(|known| known.start != buffer.start);
        self.buffers.push(Arc::new(Allocation::new(buffer, Use::Parameters, false)));
    }

    /// Checks that a launch has all its parameters.
    fn take_parameters(&mut self, thread: u32, launch: &Launch, location: Location) {
        let first = launch.parameters.start;
        let Some(at) = self.buffers.iter().position(|buffer| buffer.start == first) else { return };
        let buffer = self.buffers.swap_remove(at);
        let is_missing = |variable: &&Variable| {
            let start = first + variable.offset;
            let range = start..start + variable.bytes;
            range.end <= buffer.end() && buffer.first_unwritten(range).is_some()
        };
        let missing: Vec<&Variable> =
            launch.kernel.memory.parameters.iter().filter(is_missing).collect();
        if !missing.is_empty() {
            self.report_parameters(thread, location, &launch.kernel.name, &missing);
        }
    }

    /// The block copied memory.
    pub(super) fn copied(&mut self, from: usize, to: usize, bytes: usize) {
        self.repeats.forget();
        self.detector.copied(from, to, bytes);
    }

    /// The block ended.
    pub fn ended(mut self) {
        self.repeats.forget();
        lock(&self.detector.repeats).push(self.repeats);
        if self.detector.published.load(Ordering::Relaxed) {
            let mut known = None;
            for thread in &self.threads {
                join(&mut known, &thread.clock);
            }
            self.detector.write_order().block_ended(self.grid, &known);
        }
        self.detector.idle.progress();
    }

    /// All live threads pass a barrier: each of them now knows everything before it.
    pub(super) fn order_by_barrier(&mut self) {
        self.tick();
        self.barrier = self.time;
        self.lanes.fill_with(|| None);
        self.share(0..thread_count(self.threads.len()));
        self.progressed = true;
    }

    /// The current point of a thread, which everything it has done so far precedes.
    pub(super) fn now(&self, thread: u32) -> Point {
        Point {
            block: self.block,
            thread: thread_number(thread),
            time: self.time + 1,
            barrier: self.barrier,
        }
    }

    /// What a thread knows beyond its own time and its block's barriers.
    pub(super) fn knowledge(&self, thread: u32) -> SharedClock {
        let mut knows = self.threads[thread as usize].clock.clone();
        if let Some(lanes) = &self.lanes[(thread / WARP) as usize] {
            let first = thread / WARP * WARP;
            for (lane, time) in (first..).zip(lanes[(thread % WARP) as usize]) {
                if lane != thread && time > self.barrier {
                    let point = Point { time, ..self.now(lane) };
                    add_point(&mut knows, &point);
                }
            }
        }
        knows
    }

    /// Advances the block's time.
    pub(super) fn tick(&mut self) {
        self.repeats.forget();
        self.time += 1;
        self.epoch = 0;
    }

    fn epoch(&mut self) -> u32 {
        if self.epoch == 0 {
            self.epoch = self.detector.write_order().new_epoch(self.block, self.time);
        }
        self.epoch
    }

    /// Whether the marked access and one of this block are both atomic, at least for the threads of this block.
    fn are_atomic_in_block(&self, mark: Mark, atomic: Atomic) -> bool {
        mark.atomic != Atomic::No
            && atomic != Atomic::No
            && stamp(&self.detector.read_order(), mark).block == self.block
    }

    /// Whether the marked access precedes the thread's current point; uses the cache.
    fn is_ordered(&self, thread: u32, mark: Mark) -> bool {
        if mark.epoch == self.epoch {
            return u32::from(mark.thread) == thread;
        }
        let key = (mark.epoch, mark.thread, thread_number(thread));
        let mut known = self.ordered.get();
        let place =
            &mut known[(mark.epoch ^ u32::from(mark.thread) ^ thread) as usize % KNOWN_ORDERS];
        if *place == key {
            return true;
        }
        let is_ordered = self.looks_ordered(thread, mark);
        if is_ordered {
            *place = key;
            self.ordered.set(known);
        }
        is_ordered
    }

    /// Like [`Self::is_ordered`], without the cache.
    fn looks_ordered(&self, thread: u32, mark: Mark) -> bool {
        let order = self.detector.read_order();
        let stamp = stamp(&order, mark);
        if stamp.block == self.block {
            let other = u32::from(stamp.thread);
            if other == thread || stamp.time < self.barrier {
                return true;
            }
            if other / WARP == thread / WARP
                && let Some(lanes) = &self.lanes[(thread / WARP) as usize]
                && stamp.time < lanes[(thread % WARP) as usize][(other % WARP) as usize]
            {
                return true;
            }
        }
        order.before(stamp, &self.now(thread))
            || self.threads[thread as usize]
                .clock
                .as_ref()
                .is_some_and(|clock| clock.knows(stamp, &order))
    }

    /// Finds the allocation that contains an address.
    fn find(&mut self, address: usize) -> Option<Holder> {
        let version = self.detector.memory_version.load(Ordering::Acquire);
        if version != self.memory_version {
            self.memory_version = version;
            self.recent.clear();
            self.repeats.forget();
        }
        if let Some(at) = self.shared.iter().position(|own| own.contains(address)) {
            return Some(Holder::Shared(at));
        }
        if let Some(at) = self.buffers.iter().position(|own| own.contains(address)) {
            return Some(Holder::Buffer(at));
        }
        if let Some(at) =
            self.recent.iter().position(|recent| !recent.is_segment() && recent.contains(address))
        {
            return Some(Holder::Recent(at));
        }
        let found = self.detector.read_memory().find(address).map(Arc::clone)?;
        if self.recent.len() < RECENT_ALLOCATIONS {
            self.recent.push(found);
            return Some(Holder::Recent(self.recent.len() - 1));
        }
        let at = self.next_recent;
        self.recent[at] = found;
        self.next_recent = (at + 1) % RECENT_ALLOCATIONS;
        Some(Holder::Recent(at))
    }

    /// The end of the memory that contains an address, and the first uninitialised byte from there on.
    pub(super) fn extent(&mut self, thread: u32, address: usize) -> Option<(usize, Option<usize>)> {
        let own = &mut self.threads[thread as usize];
        if own.stack.contains(&address) {
            let local = own.locals.holder(&(address..address + 1))?;
            let start = local.variable.offset;
            let unset = local.first_unset(address - start).map(|offset| start + offset);
            return Some((local.range().end, unset));
        }
        if self.parameters.contains(&address) {
            return Some((self.parameters.end, None));
        }
        let at = self.find(address)?;
        let allocation = self.allocation(at);
        let unset = allocation.first_unwritten(address..allocation.end());
        Some((allocation.end(), unset.map(|offset| allocation.start + offset)))
    }

    fn allocation(&self, holder: Holder) -> &Arc<Allocation> {
        match holder {
            Holder::Shared(at) => &self.shared[at],
            Holder::Buffer(at) => &self.buffers[at],
            Holder::Recent(at) => &self.recent[at],
        }
    }

    /// The block's own allocation nearest to an address outside all memory, if it is close enough.
    pub(super) fn near_own(&self, address: usize) -> Option<&Arc<Allocation>> {
        let distance = |own: &&Arc<Allocation>| {
            own.start.saturating_sub(address).max((address + 1).saturating_sub(own.end()))
        };
        let own = self.shared.iter().chain(&self.buffers).filter(|own| own.bytes > 0);
        own.filter(|own| distance(own) <= RED_ZONE_BYTES).min_by_key(distance)
    }

    /// A thread's local variables.
    pub(super) fn locals(&mut self, thread: u32) -> &mut Locals {
        &mut self.threads[thread as usize].locals
    }

    /// The thread whose stack contains the address.
    pub(super) fn stack_owner(&self, address: usize) -> Option<u32> {
        let owner = self.threads.iter().position(|thread| thread.stack.contains(&address))?;
        Some(thread_count(owner))
    }

    /// A thread's polling state.
    pub(super) fn spinning(&mut self, thread: u32) -> &mut Spinning {
        &mut self.threads[thread as usize].spinning
    }

    /// No thread of the block can make progress; `waiting` lists each waiting thread and its reason.
    pub fn stuck(&mut self, waiting: &[(u32, Waiting)]) {
        self.report_stuck(waiting);
    }
}

pub(super) fn stamp(order: &Order, mark: Mark) -> Stamp {
    let (block, time) = order.epoch(mark.epoch);
    Stamp { block, thread: mark.thread, time }
}

/// A block has at most 1,024 threads.
fn thread_number(thread: u32) -> u16 {
    u16::try_from(thread).unwrap_or(u16::MAX)
}

fn thread_count(threads: usize) -> u32 {
    u32::try_from(threads).unwrap_or(u32::MAX)
}
