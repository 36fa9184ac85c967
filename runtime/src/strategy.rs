//! What depends on how a program's kernels launch kernels: the only module that asks for its [`LaunchStrategy`].

use gridlet_artifact::LaunchStrategy;
use gridlet_artifact::manifest::Manifest;

/// A pool on the device that launches take room from until their grids run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchPool {
    /// The pending launches of CUDA's device runtime; [`crate::Device::set_pending_launch_limit`] sizes it. The CPU
    /// device has one too.
    PendingLaunches,
}

/// `cudaErrorLaunchPendingCountExceeded`: no room for another launch.
const PENDING_COUNT_EXCEEDED: i32 = 69;

/// Whether kernels of a program launch through CUDA's device runtime. Grids that it launches leave green contexts, and
/// once such a program is loaded, all green contexts share two more SMs.
pub(crate) fn uses_device_runtime(manifest: &Manifest) -> bool {
    let launches = manifest.device_runtime.is_some();
    match manifest.launch_strategy {
        LaunchStrategy::Cdp => launches,
    }
}

/// The pool that had no room for a launch which failed with that `cudaError`; `None` if it failed otherwise.
pub(crate) fn full_pool(strategy: LaunchStrategy, error: i32) -> Option<LaunchPool> {
    match strategy {
        LaunchStrategy::Cdp => {
            (error == PENDING_COUNT_EXCEEDED).then_some(LaunchPool::PendingLaunches)
        }
    }
}
