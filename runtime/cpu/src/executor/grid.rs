//! Waiting and running grids.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::abi::file_and_line;
use crate::abi::{KernelDescriptor, Location};
use crate::fault::{CpuFault, FaultKind, SourceLine};
use crate::hooks::{GridId, LaunchOrder};
use crate::image::{CpuImage, kernel_name, launch_bounds};
use crate::memory::AlignedBytes;
use crate::seed::Permutation;
use crate::sync::lock;

/// Alignment of a parameter buffer in bytes, as `cudaGetParameterBuffer` and [`crate::abi::Entry`] require.
const PARAMETER_ALIGNMENT: usize = 64;

/// State shared by a launch from the host and all its descendants.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Keeps the image loaded.
    pub(crate) image: Arc<CpuImage>,
    /// Once set, no grid of the tree starts, and running ones stop at their next callback.
    stopped: AtomicBool,
    failure: Mutex<Option<Box<CpuFault>>>,
}

impl Tree {
    pub(crate) fn new(image: Arc<CpuImage>) -> Tree {
        Tree { image, stopped: AtomicBool::new(false), failure: Mutex::new(None) }
    }

    /// Fails the tree; only the first fault is kept.
    pub(crate) fn fail(&self, fault: CpuFault) {
        lock(&self.failure).get_or_insert_with(|| Box::new(fault));
        self.stopped.store(true, Ordering::Release);
    }

    /// Stops the tree without recording a fault.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn take_failure(&self) -> Option<Box<CpuFault>> {
        lock(&self.failure).take()
    }

    pub(crate) fn source_line(&self, location: Location) -> Option<SourceLine> {
        let (file, line) = file_and_line(location)?;
        let file = self.image.source(file).map_or_else(|| format!("file {file}"), str::to_string);
        Some(SourceLine { file, line })
    }
}

/// Data that the grid's threads read: written before the launch, constant afterwards. Reused.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) id: GridId,
    pub(crate) descriptor: *const KernelDescriptor,
    pub(crate) grid_dim: [u32; 3],
    pub(crate) block_dim: [u32; 3],
    pub(crate) shared_bytes: u32,
    /// Total number of blocks.
    pub(crate) blocks: u64,
    /// Order of the blocks.
    pub(crate) order: Permutation,
    pub(crate) location: Location,
    pub(crate) launched_by: LaunchOrder,
    /// `None` while the grid is a spare.
    pub(crate) tree: Option<Arc<Tree>>,
    pub(crate) parameters: AlignedBytes,
}

// SAFETY: the descriptor is a constant of the image, which the tree keeps loaded; everything else is owned.
unsafe impl Send for Grid {}

impl Grid {
    pub(crate) fn spare() -> Grid {
        Grid {
            id: 0,
            descriptor: std::ptr::null(),
            grid_dim: [0; 3],
            block_dim: [0; 3],
            shared_bytes: 0,
            blocks: 0,
            order: Permutation::IDENTITY,
            location: 0,
            launched_by: LaunchOrder::FireAndForget,
            tree: None,
            parameters: AlignedBytes::EMPTY,
        }
    }

    /// Makes room for the parameters; false if out of memory.
    pub(crate) fn reserve_parameters(&mut self, bytes: u32) -> bool {
        let bytes = bytes as usize;
        if self.parameters.first().is_null() || self.parameters.bytes() < bytes {
            let Some(buffer) =
                AlignedBytes::new(bytes.next_multiple_of(64).max(64), PARAMETER_ALIGNMENT)
            else {
                return false;
            };
            self.parameters = buffer;
        }
        true
    }

    pub(crate) fn kernel(&self) -> &KernelDescriptor {
        // SAFETY: set before the launch to a descriptor of the tree's image, which the tree keeps loaded.
        unsafe { &*self.descriptor }
    }

    pub(crate) fn name(&self) -> &str {
        kernel_name(self.kernel())
    }

    /// Threads in a block.
    pub(crate) fn threads(&self) -> u32 {
        self.block_dim.iter().product()
    }

    /// `block_idx` of a block, by its number in x, y, z order.
    pub(crate) fn block_index(&self, number: u64) -> [u32; 3] {
        index_in(number, self.grid_dim)
    }

    /// `thread_idx` of a thread, by its number.
    pub(crate) fn thread_index(&self, number: u32) -> [u32; 3] {
        index_in(u64::from(number), self.block_dim)
    }

    /// A fault of this grid at an unknown place.
    pub(crate) fn fault(&self, kind: FaultKind) -> CpuFault {
        CpuFault {
            kind,
            kernel: self.name().to_string(),
            block: None,
            thread: None,
            address: None,
            location: None,
            launched_at: self.tree.as_ref().and_then(|tree| tree.source_line(self.location)),
            is_checked: self.tree.as_ref().is_some_and(|tree| tree.image.is_watched()),
        }
    }
}

/// Index of an element in a box, by its number in x, y, z order.
pub(crate) fn index_in(number: u64, extents: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(extents[0]).max(1), u64::from(extents[1]).max(1));
    // Each coordinate is below its extent, so it fits.
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}

/// Pointer to a grid, passed between the scheduler and workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GridPointer(NonNull<Grid>);

// SAFETY: one thread writes a grid before its launch; afterwards, until all its blocks have ended, it is only read.
// The pointer is passed on under the scheduler's lock.
unsafe impl Send for GridPointer {}

impl GridPointer {
    pub(crate) fn new(grid: Box<Grid>) -> GridPointer {
        GridPointer(NonNull::from(Box::leak(grid)))
    }

    /// The grid.
    ///
    /// # Safety
    /// While the reference is in use, the grid must have blocks that have not ended, or must be waiting to start.
    pub(crate) unsafe fn get<'a>(self) -> &'a Grid {
        // SAFETY: the caller guarantees that it is not freed, and it is not written after the launch.
        unsafe { self.0.as_ref() }
    }

    /// Takes the grid back.
    ///
    /// # Safety
    /// No copy of the pointer may be used afterwards.
    pub(crate) unsafe fn into_box(self) -> Box<Grid> {
        // SAFETY: `new` made it from a box, and the caller guarantees that no other copy is in use.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}

/// Checks a launch's geometry; returns the device runtime's error code if it is invalid.
pub(crate) fn geometry_error(
    kernel: &KernelDescriptor,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u64,
    limits: &gridlet_artifact::LaunchLimits,
) -> Option<i32> {
    let too_large = |extents: [u32; 3], maxima: [u32; 3]| {
        extents.iter().zip(maxima).any(|(extent, max)| *extent == 0 || *extent > max)
    };
    let threads: u64 = block.iter().map(|extent| u64::from(*extent)).product();
    if too_large(grid, limits.max_grid)
        || too_large(block, limits.max_block)
        || threads > u64::from(limits.max_threads_per_block)
        || launch_bounds(kernel).is_some_and(|most| threads > u64::from(most))
    {
        return Some(super::launch::ERROR_INVALID_CONFIGURATION);
    }
    (shared_bytes > u64::from(limits.shared_bytes_per_block_optin))
        .then_some(super::launch::ERROR_OUT_OF_RESOURCES)
}
