//! Turns findings into reports: what happened, where, which threads took part, and how to fix it.

use std::ops::Range;
use std::sync::Arc;

use super::block::{BlockCheck, stamp};
use super::locals::{Local, LocalStray};
use super::memory::{Allocation, Stray, Use};
use super::order::{HOST, Order};
use super::render::{plural, text_of};
use super::report::{ChainLink, Kind, OtherAccess, Place, Report};
use super::shadow::{Atomic, Conflict};
use super::{Memory, lock};
use crate::abi::{
    ACCESS_ACQUIRE, ACCESS_ATOMIC, ACCESS_ATOMIC_LOAD, ACCESS_ATOMIC_STORE, ACCESS_FREE,
    ACCESS_READ, ACCESS_RELEASE, Location, TRAP_DIVISION, TRAP_EXPLICIT, file_and_line,
};
use crate::executor::is_operation_name;
use crate::hooks::{Variable, WarpMistake};

/// Maximum launches in a reported chain; deep recursion has thousands.
const CHAIN_LIMIT: usize = 8;

/// The access that a report is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) thread: u32,
    pub(super) location: Location,
    pub(super) address: usize,
    pub(super) bytes: u32,
    pub(super) kind: u32,
}

impl Subject {
    fn verb(&self) -> &'static str {
        match self.kind {
            ACCESS_READ => "reads",
            ACCESS_ATOMIC => "atomically updates",
            ACCESS_ATOMIC_LOAD => "atomically reads",
            ACCESS_ATOMIC_STORE => "atomically writes",
            ACCESS_FREE => "frees",
            _ => "writes",
        }
    }

    fn bytes(&self) -> String {
        format!("{} byte{}", self.bytes, if self.bytes == 1 { "" } else { "s" })
    }
}

impl BlockCheck {
    pub(super) fn report_misaligned(&self, subject: &Subject, alignment: u32) {
        let message = format!(
            "kernel `{{kernel}}` {} {} at an address that is not a multiple of {alignment}",
            subject.verb(),
            subject.bytes()
        );
        let action = format!(
            "{} {} at an address that is {} more than a multiple of {alignment}",
            subject.verb(),
            subject.bytes(),
            subject.address % alignment as usize
        );
        self.report(subject, Kind::Misaligned, &message, action, None, "a value of N bytes (2, 4, 8, 16) must be at a multiple of N; check casts between pointer types and byte offsets");
    }

    pub(super) fn report_stray(&self, subject: &Subject) {
        let mut kind = Kind::OutOfBounds;
        let (verb, bytes) = (subject.verb(), subject.bytes());
        let near = self.near_own(subject.address).map(Arc::clone);
        let stray = match near {
            _ if self.stack_owner(subject.address).is_some() => Stray::Stack,
            Some(own) => Stray::Near(own),
            None => self.detector.read_memory().explain(subject.address),
        };
        let (message, action, help) = match stray {
            Stray::Stack => (
                "kernel `{kernel}` uses a local variable of another thread".to_string(),
                format!("{verb} {bytes} of the local memory of another thread"),
                "only its own thread can use a local variable, not a grid that the thread launches; use shared or global memory instead",
            ),
            Stray::Null => (
                "kernel `{kernel}` uses a null pointer".to_string(),
                format!("{verb} {bytes} at address {}", subject.address),
                "the pointer must not be null; check the argument passed here and the result of `malloc`, which returns 0 when out of memory",
            ),
            Stray::Freed(allocation, location) => {
                kind = Kind::UseAfterFree;
                let by = match location {
                    0 => "the host".to_string(),
                    location => text_of(&self.place(location)),
                };
                (
                    format!("kernel `{{kernel}}` uses {} after it was freed", name(&allocation)),
                    format!(
                        "{verb} {bytes} at byte {} of {}, freed by {by}",
                        subject.address - allocation.start,
                        describe(&allocation)
                    ),
                    "free memory only after its last use; a child grid may still be running after the line that launched it",
                )
            }
            Stray::Near(allocation) => {
                let position = side(subject.address, &(allocation.start..allocation.end()));
                (
                    format!("kernel `{{kernel}}` {verb} outside {}", name(&allocation)),
                    format!("{verb} {bytes}, {position} {}", describe(&allocation)),
                    "check the index against the number of elements, as in `if i < n`; the last block may have more threads than elements",
                )
            }
            Stray::Nowhere => (
                format!("kernel `{{kernel}}` {verb} outside the program's memory"),
                format!("{verb} {bytes} at an address outside all buffers"),
                "the index may be negative or far too large, or the pointer may refer to another block's shared memory",
            ),
        };
        self.report(subject, kind, &message, action, None, help);
    }

    /// An array index is out of bounds.
    pub(super) fn report_index(
        &self,
        thread: u32,
        location: Location,
        kind: u32,
        index: i64,
        count: u64,
        array: &str,
    ) {
        let kind = kind & !(ACCESS_ACQUIRE | ACCESS_RELEASE);
        let subject = Subject { thread, location, address: 0, bytes: 0, kind };
        let array =
            if array.is_empty() { "an array".into() } else { format!("the array `{array}`") };
        let message = format!("kernel `{{kernel}}` {} outside {array}", subject.verb());
        let elements = if count == 1 { "element" } else { "elements" };
        let action =
            format!("{} element {index} of {array}, which has {count} {elements}", subject.verb());
        self.report(
            &subject,
            Kind::OutOfBounds,
            &message,
            action,
            None,
            "valid indices of an array of N elements are 0 to N - 1; check the index against N",
        );
    }

    /// An access of the thread's own stack outside all live local variables.
    pub(super) fn report_local(&self, subject: &Subject, stray: &LocalStray) {
        let (verb, bytes) = (subject.verb(), subject.bytes());
        let (kind, message, action, help) = match stray {
            LocalStray::Gone(local) => {
                let name = &local.variable.name;
                (
                    Kind::UseAfterFree,
                    format!(
                        "kernel `{{kernel}}` uses the local variable `{name}` after its function has returned"
                    ),
                    format!(
                        "{verb} {bytes} of `{name}`, whose lifetime ended when the function at {} returned",
                        text_of(&self.place(local.location))
                    ),
                    "a local variable lives only until its function returns; return its value, or have the caller pass a pointer to its own variable",
                )
            }
            LocalStray::Near(local) => {
                let name = &local.variable.name;
                let size = local.variable.bytes;
                (
                    Kind::OutOfBounds,
                    format!("kernel `{{kernel}}` {verb} outside the local variable `{name}`"),
                    format!(
                        "{verb} {bytes}, {} the local variable `{name}` ({size} byte{})",
                        side(subject.address, &local.range()),
                        plural(size)
                    ),
                    "check the index against the number of elements of the variable that the pointer refers to",
                )
            }
            LocalStray::Nowhere => (
                Kind::OutOfBounds,
                format!("kernel `{{kernel}}` {verb} local memory outside all variables"),
                format!("{verb} {bytes} of its local memory, outside all variables"),
                "the address may be that of a local variable of another thread, such as the one that launched this grid, or was moved far from its variable; give other threads the addresses of shared or global memory, and check the index",
            ),
        };
        self.report(subject, kind, &message, action, None, help);
    }

    /// A launch whose parameter buffer has unwritten parameters.
    pub(super) fn report_parameters(
        &self,
        thread: u32,
        location: Location,
        child: &str,
        missing: &[&Variable],
    ) {
        let subject = Subject { thread, location, address: 0, bytes: 0, kind: ACCESS_READ };
        let names: Vec<String> = missing.iter().map(|one| format!("`{}`", one.name)).collect();
        let message = format!("kernel `{{kernel}}` launches `{child}` with an unwritten parameter");
        let first = missing.first().map_or(0, |first| first.offset);
        let action = format!(
            "launches it without writing {} (from byte {first} of the parameter buffer)",
            names.join(", ")
        );
        self.report(&subject, Kind::Uninitialised, &message, action, None, "store each argument at its parameter's offset before `cudaLaunchDeviceV2`; `gridlet layout` shows the offsets");
    }

    /// `free` of an address that is not from `malloc`, or a double free.
    pub(super) fn report_bad_free(&self, subject: &Subject) {
        let stray = self.detector.read_memory().explain(subject.address);
        let (kind, message, action) = match stray {
            Stray::Freed(allocation, location) => (
                Kind::UseAfterFree,
                "kernel `{kernel}` frees memory twice",
                format!(
                    "frees {}, already freed by {}",
                    describe(&allocation),
                    text_of(&self.place(location))
                ),
            ),
            _ => (
                Kind::OutOfBounds,
                "kernel `{kernel}` frees an address that is not from `malloc`",
                "frees an address that `malloc` did not return".to_string(),
            ),
        };
        self.report(
            subject,
            kind,
            message,
            action,
            None,
            "pass each address that `malloc` returned to `free` exactly once, unchanged",
        );
    }

    pub(super) fn report_unwritten(
        &self,
        subject: &Subject,
        allocation: &Allocation,
        offset: usize,
    ) {
        let message =
            format!("kernel `{{kernel}}` reads uninitialised bytes of {}", name(allocation));
        let action = format!(
            "{} {} at byte {} of {}; byte {offset} is uninitialised",
            subject.verb(),
            subject.bytes(),
            subject.address - allocation.start,
            describe(allocation),
        );
        let help = match allocation.purpose {
            Use::Shared | Use::DynamicShared => {
                "shared memory is uninitialised when a block starts; write it first, and put `sync_threads()` between the write and the read"
            }
            _ => "memory is uninitialised when allocated; fill it from the host or write it first",
        };
        self.report(subject, Kind::Uninitialised, &message, action, None, help);
    }

    /// A read of a part of a local variable that was never set.
    pub(super) fn report_unset(&self, subject: &Subject, local: &Local, offset: usize) {
        let Local { variable, .. } = local;
        let (name, size) = (&variable.name, variable.bytes);
        let message =
            format!("kernel `{{kernel}}` reads unset bytes of the local variable `{name}`");
        let action = format!(
            "{} {} at byte {} of `{name}` ({size} byte{}); byte {offset} is unset",
            subject.verb(),
            subject.bytes(),
            subject.address - variable.offset,
            plural(size),
        );
        let help =
            "set every part of the variable that is read, or give it a value where it is declared";
        self.report(subject, Kind::Uninitialised, &message, action, None, help);
    }

    /// An atomic operation on a local variable of its thread.
    pub(super) fn report_local_atomic(&self, subject: &Subject, local: &Local) {
        let name = &local.variable.name;
        let message =
            format!("kernel `{{kernel}}` uses the local variable `{name}` in an atomic operation");
        let action = format!("{} {} of `{name}`", subject.verb(), subject.bytes());
        let help = "GPUs have atomic operations on global and shared memory only; use the variable directly, or one that other threads reach";
        self.report(subject, Kind::LocalAtomic, &message, action, None, help);
    }

    /// A `printf` of a string with an uninitialised byte, at the address `unset`.
    pub(super) fn report_unset_string(&self, subject: &Subject, unset: usize) {
        let message = "kernel `{kernel}` prints a string with uninitialised bytes";
        let offset = unset - subject.address;
        let action = format!("prints a string whose byte {offset} is uninitialised");
        let help = "write the whole string first, with the 0 byte that ends it";
        self.report(subject, Kind::Uninitialised, message, action, None, help);
    }

    /// A `printf` of a string that no 0 byte ends.
    pub(super) fn report_endless_string(&self, subject: &Subject) {
        let message = "kernel `{kernel}` prints a string without an end";
        let action =
            "prints a string that goes on to the end of its memory without a 0 byte".to_string();
        let help = "end the string with a 0 byte, or limit its length, as in `%.8s`";
        self.report(subject, Kind::OutOfBounds, message, action, None, help);
    }

    pub(super) fn report_overlap(&self, subject: &Subject, other: Location, wrote: bool) {
        let place = self.place(other);
        let done = if wrote { "written" } else { "read" };
        let action = format!(
            "{} {} that line {} has {done} through another parameter",
            subject.verb(),
            subject.bytes(),
            place.line
        );
        let message =
            "the pointers of kernel `{kernel}`, which is `#[noalias]`, lead to the same memory";
        let help = "remove `#[noalias]`, or pass pointers to memory that does not overlap where the kernel writes";
        self.report(subject, Kind::Overlap, message, action, None, help);
    }

    pub(super) fn report_race(
        &self,
        subject: &Subject,
        allocation: &Allocation,
        conflict: &Conflict,
    ) {
        let order = self.detector.read_order();
        let other = stamp(&order, conflict.mark);
        let other_grid = order.block(other.block).grid;
        let verb = if subject.kind == ACCESS_FREE { "frees it" } else { "writes" };
        let was_atomic = conflict.mark.atomic != Atomic::No;
        let is_atomic =
            matches!(subject.kind, ACCESS_ATOMIC | ACCESS_ATOMIC_LOAD | ACCESS_ATOMIC_STORE);
        let action = match (conflict.wrote, was_atomic) {
            (true, true) => "updated it atomically",
            (true, false) => "wrote it",
            (false, true) => "read it atomically",
            (false, false) => "read it",
        };
        let other_access = OtherAccess {
            place: place(&order, other_grid, conflict.mark.location),
            kernel: kernel(&order, other_grid),
            thread: thread(&order, other.block, u32::from(other.thread)),
            action: action.to_string(),
            chain: chain(&order, other_grid).0,
        };
        let (message, help) = if other.block == self.block {
            (
                format!(
                    "two threads of a block access {} without synchronisation, and one of them {verb}",
                    name(allocation)
                ),
                if subject.thread / 32 == u32::from(other.thread) / 32 {
                    "put `sync_threads()` (or, within a warp, `sync_warp(m)`) between the two, or use atomics"
                } else {
                    "put `sync_threads()` between the two, or use atomics"
                },
            )
        } else if other_grid == self.grid {
            (
                format!(
                    "two blocks of a grid access {} without synchronisation, and one of them {verb}",
                    name(allocation)
                ),
                "blocks of a grid run concurrently and in any order: give each block its own elements, use atomics (with `fence_device()` between them and the data that they guard), or split the kernel in two",
            )
        } else {
            (
                format!(
                    "two grids access {} without synchronisation, and one of them {verb}",
                    name(allocation)
                ),
                if is_below(&order, self.grid, other_grid)
                    || is_below(&order, other_grid, self.grid)
                {
                    "a child sees only writes that its launching thread made before the launch (and, after a `sync_threads()`, earlier writes of that block); a parent never waits for a child: move work that must follow the child to a `stream = tail` launch"
                } else {
                    "launch both into the same stream from the same block, or launch the second with `stream = tail`"
                },
            )
        };
        let help = if was_atomic && is_atomic {
            "an `atomic_…_block` is atomic only for the threads of its block: use the operation without `_block`"
        } else {
            help
        };
        drop(order);
        let offset = (conflict.byte).max(subject.address - allocation.start);
        let action = match subject.kind {
            ACCESS_FREE => format!("frees {} while byte {offset} is in use", describe(allocation)),
            _ => format!(
                "{} {} at byte {offset} of {}",
                subject.verb(),
                subject.bytes(),
                describe(allocation)
            ),
        };
        self.report(subject, Kind::Race, &message, action, Some(other_access), help);
    }

    /// Reports which threads reached the barrier and which did not.
    pub(super) fn report_barrier(&self) {
        let arrivals = &self.arrivals;
        let Some((thread, location)) = arrivals.first else { return };
        let subject = Subject { thread, location, address: 0, bytes: 0, kind: ACCESS_READ };
        let present = arrivals.present.iter().filter(|present| **present).count();
        let message =
            "not all threads of a block of kernel `{kernel}` reach the same `sync_threads()`";
        let action = format!("waits here; {present} of {} threads wait", arrivals.threads);
        let order = self.detector.read_order();
        let other = if let Some((other, location)) = arrivals.elsewhere {
            Some((other, location, "waits at another `sync_threads()`".to_string()))
        } else {
            arrivals.absent().map(|absent| {
                let action = if arrivals.ended > 0 { "has ended" } else { "does not arrive" };
                (absent, location, action.to_string())
            })
        };
        let other = other.map(|(other, location, action)| OtherAccess {
            place: place(&order, self.grid, location),
            kernel: kernel(&order, self.grid),
            thread: self::thread(&order, self.block, other),
            action,
            chain: Vec::new(),
        });
        drop(order);
        self.report(&subject, Kind::Barrier, message, action, other, "`sync_threads()` waits for all threads of the block: move it out of any `if` or loop that some threads skip, and replace an early `return` with an `if`");
    }

    pub(super) fn report_warp(&self, thread: u32, location: Location) {
        let subject = Subject { thread, location, address: 0, bytes: 0, kind: ACCESS_READ };
        let message = "a warp operation of kernel `{kernel}` waits for lanes that never arrive";
        let action = "waits here for a lane in its mask".to_string();
        self.report(&subject, Kind::Barrier, message, action, None, "the mask must contain exactly the lanes that execute the operation together; `ballot(m, c)` before an `if c` computes it");
    }

    pub(super) fn report_warp_mistake(
        &self,
        thread: u32,
        mistake: WarpMistake,
        location: Location,
    ) {
        let subject = Subject { thread, location, address: 0, bytes: 0, kind: ACCESS_READ };
        let lane_of = |thread: u32| thread % 32;
        let (message, action, other, help) = match mistake {
            WarpMistake::OwnLane { mask } => (
                "a lane of kernel `{kernel}` calls a warp operation whose mask lacks it",
                format!("is lane {}, which the mask {mask:#010x} lacks", lane_of(thread)),
                None,
                "the mask must contain exactly the lanes that execute the operation together, the calling lane included",
            ),
            WarpMistake::Ended { lane } => (
                "a warp operation of kernel `{kernel}` waits for lanes that never arrive",
                format!(
                    "has lane {lane} in its mask, which skips the operation and runs to the end of the kernel"
                ),
                None,
                "the mask must contain exactly the lanes that execute the operation together; only lanes that have returned early may be in it as well",
            ),
            WarpMistake::Different { mask, other, other_location, other_mask } => {
                let order = self.detector.read_order();
                let other = OtherAccess {
                    place: place(&order, self.grid, other_location),
                    kernel: kernel(&order, self.grid),
                    thread: self::thread(&order, self.block, other),
                    action: format!("waits in a warp operation with the mask {other_mask:#010x}"),
                    chain: Vec::new(),
                };
                (
                    "lanes of a warp of kernel `{kernel}` wait for each other in different operations or with different masks",
                    format!("waits here with the mask {mask:#010x}"),
                    Some(other),
                    "all lanes of a mask must execute the same operation with the same mask",
                )
            }
            WarpMistake::Source { lane, named } => (
                "a shuffle of kernel `{kernel}` reads from a lane that does not take part",
                if named {
                    format!("reads from lane {lane}, which has ended")
                } else {
                    format!("reads from lane {lane}, which its mask lacks")
                },
                None,
                "such a value is undefined even if nothing uses it: read only from lanes of the mask that are still running, for example from the own lane instead",
            ),
        };
        self.report(&subject, Kind::Barrier, message, action, other, help);
    }

    pub(super) fn report_endless(&self, thread: u32, location: Location) {
        let subject = Subject { thread, location, address: 0, bytes: 0, kind: ACCESS_READ };
        let message = "a loop of kernel `{kernel}` waits forever";
        let action = "loops without progress: it only reads memory that no thread changes any more"
            .to_string();
        self.report(&subject, Kind::InfiniteWait, message, action, None, "a block that waits for a later block, a parent that waits for its child, or a thread that waits for an unreleased lock never makes progress");
    }

    /// The thread ended the grid; `kind` as in [`crate::abi::Callbacks::trap`].
    pub fn trap(&self, thread: u32, kind: u32, place: Place) {
        let subject = Subject { thread, location: 0, address: 0, bytes: 0, kind: ACCESS_READ };
        let (message, action, help) = match kind {
            TRAP_DIVISION => (
                "kernel `{kernel}` divides an integer by zero",
                "divides by zero",
                "check the divisor first",
            ),
            TRAP_EXPLICIT => (
                "kernel `{kernel}` stops itself",
                "calls `trap()` or fails an `assert`",
                "the program detected an invalid state; check the condition that led here",
            ),
            _ => (
                "kernel `{kernel}` reaches code assumed to be unreachable",
                "executes code that the compiler assumes to be unreachable",
                "a loop or `match` ends in a way that the program declares impossible",
            ),
        };
        let report = self.build(&subject, Kind::Trap, message, action.to_string(), None, help);
        lock(&self.detector.reports).add(Report { place, ..report });
    }

    fn place(&self, location: Location) -> Place {
        place(&self.detector.read_order(), self.grid, location)
    }

    fn report(
        &self,
        subject: &Subject,
        kind: Kind,
        message: &str,
        action: String,
        other: Option<OtherAccess>,
        help: &str,
    ) {
        let report = self.build(subject, kind, message, action, other, help);
        lock(&self.detector.reports).add(report);
    }

    fn build(
        &self,
        subject: &Subject,
        kind: Kind,
        message: &str,
        action: String,
        other: Option<OtherAccess>,
        help: &str,
    ) -> Report {
        let order = self.detector.read_order();
        let kernel = kernel(&order, self.grid);
        let (chain, chain_omitted) = chain(&order, self.grid);
        let is_operation = is_operation(&order, self.grid);
        let message =
            if is_operation { message.replace("kernel ", "") } else { message.to_string() };
        let help = match kind {
            Kind::OutOfBounds if is_operation => {
                "the size of a copy or fill is in bytes; check it against the sizes of the source and the destination"
            }
            _ => help,
        };
        Report {
            kind,
            message: message.replace("{kernel}", &kernel),
            place: place(&order, self.grid, subject.location),
            thread: thread(&order, self.block, subject.thread),
            kernel,
            action,
            other,
            help: help.to_string(),
            chain,
            chain_omitted,
            count: 1,
        }
    }
}

/// Whether `grid` is a descendant of `ancestor`.
fn is_below(order: &Order, mut grid: u32, ancestor: u32) -> bool {
    while grid != HOST && grid != ancestor {
        grid = order.grid(grid).parent;
    }
    grid == ancestor
}

fn kernel(order: &Order, grid: u32) -> String {
    order.grid(grid).kernel.as_ref().map_or_else(String::new, |kernel| kernel.name.clone())
}

fn place(order: &Order, grid: u32, location: Location) -> Place {
    let (file, line) = file_and_line(location).unwrap_or_default();
    let kernel = order.grid(grid).kernel.as_ref();
    let file = kernel
        .and_then(|kernel| kernel.sources.get(file as usize).cloned())
        .unwrap_or_else(|| format!("file {file}"));
    Place { file, line }
}

/// Whether the grid is a copy or fill, which has no program thread.
fn is_operation(order: &Order, grid: u32) -> bool {
    order.grid(grid).kernel.as_ref().is_some_and(|kernel| is_operation_name(&kernel.name))
}

/// `thread 5 of block (1, 2, 0)`.
fn thread(order: &Order, block: u32, thread: u32) -> String {
    let block = order.block(block);
    if is_operation(order, block.grid) {
        return format!("`{}`", kernel(order, block.grid));
    }
    let grid = order.grid(block.grid);
    let [x, y, _] = grid.block_dim.map(|extent| extent.max(1));
    let index = [thread % x, thread / x % y, thread / x / y];
    format!(
        "thread {} of block {}",
        coordinates(index, grid.block_dim),
        coordinates(block.index, grid.grid_dim)
    )
}

fn coordinates([x, y, z]: [u32; 3], extents: [u32; 3]) -> String {
    if extents[1..] == [1, 1] { x.to_string() } else { format!("({x}, {y}, {z})") }
}

/// The launches that led to a grid, innermost first, and the number omitted before the last.
fn chain(order: &Order, mut grid: u32) -> (Vec<ChainLink>, u32) {
    let (mut links, mut omitted) = (Vec::new(), 0);
    while let Some(launcher) = order.grid(grid).launcher {
        let parent = order.block(launcher.block).grid;
        if links.len() == CHAIN_LIMIT {
            links.pop();
            omitted += 1;
        }
        links.push(ChainLink {
            kernel: kernel(order, parent),
            place: place(order, parent, order.grid(grid).location),
            thread: thread(order, launcher.block, u32::from(launcher.thread)),
        });
        grid = parent;
    }
    (links, omitted)
}

/// The allocation's name in reports.
fn name(allocation: &Allocation) -> String {
    let known = allocation.name.get().map_or("", |name| name);
    let named = |kind: &str| format!("{kind} `{known}`");
    match allocation.purpose {
        Use::Shared => named("the shared variable"),
        Use::DynamicShared => "dynamic shared memory".into(),
        Use::Parameters => "the parameter buffer of a launch".into(),
        Use::Program(Memory::Buffer) => "a buffer".into(),
        Use::Program(Memory::Heap(_)) => "memory from `malloc`".into(),
        Use::Program(Memory::Static) => named("the static"),
        Use::Program(Memory::Image) => "a variable of the program".into(),
        Use::Program(Memory::String) => "a string of the program".into(),
    }
}

/// The allocation's name and size.
fn describe(allocation: &Allocation) -> String {
    let bytes = format!("{} byte{}", allocation.bytes, plural(allocation.bytes));
    match allocation.purpose {
        Use::DynamicShared => format!("the block's dynamic shared memory ({bytes})"),
        Use::Program(Memory::Buffer) => match allocation.name.get() {
            Some(name) => format!("the buffer of `{name}` ({bytes})"),
            None => format!("buffer {} ({bytes})", allocation.number),
        },
        Use::Program(Memory::Heap(location)) => {
            format!("memory from `malloc` at line {} ({bytes})", location & 0xff_ffff)
        }
        Use::Program(Memory::Image) => "the program's variables".to_string(),
        _ => format!("{} ({bytes})", name(allocation)),
    }
}

/// Position of an access that crosses or lies outside a range, such as `3 bytes past the end of`.
fn side(address: usize, range: &Range<usize>) -> String {
    if address < range.start {
        let before = range.start - address;
        return format!("{before} byte{} before the start of", plural(before));
    }
    match address.checked_sub(range.end) {
        Some(0) => "just past the end of".to_string(),
        Some(past) => format!("{past} byte{} past the end of", plural(past)),
        None => "across the end of".to_string(),
    }
}
