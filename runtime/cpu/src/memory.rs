//! Global memory of the CPU device: plain allocations, identified by address.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use crate::abi::RED_ZONE_BYTES;
use crate::sync::lock;

/// Alignment of an allocation, as for `cuMemAlloc` (driver API: "suitably aligned for any kind of variable"; 256 bytes
/// in practice).
const ALIGNMENT: usize = 256;

/// An aligned, zero-filled allocation for parameters and shared memory.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    first: *mut u8,
    layout: Option<Layout>,
}

// SAFETY: it owns its bytes.
unsafe impl Send for AlignedBytes {}

impl AlignedBytes {
    /// An empty allocation.
    pub(crate) const EMPTY: AlignedBytes =
        AlignedBytes { first: std::ptr::null_mut(), layout: None };

    /// Allocates at least `bytes` zeroed bytes; `None` if out of memory.
    pub(crate) fn new(bytes: usize, alignment: usize) -> Option<AlignedBytes> {
        let layout = Layout::from_size_align(bytes.max(1), alignment).ok()?;
        // SAFETY: the size is not 0.
        let first = unsafe { std::alloc::alloc_zeroed(layout) };
        (!first.is_null()).then_some(AlignedBytes { first, layout: Some(layout) })
    }

    pub(crate) fn first(&self) -> *mut u8 {
        self.first
    }

    /// Size in bytes.
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

/// Bytes of freed memory that a checked device withholds from reuse, to detect uses after free.
const QUARANTINE_BYTES: usize = 64 << 20;

/// The live allocations.
#[derive(Debug)]
pub(crate) struct Allocations {
    alignment: usize,
    /// Unused bytes after each allocation, to detect overruns.
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
    /// Address and layout, oldest first.
    waiting: VecDeque<(usize, Layout)>,
    bytes: usize,
}

impl Allocations {
    /// `checked`: whether a checker is attached.
    pub(crate) fn new(checked: bool) -> Allocations {
        Allocations::aligned(checked, ALIGNMENT)
    }

    /// Like [`Allocations::new`], with another alignment.
    pub(crate) fn aligned(checked: bool, alignment: usize) -> Allocations {
        let padding = if checked { RED_ZONE_BYTES } else { 0 };
        Allocations { alignment, padding, live: Mutex::default(), freed: Mutex::default() }
    }

    /// Allocates uninitialised memory; `None` if out of memory.
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

    /// Frees an allocation and returns its size; `None` if no allocation starts at the address.
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
            // SAFETY: it was in the map, so it was allocated with this layout; it is in the list only once.
            unsafe { dealloc(address as *mut u8, layout) };
        }
        Some(allocation.bytes)
    }

    /// Size in bytes of the allocation that starts at the address.
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
