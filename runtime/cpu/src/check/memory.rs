//! The allocations that kernels may use, and the lookup of addresses.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use super::shadow::{Conflict, Mark, Needs, PAGE_BYTES, Page, Touch};
use super::{Memory, lock};
use crate::abi::{Location, RED_ZONE_BYTES};
use crate::hooks::Variable;

/// Maximum freed allocations remembered to report uses after free.
const FREED_LIMIT: usize = 1024;

/// A stray access within this distance of an allocation is attributed to it.
const NEAR_BYTES: usize = 4096;

/// Kind of memory, as reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Program(Memory),
    Shared,
    DynamicShared,
    /// A parameter buffer that has not been launched yet.
    Parameters,
}

#[derive(Debug)]
pub(super) struct Allocation {
    pub(super) start: usize,
    pub(super) bytes: usize,
    pub(super) purpose: Use,
    /// Name in the source, for a variable; that which the host gave, for a buffer.
    pub(super) name: OnceLock<Arc<str>>,
    /// Number of the buffer, from 1.
    pub(super) number: u64,
    initialised: bool,
    pages: OnceLock<Box<[Mutex<Page>]>>,
}

/// Findings of one access.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Offset in the allocation of the first uninitialised byte.
    pub(super) unwritten: Option<usize>,
    /// The first conflict; its `byte` is an offset in the allocation.
    pub(super) conflict: Option<Conflict>,
}

impl Allocation {
    pub(super) fn new(range: Range<usize>, purpose: Use, initialised: bool) -> Self {
        Allocation {
            start: range.start,
            bytes: range.len(),
            purpose,
            name: OnceLock::new(),
            number: 0,
            initialised,
            pages: OnceLock::new(),
        }
    }

    /// A variable in the memory that begins at `start`.
    pub(super) fn variable(start: usize, variable: &Variable, purpose: Use, written: bool) -> Self {
        let first = start.saturating_add(variable.offset);
        let range = first..first.saturating_add(variable.bytes);
        let name = Arc::clone(&variable.name).into();
        Allocation { name, ..Allocation::new(range, purpose, written) }
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.bytes
    }

    pub(super) fn end(&self) -> usize {
        self.start + self.bytes
    }

    /// Whether the address is in the red zone before or after a static.
    fn is_overrun(&self, address: usize) -> bool {
        self.purpose == Use::Program(Memory::Static)
            && (address.wrapping_sub(self.end()) < RED_ZONE_BYTES
                || self.start.wrapping_sub(address) <= RED_ZONE_BYTES)
    }

    /// Whether it is a segment of an image, which holds other allocations.
    pub(super) fn is_segment(&self) -> bool {
        self.purpose == Use::Program(Memory::Image)
    }

    fn pages(&self) -> &[Mutex<Page>] {
        self.pages.get_or_init(|| {
            let new = || if self.initialised { Page::written() } else { Page::default() };
            (0..self.bytes.div_ceil(PAGE_BYTES)).map(|_| Mutex::new(new())).collect()
        })
    }

    /// Splits a range inside the allocation into pages and the byte range in each.
    fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let (start, end) = (range.start - self.start, range.end.min(self.end()) - self.start);
        (start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).map(move |page| {
            let first = page * PAGE_BYTES;
            (page, start.max(first) - first..end.min(first + PAGE_BYTES) - first)
        })
    }

    pub(super) fn host_wrote(&self, start: usize, bytes: usize) {
        for (page, range) in self.parts(start..start.saturating_add(bytes)) {
            let mut page = lock(&self.pages()[page]);
            page.set_written(range.clone());
            page.forget(range);
        }
    }

    /// Offset of the first uninitialised byte in the range.
    pub(super) fn first_unwritten(&self, range: Range<usize>) -> Option<usize> {
        self.parts(range).find_map(|(index, range)| {
            let first = lock(&self.pages()[index]).first_unwritten(range, Needs::EveryByte)?;
            Some(first + index * PAGE_BYTES)
        })
    }

    /// Address ranges of the uninitialised bytes in a range inside the allocation.
    pub(super) fn unwritten(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for (index, range) in self.parts(range) {
            let page = lock(&self.pages()[index]);
            let first = self.start + index * PAGE_BYTES;
            for byte in page.unwritten(range).map(|byte| first + byte) {
                match found.last_mut() {
                    Some(last) if last.end == byte => last.end += 1,
                    _ => found.push(byte..byte + 1),
                }
            }
        }
        found
    }

    /// Marks bytes inside the allocation as uninitialised.
    pub(super) fn set_unwritten(&self, range: Range<usize>) {
        for (index, range) in self.parts(range) {
            lock(&self.pages()[index]).set_unwritten(range);
        }
    }

    /// Finds an earlier access of the allocation that does not precede an access of all its bytes.
    pub(super) fn unordered_use(
        &self,
        generation: u32,
        mut ordered: impl FnMut(Mark) -> bool,
    ) -> Option<Conflict> {
        let pages = self.pages.get()?;
        pages.iter().enumerate().find_map(|(index, page)| {
            let conflict = lock(page).unordered_use(generation, &mut ordered)?;
            Some(Conflict { byte: conflict.byte + index * PAGE_BYTES, ..conflict })
        })
    }

    /// Records an access inside the allocation and returns its findings.
    pub(super) fn touch(
        &self,
        range: Range<usize>,
        touch: &Touch,
        mut ordered: impl FnMut(Mark) -> bool,
    ) -> Findings {
        let pages = self.pages();
        let start = range.start - self.start;
        let (index, first) = (start / PAGE_BYTES, start % PAGE_BYTES);
        if first + range.len() <= PAGE_BYTES {
            return touch_page(
                &pages[index],
                index,
                first..first + range.len(),
                touch,
                &mut ordered,
            );
        }
        let mut findings = Findings::default();
        for (index, range) in self.parts(range) {
            let found = touch_page(&pages[index], index, range, touch, &mut ordered);
            findings.unwritten = findings.unwritten.or(found.unwritten);
            findings.conflict = findings.conflict.or(found.conflict);
        }
        findings
    }
}

/// Records an access inside one page.
#[inline]
fn touch_page(
    page: &Mutex<Page>,
    index: usize,
    range: Range<usize>,
    touch: &Touch,
    ordered: impl FnMut(Mark) -> bool,
) -> Findings {
    let mut page = lock(page);
    let first = index * PAGE_BYTES;
    let unwritten = page.first_unwritten(range.clone(), touch.needs).map(|byte| byte + first);
    let conflict = page.touch(range.clone(), touch, ordered);
    if touch.writes {
        page.set_written(range);
    }
    let conflict = conflict.map(|conflict| Conflict { byte: conflict.byte + first, ..conflict });
    Findings { unwritten, conflict }
}

/// Explanation of an invalid address.
#[derive(Debug)]
pub(super) enum Stray {
    Null,
    /// Freed at this location (0: by the host).
    Freed(Arc<Allocation>, Location),
    /// Close to this allocation, or partly inside it.
    Near(Arc<Allocation>),
    /// In the local memory of another thread.
    Stack,
    Nowhere,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    live: BTreeMap<usize, Arc<Allocation>>,
    /// Image segments: hold any data that is not one of the variables in `live`.
    segments: Vec<Arc<Allocation>>,
    freed: VecDeque<(Arc<Allocation>, Location)>,
    count: u64,
    /// Stacks of the threads of all blocks.
    pub(super) stacks: Vec<Range<usize>>,
}

impl Table {
    pub(super) fn add(&mut self, start: usize, bytes: usize, memory: Memory, initialised: bool) {
        self.count += u64::from(memory == Memory::Buffer);
        let range = start..start.saturating_add(bytes);
        self.freed.retain(|(freed, _)| freed.end() <= range.start || freed.start >= range.end);
        let allocation = Allocation::new(range, Use::Program(memory), initialised);
        let allocation = Arc::new(Allocation { number: self.count, ..allocation });
        if memory == Memory::Image {
            self.segments.push(allocation);
        } else {
            self.live.insert(start, allocation);
        }
    }

    /// Adds a `static` of an image; its `offset` is the address.
    pub(super) fn add_static(&mut self, variable: &Variable) {
        let allocation = Allocation::variable(0, variable, Use::Program(Memory::Static), true);
        self.live.insert(allocation.start, Arc::new(allocation));
    }

    /// Names a buffer.
    pub(super) fn set_name(&self, start: usize, name: &str) {
        if let Some(allocation) = self.live.get(&start) {
            allocation.name.get_or_init(|| name.into());
        }
    }

    pub(super) fn free(&mut self, start: usize, location: Location) {
        let Some(allocation) = self.live.remove(&start) else {
            self.segments.retain(|segment| segment.start != start);
            return;
        };
        if self.freed.len() == FREED_LIMIT {
            self.freed.pop_front();
        }
        self.freed.push_back((allocation, location));
    }

    /// The allocation that contains the address.
    pub(super) fn find(&self, address: usize) -> Option<&Arc<Allocation>> {
        let below = self.live.range(..=address).next_back().map(|(_, allocation)| allocation);
        if let Some(below) = below
            && (below.contains(address) || below.is_overrun(address))
        {
            return below.contains(address).then_some(below);
        }
        let above = self.live.range(address..).next().map(|(_, allocation)| allocation);
        if above.is_some_and(|above| above.is_overrun(address)) {
            return None;
        }
        self.segments.iter().find(|segment| segment.contains(address))
    }

    /// Explains an access that is not entirely inside one allocation.
    pub(super) fn explain(&self, address: usize) -> Stray {
        if address < PAGE_BYTES {
            return Stray::Null;
        }
        if self.stacks.iter().any(|stacks| stacks.contains(&address)) {
            return Stray::Stack;
        }
        if let Some((freed, location)) =
            self.freed.iter().rev().find(|(freed, _)| freed.contains(address))
        {
            return Stray::Freed(Arc::clone(freed), *location);
        }
        let below = self.live.range(..=address).next_back().map(|(_, allocation)| allocation);
        let above = self.live.range(address..).next().map(|(_, allocation)| allocation);
        let near = [
            below.map(|allocation| (address.saturating_sub(allocation.end()), allocation)),
            above.map(|allocation| (allocation.start - address, allocation)),
        ];
        near.into_iter()
            .flatten()
            .filter(|(distance, _)| *distance < NEAR_BYTES)
            .min_by_key(|(distance, _)| *distance)
            .map_or(Stray::Nowhere, |(_, allocation)| Stray::Near(Arc::clone(allocation)))
    }
}
