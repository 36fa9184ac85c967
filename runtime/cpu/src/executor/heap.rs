//! The device heap: `malloc` and `free` in kernels.

use std::sync::atomic::{AtomicU64, Ordering};

use super::block::Runner;
use crate::abi::Location;
use crate::fault::FaultKind;
use crate::memory::Allocations;

/// Size of a device's `malloc` heap: 1 GiB. A GPU's default is 8 MiB (`cudaLimitMallocHeapSize`, CUDA C++ Programming
/// Guide, Heap Memory Allocation).
pub const HEAP_BYTES: u64 = 1 << 30;

/// Alignment of `malloc`'s result in bytes (same section).
const ALIGNMENT: usize = 16;

/// Live allocations of kernels.
#[derive(Debug)]
pub(crate) struct Heap {
    allocations: Allocations,
    used: AtomicU64,
}

impl Heap {
    /// `checked`: whether a checker is attached.
    pub(crate) fn new(checked: bool) -> Heap {
        Heap { allocations: Allocations::aligned(checked, ALIGNMENT), used: AtomicU64::new(0) }
    }

    fn alloc(&self, bytes: u64) -> Option<*mut u8> {
        let add = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= HEAP_BYTES);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        let address = usize::try_from(bytes).ok().and_then(|bytes| self.allocations.alloc(bytes));
        if address.is_none() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        address
    }

    fn free(&self, address: *mut u8) -> bool {
        let freed = self.allocations.free(address);
        if let Some(bytes) = freed {
            self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
        freed.is_some()
    }
}

impl Runner {
    /// `malloc`
    pub(crate) fn malloc(&self, bytes: u64) -> *mut u8 {
        self.shared.heap.alloc(bytes).unwrap_or(std::ptr::null_mut())
    }

    /// `free`
    pub(crate) fn free(&self, address: *mut u8, location: Location) {
        if !address.is_null() && !self.shared.heap.free(address) {
            self.end(FaultKind::InvalidFree, location);
        }
    }
}
