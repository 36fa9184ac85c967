//! Occupancy queries (driver API, Occupancy). Each call works in the current context and takes a `CUkernel` "by
//! casting to CUfunction".

use std::ffi::c_int;
use std::ptr;

use gridlet_artifact::LaunchConfig;

use super::launch::{Attributes, driver_config};
use super::sys::CUkernel;
use super::{Failed, calls};

fn int(value: u32) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`, with `CU_OCCUPANCY_DEFAULT`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn active_blocks(
    kernel: CUkernel,
    threads: u32,
    shared_bytes: u32,
) -> Result<u32, Failed> {
    let mut blocks = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe {
        calls::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &mut blocks,
            kernel.cast(),
            int(threads),
            shared_bytes as usize,
            0,
        )
    }?;
    Ok(blocks.max(0).unsigned_abs())
}

/// `cuOccupancyMaxPotentialBlockSize`: the blocks in the smallest grid that fills the device, and the threads per
/// block.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn best_block(
    kernel: CUkernel,
    shared_bytes: u32,
    most_threads: u32,
) -> Result<(u32, u32), Failed> {
    let (mut blocks, mut threads) = (0, 0);
    // SAFETY: passed on to the caller; the pointers are to live integers. Without a size function, every block has
    // the same amount of shared memory.
    unsafe {
        calls::cuOccupancyMaxPotentialBlockSize(
            &mut blocks,
            &mut threads,
            kernel.cast(),
            None,
            shared_bytes as usize,
            int(most_threads),
        )
    }?;
    Ok((blocks.max(0).unsigned_abs(), threads.max(0).unsigned_abs()))
}

/// `cuOccupancyAvailableDynamicSMemPerBlock`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn available_shared(
    kernel: CUkernel,
    blocks: u32,
    threads: u32,
) -> Result<u64, Failed> {
    let mut bytes = 0usize;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe {
        calls::cuOccupancyAvailableDynamicSMemPerBlock(
            &mut bytes,
            kernel.cast(),
            int(blocks),
            int(threads),
        )
    }?;
    Ok(bytes as u64)
}

/// `cuOccupancyMaxPotentialClusterSize`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn cluster_blocks(
    kernel: CUkernel,
    config: &LaunchConfig,
) -> Result<u32, Failed> {
    let mut attributes = Attributes::of(config);
    let config = driver_config(config, &mut attributes, ptr::null_mut());
    let mut blocks = 0;
    // SAFETY: passed on to the caller; the pointers are to live values.
    unsafe { calls::cuOccupancyMaxPotentialClusterSize(&mut blocks, kernel.cast(), &config) }?;
    Ok(blocks.max(0).unsigned_abs())
}

/// `cuOccupancyMaxActiveClusters`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn active_clusters(
    kernel: CUkernel,
    config: &LaunchConfig,
) -> Result<u32, Failed> {
    let mut attributes = Attributes::of(config);
    let config = driver_config(config, &mut attributes, ptr::null_mut());
    let mut clusters = 0;
    // SAFETY: passed on to the caller; the pointers are to live values.
    unsafe { calls::cuOccupancyMaxActiveClusters(&mut clusters, kernel.cast(), &config) }?;
    Ok(clusters.max(0).unsigned_abs())
}
