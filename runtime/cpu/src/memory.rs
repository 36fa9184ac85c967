//! Global memory of the CPU device: plain allocations, known by their addresses.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use crate::abi::RED_ZONE_BYTES;
use crate::sync::lock;

/// Alignment of an allocation, as of `cuMemAlloc` (driver API: "suitably aligned for any kind of variable"; in
/// fact 256 bytes).
const ALIGNMENT: usize = 256;

/// A zero-filled block with an alignment, for parameters and shared memory.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    first: *mut u8,
    layout: Option<Layout>,
}

// SAFETY: it owns the bytes.
unsafe impl Send for AlignedBytes {}

impl AlignedBytes {
    /// No bytes.
    pub(crate) const EMPTY: AlignedBytes =
        AlignedBytes { first: std::ptr::null_mut(), layout: None };

    /// At least so many bytes, zero; `None` if there is no memory.
    pub(crate) fn new(bytes: usize, alignment: usize) -> Option<AlignedBytes> {
        let layout = Layout::from_size_align(bytes.max(1), alignment).ok()?;
        // SAFETY: the size is not 0.
        let first = unsafe { std::alloc::alloc_zeroed(layout) };
        (!first.is_null()).then_some(AlignedBytes { first, layout: Some(layout) })
    }

    pub(crate) fn first(&self) -> *mut u8 {
        self.first
    }

    /// How many.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.map_or(0, |layout| layout.size())
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(self.first, layout) };
        }
    }
}

/// Bytes of freed memory that a checked device keeps from being used again, so that who still uses it is found.
const QUARANTINE_BYTES: usize = 64 << 20;

/// All allocations that live.
#[derive(Debug)]
pub(crate) struct Allocations {
    alignment: usize,
    /// Unused bytes behind each, so that who runs over its end is found.
    padding: usize,
    live: Mutex<BTreeMap<usize, Allocation>>,
    freed: Mutex<Freed>,
}

#[derive(Clone, Copy, Debug)]
struct Allocation {
    bytes: usize,
    layout: Layout,
}

#[derive(Debug, Default)]
struct Freed {
    /// Addresses, the oldest first.
    waiting: VecDeque<(usize, Layout)>,
    bytes: usize,
}

impl Allocations {
    /// `checked`: whether a checker sees accesses.
    pub(crate) fn new(checked: bool) -> Allocations {
        Allocations::aligned(checked, ALIGNMENT)
    }

    /// The same with another alignment.
    pub(crate) fn aligned(checked: bool, alignment: usize) -> Allocations {
        let padding = if checked { RED_ZONE_BYTES } else { 0 };
        Allocations { alignment, padding, live: Mutex::default(), freed: Mutex::default() }
    }

    /// That many bytes, not initialised; `None` if there is no memory.
    pub(crate) fn alloc(&self, bytes: usize) -> Option<*mut u8> {
        let padded = bytes.max(1).checked_add(self.padding)?;
        let layout = Layout::from_size_align(padded, self.alignment).ok()?;
        // SAFETY: the size is not 0.
        let first = unsafe { alloc(layout) };
        if first.is_null() {
            return None;
        }
        lock(&self.live).insert(first as usize, Allocation { bytes, layout });
        Some(first)
    }

    /// Frees an allocation and gives its size; `None` if there is none at that address.
    pub(crate) fn free(&self, address: *mut u8) -> Option<usize> {
        let allocation = lock(&self.live).remove(&(address as usize))?;
        let mut freed = lock(&self.freed);
        freed.waiting.push_back((address as usize, allocation.layout));
        freed.bytes += allocation.layout.size();
        let most = if self.padding > 0 { QUARANTINE_BYTES } else { 0 };
        while freed.bytes > most
            && let Some((address, layout)) = freed.waiting.pop_front()
        {
            freed.bytes -= layout.size();
            // SAFETY: the map held it, so it was allocated with this layout; it is in the list once.
            unsafe { dealloc(address as *mut u8, layout) };
        }
        Some(allocation.bytes)
    }

    /// Bytes of the allocation that begins there.
    pub(crate) fn size(&self, address: *mut u8) -> Option<usize> {
        lock(&self.live).get(&(address as usize)).map(|allocation| allocation.bytes)
    }
}

impl Drop for Allocations {
    fn drop(&mut self) {
        let live = std::mem::take(&mut *lock(&self.live));
        let live = live.into_iter().map(|(address, allocation)| (address, allocation.layout));
        for (address, layout) in live.chain(lock(&self.freed).waiting.drain(..)) {
            // SAFETY: as in `free`.
            unsafe { dealloc(address as *mut u8, layout) };
        }
    }
}
