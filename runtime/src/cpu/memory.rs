//! Global memory of the CPU device: plain allocations, known by their addresses.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::device::lock;

/// Alignment of an allocation, as of `cuMemAlloc` (driver API: "suitably aligned for any kind of variable"; in
/// fact 256 bytes).
const ALIGNMENT: usize = 256;

/// A zero-filled block with an alignment, for parameters and shared memory.
#[derive(Debug)]
pub(super) struct AlignedBytes {
    first: *mut u8,
    layout: Option<Layout>,
}

// SAFETY: it owns the bytes.
unsafe impl Send for AlignedBytes {}

impl AlignedBytes {
    /// No bytes.
    pub(super) const EMPTY: AlignedBytes =
        AlignedBytes { first: std::ptr::null_mut(), layout: None };

    /// At least so many bytes, zero; `None` if there is no memory.
    pub(super) fn new(bytes: usize, alignment: usize) -> Option<AlignedBytes> {
        let layout = Layout::from_size_align(bytes.max(1), alignment).ok()?;
        // SAFETY: the size is not 0.
        let first = unsafe { std::alloc::alloc_zeroed(layout) };
        (!first.is_null()).then_some(AlignedBytes { first, layout: Some(layout) })
    }

    pub(super) fn first(&self) -> *mut u8 {
        self.first
    }

    /// How many.
    pub(super) fn bytes(&self) -> usize {
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

/// All allocations that live.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    live: Mutex<BTreeMap<usize, Layout>>,
}

impl Allocations {
    /// That many bytes, not initialised; `None` if there is no memory.
    pub(super) fn alloc(&self, bytes: usize) -> Option<*mut u8> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()?;
        // SAFETY: the size is not 0.
        let first = unsafe { alloc(layout) };
        if first.is_null() {
            return None;
        }
        lock(&self.live).insert(first as usize, layout);
        Some(first)
    }

    /// Frees an allocation and gives its size; `None` if there is none at that address.
    pub(super) fn free(&self, address: *mut u8) -> Option<usize> {
        let layout = lock(&self.live).remove(&(address as usize))?;
        // SAFETY: the map held it, so it was allocated with this layout and not freed.
        unsafe { dealloc(address, layout) };
        Some(layout.size())
    }

    /// Bytes of the allocation that begins there.
    pub(super) fn size(&self, address: *mut u8) -> Option<usize> {
        lock(&self.live).get(&(address as usize)).map(|layout| layout.size())
    }
}

impl Drop for Allocations {
    fn drop(&mut self) {
        for (address, layout) in std::mem::take(&mut *lock(&self.live)) {
            // SAFETY: as in `free`.
            unsafe { dealloc(address as *mut u8, layout) };
        }
    }
}
