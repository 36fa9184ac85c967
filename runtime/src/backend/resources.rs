//! Resources of green contexts: SMs and workqueues.

use super::Entered;
use crate::driver;
use crate::driver::green::{GroupParameters, RawResource, WorkqueueNumbers};
use crate::error::Result;

/// One group of a structured split.
pub(crate) type SplitGroup = GroupParameters;

/// The groups and the remainder of a split.
pub(crate) type SplitResources = (Vec<ResourceHandle>, Option<ResourceHandle>);

/// A resource: SMs, or on CUDA also workqueues.
#[derive(Clone, Debug)]
pub(crate) enum ResourceHandle {
    Cuda(RawResource),
    /// This many workers.
    Cpu(u32),
}

impl ResourceHandle {
    /// SMs, smallest partition and alignment; the last two are 0 if the driver does not report them.
    pub(crate) fn sm_numbers(&self) -> (u32, u32, u32) {
        match self {
            ResourceHandle::Cuda(resource) => {
                let sm = resource.sm();
                (sm.sm_count, sm.minimum, sm.alignment)
            }
            ResourceHandle::Cpu(workers) => (*workers, 1, 1),
        }
    }

    pub(crate) fn count_groups(
        &self,
        flags: u32,
        minimum: u32,
        _entered: &Entered<'_>,
    ) -> Result<u32> {
        match self {
            ResourceHandle::Cuda(input) => {
                // SAFETY: the resource is the driver's own.
                Ok(unsafe { driver::green::count_groups(input, flags, minimum) }?)
            }
            ResourceHandle::Cpu(workers) => Ok(workers / minimum.max(1)),
        }
    }

    pub(crate) fn split_by_count(
        &self,
        groups: u32,
        flags: u32,
        minimum: u32,
        _entered: &Entered<'_>,
    ) -> Result<SplitResources> {
        match self {
            ResourceHandle::Cuda(input) => {
                // SAFETY: the resource is the driver's own.
                let resources =
                    unsafe { driver::green::split_by_count(input, groups, flags, minimum) }?;
                Ok(cuda_resources(resources))
            }
            ResourceHandle::Cpu(workers) => {
                let size = minimum.max(1);
                let groups = groups.min(workers / size);
                Ok(cpu_resources(*workers, &vec![size; groups as usize]))
            }
        }
    }

    /// Writes the discovered sizes into `groups`.
    pub(crate) fn split(
        &self,
        groups: &mut [SplitGroup],
        make: bool,
        _entered: &Entered<'_>,
    ) -> Result<SplitResources> {
        match self {
            ResourceHandle::Cuda(input) => {
                // SAFETY: the resource is the driver's own.
                Ok(cuda_resources(unsafe { driver::green::split(input, groups, make) }?))
            }
            ResourceHandle::Cpu(workers) => {
                let mut left = *workers;
                for group in groups.iter_mut() {
                    group.coscheduled = group.coscheduled.max(1);
                    group.preferred = group.preferred.max(group.coscheduled);
                    if group.sm_count == 0 {
                        let unit = if group.backfill { 1 } else { group.coscheduled };
                        group.sm_count = left / unit * unit;
                    }
                    left = left.saturating_sub(group.sm_count);
                }
                let sizes: Vec<u32> = groups.iter().map(|group| group.sm_count).collect();
                Ok(cpu_resources(*workers, &sizes))
            }
        }
    }

    /// The concurrency limit of a workqueue configuration, and whether it is balanced.
    pub(crate) fn workqueue(&self) -> (u32, bool) {
        match self {
            ResourceHandle::Cuda(resource) => {
                let numbers = resource.workqueue();
                (numbers.concurrency_limit, numbers.balanced)
            }
            ResourceHandle::Cpu(_) => (0, false),
        }
    }

    /// A copy of a workqueue configuration with other values.
    pub(crate) fn with_workqueue(&self, concurrency_limit: u32, balanced: bool) -> ResourceHandle {
        match self {
            ResourceHandle::Cuda(resource) => ResourceHandle::Cuda(
                resource.with_workqueue(WorkqueueNumbers { concurrency_limit, balanced }),
            ),
            cpu @ ResourceHandle::Cpu(_) => cpu.clone(),
        }
    }
}

fn cuda_resources((groups, remainder): (Vec<RawResource>, Option<RawResource>)) -> SplitResources {
    (groups.into_iter().map(ResourceHandle::Cuda).collect(), remainder.map(ResourceHandle::Cuda))
}

/// Resources of these sizes, and the remainder of `workers`.
fn cpu_resources(workers: u32, sizes: &[u32]) -> SplitResources {
    let used: u32 = sizes.iter().sum();
    let rest = workers.saturating_sub(used);
    let groups = sizes.iter().map(|size| ResourceHandle::Cpu(*size)).collect();
    (groups, (rest > 0).then_some(ResourceHandle::Cpu(rest)))
}
