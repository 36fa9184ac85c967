//! Software implementation of `cudaGetParameterBufferV2` and `cudaLaunchDeviceV2`.

use super::block::Runner;
use super::grid::geometry_error;
use super::operations;
use super::scheduler::NestedLaunch;
use crate::abi::{KernelDescriptor, Location};
use crate::hooks::LaunchOrder;

/// `cudaErrorInvalidValue`: not an unlaunched parameter buffer.
const ERROR_INVALID_VALUE: i32 = 1;
/// `cudaErrorMemoryAllocation`: no memory for a parameter buffer.
pub(crate) const ERROR_MEMORY: i32 = 2;
/// `cudaErrorInvalidConfiguration`: an extent of the grid or block is zero or too large, or the block
/// exceeds the kernel's `#[launch_bounds]`.
pub(crate) const ERROR_INVALID_CONFIGURATION: i32 = 9;
/// `cudaErrorLaunchPendingCountExceeded`: the pool of pending launches is full.
pub(crate) const ERROR_PENDING_COUNT: i32 = 69;
/// `cudaErrorInvalidDeviceFunction`: not a kernel of the program.
const ERROR_INVALID_FUNCTION: i32 = 98;
/// `cudaErrorInvalidResourceHandle`: no such stream.
pub(crate) const ERROR_INVALID_HANDLE: i32 = 400;
/// `cudaErrorLaunchOutOfResources`: too much shared memory for a block.
pub(crate) const ERROR_OUT_OF_RESOURCES: i32 = 701;

/// Stream handles of the device runtime (CUDA C++ Programming Guide, Named Streams).
const STREAM_DEFAULT: u64 = 0;
const STREAM_TAIL: u64 = 3;
const STREAM_FIRE_AND_FORGET: u64 = 4;

impl Runner {
    /// Returns a parameter buffer for a launch; null if the system has no memory for it. The launch itself reports all other
    /// errors. As on GPUs, a full pool of pending launches is one of them: code that skips a launch without a buffer would not
    /// ask for the status.
    pub(crate) fn parameter_buffer(
        &self,
        descriptor: *const KernelDescriptor,
        grid_dim: [u32; 3],
        block_dim: [u32; 3],
        shared_bytes: u32,
    ) -> *mut u8 {
        let known = operations::is_operation(descriptor)
            || self.tree().is_some_and(|tree| tree.image.owns(descriptor));
        let mut grid = match self.spare.take() {
            Some(grid) => grid,
            None => self.shared.lock().spare_grid(),
        };
        // SAFETY: a known descriptor belongs to the image or to an operation.
        let bytes = if known { unsafe { (*descriptor).parameter_bytes } } else { 4096 };
        if !grid.reserve_parameters(bytes) {
            self.shared.lock().recycle(grid);
            self.error(ERROR_MEMORY);
            return std::ptr::null_mut();
        }
        grid.descriptor = if known { descriptor } else { std::ptr::null() };
        grid.grid_dim = grid_dim;
        grid.block_dim = block_dim;
        grid.shared_bytes = shared_bytes;
        grid.blocks = grid_dim.iter().map(|extent| u64::from(*extent)).product();
        let buffer = grid.parameters.first();
        self.buffers.borrow_mut().push(grid);
        // For an operation, the device itself writes the parameters.
        if !operations::is_operation(descriptor) {
            self.tell(|check| check.on_parameter_buffer(buffer as usize, bytes as usize));
        }
        buffer
    }

    /// Launches the kernel that the buffer was requested for; returns a `cudaError`.
    pub(crate) fn launch(&self, buffer: *mut u8, stream: u64, location: Location) -> i32 {
        let mut buffers = self.buffers.borrow_mut();
        let Some(position) = buffers.iter().rposition(|grid| grid.parameters.first() == buffer)
        else {
            return self.error(ERROR_INVALID_VALUE);
        };
        let mut grid = buffers.swap_remove(position);
        drop(buffers);
        grid.location = location;
        let order = match stream {
            STREAM_DEFAULT => LaunchOrder::BlockDefault,
            STREAM_TAIL => LaunchOrder::Tail,
            STREAM_FIRE_AND_FORGET => LaunchOrder::FireAndForget,
            handle => LaunchOrder::Created(handle),
        };
        let refused = if grid.descriptor.is_null() {
            Some(ERROR_INVALID_FUNCTION)
        } else {
            let shared_bytes =
                u64::from(grid.shared_bytes) + u64::from(grid.kernel().static_shared_bytes);
            let (kernel, limits) = (grid.kernel(), &self.shared.limits);
            geometry_error(kernel, grid.grid_dim, grid.block_dim, shared_bytes, limits)
        };
        let launcher = self.position();
        let mut scheduler = self.shared.lock();
        let has_stream = match order {
            LaunchOrder::Created(handle) => scheduler.has_stream(self.node.get(), handle),
            _ => true,
        };
        let refused = refused
            .or_else(|| (!has_stream).then_some(ERROR_INVALID_HANDLE))
            .or_else(|| (!self.shared.pending.reserve()).then_some(ERROR_PENDING_COUNT));
        if let Some(status) = refused {
            scheduler.recycle(grid);
            drop(scheduler);
            return self.error(status);
        }
        let mut block_stream = self.default_stream.get();
        let mut check = self.check();
        let launch = NestedLaunch { parent: self.node.get(), launcher, order, grid };
        scheduler.launch_nested(launch, check.as_deref_mut(), &mut block_stream);
        self.default_stream.set(block_stream);
        // Fetched now for the next launch, because the lock is held.
        self.spare.set(Some(scheduler.spare_grid()));
        self.wants_help.set(self.shared.needs_help(self.depth));
        0
    }

    /// After a launch, lets other grids run first if needed and leaves the kernel if the block must stop.
    pub(crate) fn after_launch(&self) {
        if self.wants_help.get() {
            self.suspend();
        }
        self.leave_if_stopped();
    }

    /// Records the running thread's last `cudaError`.
    pub(crate) fn error(&self, status: i32) -> i32 {
        self.slot(self.current.get()).last_error.set(status);
        status
    }

    /// Returns and clears the running thread's last `cudaError`.
    pub(crate) fn take_last_error(&self) -> i32 {
        self.slot(self.current.get()).last_error.take()
    }
}
