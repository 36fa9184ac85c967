//! Behavior that depends on how a program's kernels launch kernels: the only module that reads [`LaunchStrategy`].

use gridlet_artifact::LaunchStrategy;
use gridlet_artifact::manifest::{Kernel, Manifest};

use crate::occupancy::Carveout;

/// A pool on the device that holds launches until their grids run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchPool {
    /// The pending launches of CUDA's device runtime; [`crate::Device::set_pending_launch_limit`] sizes it. The CPU
    /// device has one too.
    PendingLaunches,
    /// The launch memory of the stream, for programs with [`LaunchStrategy::Resident`].
    LaunchMemory,
}

/// `cudaErrorLaunchPendingCountExceeded`: the pool is full.
const PENDING_COUNT_EXCEEDED: i32 = 69;

/// Whether kernels of a program launch through CUDA's device runtime. Grids launched that way leave green contexts, and
/// once such a program is loaded, all green contexts share two more SMs.
pub(crate) fn uses_device_runtime(manifest: &Manifest) -> bool {
    let launches = manifest.device_runtime.is_some();
    match manifest.launch_strategy {
        LaunchStrategy::Cdp => launches,
        LaunchStrategy::Resident => false,
    }
}

/// How a kernel divides the L1 cache and shared memory of an SM, unless the program says.
///
/// With the driver's choice, the device runtime launches grids at up to half the rate. But then it leaves the SMs of running blocks alone,
/// and a block of one thread that mostly waits for its own loads takes a tenth less time (docs/measurements.md, "Launches from a kernel").
pub(crate) fn carveout(manifest: &Manifest, kernel: &Kernel) -> Carveout {
    let is_serial = kernel.max_threads_per_block == Some(1) && kernel.reads_in_loops;
    match manifest.launch_strategy {
        LaunchStrategy::Cdp if !kernel.launches.is_empty() && !is_serial => Carveout::Percent(50),
        LaunchStrategy::Cdp | LaunchStrategy::Resident => Carveout::Default,
    }
}

/// The pool whose lack of room explains this `cudaError`, on the CPU device or a GPU; `None` for any other error.
pub(crate) fn full_pool(strategy: LaunchStrategy, on_cpu: bool, error: i32) -> Option<LaunchPool> {
    let pool = match strategy {
        LaunchStrategy::Resident if !on_cpu => LaunchPool::LaunchMemory,
        LaunchStrategy::Cdp | LaunchStrategy::Resident => LaunchPool::PendingLaunches,
    };
    (error == PENDING_COUNT_EXCEEDED).then_some(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_launch_get_shared_memory_unless_they_are_serial() {
        let carveout_of = |strategy, threads, reads_in_loops, launches: &[&str]| {
            let mut manifest = Manifest::new("a.grid");
            manifest.launch_strategy = strategy;
            let mut kernel = Kernel::new("k");
            kernel.max_threads_per_block = threads;
            kernel.reads_in_loops = reads_in_loops;
            kernel.launches = launches.iter().map(|&name| name.into()).collect();
            carveout(&manifest, &kernel)
        };
        let (half, drivers) = (Carveout::Percent(50), Carveout::Default);
        let cdp = LaunchStrategy::Cdp;
        assert_eq!(carveout_of(cdp, None, true, &["k"]), half);
        assert_eq!(carveout_of(cdp, Some(32), true, &["k"]), half);
        assert_eq!(carveout_of(cdp, Some(1), false, &["k"]), half);
        assert_eq!(carveout_of(cdp, Some(1), true, &["k"]), drivers);
        assert_eq!(carveout_of(cdp, Some(32), true, &[]), drivers);
        assert_eq!(carveout_of(LaunchStrategy::Resident, Some(32), false, &["k"]), drivers);
    }
}
