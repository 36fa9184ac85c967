//! Resources of green contexts: sets of SMs and workqueues, and how to split and combine them.
//!
//! The steps are those in the driver API's green-context section: take a device's resource
//! ([`Device::sm_resource`]), split it, make a [`ResourceDescriptor`] from the results, and create the green
//! context ([`GreenContext::new`](crate::GreenContext::new)). The documented preconditions of each call are
//! checked before the driver is called, so that the error names the broken rule and the values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::device::{Device, DeviceInner};
use crate::backend::{ResourceHandle, SplitGroup, SplitResources};
pub use crate::error::ResourceProblem;
use crate::error::{Error, Result};
use crate::info::SmGranularity;

/// The most SMs that can be co-scheduled on compute capability 9.0 and later (driver API, Green Contexts, SMs).
const MAX_COSCHEDULED: u32 = 32;
/// The same before 9.0.
const MAX_COSCHEDULED_BEFORE_9: u32 = 2;

/// A set of SMs. Nothing is provisioned until a green context is created from it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SmResource {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: ResourceHandle,
    sm_count: u32,
    granularity: SmGranularity,
    origin: Origin,
    /// Clones share the number.
    number: u64,
}

/// The origin of an SM resource, which determines the permitted operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A device, a context, a green context or a stream: may be split.
    Whole,
    /// A group of the split with this number: may not be split, "without first creating a descriptor and a green
    /// context with that descriptor".
    Group(u64),
    /// The remainder of the split with this number: may be split into structured groups.
    Remainder(u64),
}

/// Options of [`SmResource::split_by_count`] (`CU_DEV_SM_RESOURCE_SPLIT_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitFlags {
    /// `IGNORE_SM_COSCHEDULING`: smaller minimum and finer alignment, "at the cost of advanced features (such as
    /// large clusters on compute capability 9.0+)".
    pub ignore_coscheduling: bool,
    /// `MAX_POTENTIAL_CLUSTER_SIZE`: groups "that may allow for maximally sized thread clusters"; compute capability
    /// 9.0 and later.
    pub max_potential_cluster_size: bool,
}

impl SplitFlags {
    gridlet_artifact::setters! {
        with_ignore_coscheduling: ignore_coscheduling: bool,
        with_max_potential_cluster_size: max_potential_cluster_size: bool,
    }

    fn bits(self) -> u32 {
        u32::from(self.ignore_coscheduling) | u32::from(self.max_potential_cluster_size) << 1
    }
}

/// One group of [`SmResource::split`] (`CU_DEV_SM_RESOURCE_GROUP_PARAMS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmGroup {
    /// SMs in the group; 0 asks the driver for as many as the other fields allow (discovery).
    pub sm_count: u32,
    /// SMs that are scheduled together, for clusters; 0 means the device's default.
    pub coscheduled: u32,
    /// Merge such groups into groups of this size where possible (compute capability 10.0 and later); 0 means
    /// `coscheduled`.
    pub preferred_coscheduled: u32,
    /// Allow an `sm_count` that is not a multiple of `coscheduled`, and fill up with other SMs.
    pub backfill: bool,
}

impl SmGroup {
    /// A group of `sm_count` SMs; 0 asks for as many as possible.
    pub fn new(sm_count: u32) -> Self {
        SmGroup { sm_count, ..SmGroup::default() }
    }

    gridlet_artifact::setters! {
        with_coscheduled: coscheduled: u32,
        with_preferred_coscheduled: preferred_coscheduled: u32,
        with_backfill: backfill: bool,
    }
}

/// The result of a split.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Split {
    /// The groups.
    pub groups: Vec<SmResource>,
    /// The SMs in no group. They have none of the groups' guarantees.
    pub remainder: Option<SmResource>,
}

impl SmResource {
    pub(crate) fn new(
        device: &Arc<DeviceInner>,
        handle: ResourceHandle,
        origin: Origin,
    ) -> SmResource {
        /// The number of the next resource.
        static NEXT: AtomicU64 = AtomicU64::new(0);

        let (sm_count, minimum, alignment) = handle.sm_numbers();
        let documented = || {
            let whole = SmGranularity::documented(device.info.compute_capability);
            device.info.sm_granularity.unwrap_or(whole)
        };
        let granularity = if minimum == 0 || alignment == 0 {
            documented()
        } else {
            SmGranularity { minimum, alignment, from_driver: true }
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        SmResource { device: Arc::clone(device), handle, sm_count, granularity, origin, number }
    }

    /// The number of SMs.
    pub fn sm_count(&self) -> u32 {
        self.sm_count
    }

    /// The sizes into which it can be split.
    pub fn granularity(&self) -> SmGranularity {
        self.granularity
    }

    /// Its device.
    pub fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.device) }
    }

    /// The largest number of groups with at least `minimum` SMs that [`SmResource::split_by_count`] would make:
    /// the query form of that call.
    ///
    /// # Errors
    /// The errors of [`SmResource::split_by_count`].
    pub fn count_groups(&self, minimum: u32, flags: SplitFlags) -> Result<u32> {
        self.check_count(minimum, flags)?;
        self.device.call(|entered| self.handle.count_groups(flags.bits(), minimum, entered))
    }

    /// Splits the resource into at most `groups` equal groups of at least `minimum` SMs
    /// (`cuDevSmResourceSplitByCount`). The driver rounds up to the granularity; the result may have fewer groups
    /// than requested, and each group reports its size.
    ///
    /// # Errors
    /// [`Error::Resource`] if the resource is itself a group of a split, `minimum` is more than it has, `groups`
    /// is 0, or the flags need a newer GPU. [`Error::MissingCall`] before CUDA 12.4; [`Error::Cuda`],
    /// [`Error::Unusable`].
    pub fn split_by_count(&self, groups: u32, minimum: u32, flags: SplitFlags) -> Result<Split> {
        self.check_count(minimum, flags)?;
        if groups == 0 {
            return Err(ResourceProblem::NoGroups.into());
        }
        // There cannot be more groups than SMs.
        let groups = groups.min(self.sm_count.max(1));
        let resources = self
            .device
            .call(|entered| self.handle.split_by_count(groups, flags.bits(), minimum, entered))?;
        Ok(self.split_result(resources))
    }

    /// Splits the resource into the described groups (`cuDevSmResourceSplit`), in order. The result has the actual
    /// sizes.
    ///
    /// # Errors
    /// [`Error::Resource`] if the resource is a group of a split, or a group breaks a rule of that call.
    /// [`Error::MissingCall`] before CUDA 13.1; [`Error::Cuda`], [`Error::Unusable`].
    pub fn split(&self, groups: &[SmGroup]) -> Result<Split> {
        let mut request = self.check_groups(groups)?;
        let resources =
            self.device.call(|entered| self.handle.split(&mut request, true, entered))?;
        Ok(self.split_result(resources))
    }

    /// The groups that [`SmResource::split`] would make, with their sizes, and the number of remaining SMs. A size
    /// of 0 means that no such group is possible.
    ///
    /// # Errors
    /// The errors of [`SmResource::split`].
    pub fn discover(&self, groups: &[SmGroup]) -> Result<(Vec<SmGroup>, u32)> {
        let mut request = self.check_groups(groups)?;
        let (_, remainder) =
            self.device.call(|entered| self.handle.split(&mut request, false, entered))?;
        let found = request.into_iter().map(|group| SmGroup {
            sm_count: group.sm_count,
            coscheduled: group.coscheduled,
            preferred_coscheduled: group.preferred,
            backfill: group.backfill,
        });
        Ok((found.collect(), remainder.map_or(0, |rest| rest.sm_numbers().0)))
    }

    fn split_result(&self, (groups, remainder): SplitResources) -> Split {
        /// The number of the next split.
        static NEXT: AtomicU64 = AtomicU64::new(1);

        let split = NEXT.fetch_add(1, Ordering::Relaxed);
        let resource = |handle, origin| SmResource::new(&self.device, handle, origin);
        Split {
            groups: groups.into_iter().map(|group| resource(group, Origin::Group(split))).collect(),
            remainder: remainder.map(|rest| resource(rest, Origin::Remainder(split))),
        }
    }

    fn too_few(&self, asked: u32) -> Error {
        let SmGranularity { minimum, alignment, .. } = self.granularity;
        ResourceProblem::TooFew { asked, available: self.sm_count, minimum, alignment }.into()
    }

    fn check_count(&self, minimum: u32, flags: SplitFlags) -> Result<()> {
        let capability = self.device.info.compute_capability;
        if self.origin != Origin::Whole {
            return Err(ResourceProblem::SplitAgain.into());
        }
        // "must be between 0 and the SM count specified in input"
        if minimum > self.sm_count {
            return Err(self.too_few(minimum));
        }
        if flags.max_potential_cluster_size && capability.major < 9 {
            return Err(ResourceProblem::NoClusters { capability: capability.to_string() }.into());
        }
        Ok(())
    }

    /// Checks the rules of `cuDevSmResourceSplit`, "For a valid call".
    fn check_groups(&self, groups: &[SmGroup]) -> Result<Vec<SplitGroup>> {
        if matches!(self.origin, Origin::Group(_)) {
            return Err(ResourceProblem::SplitAgain.into());
        }
        if groups.is_empty() {
            return Err(ResourceProblem::NoGroups.into());
        }
        let most = if self.device.info.compute_capability.major >= 9 {
            MAX_COSCHEDULED
        } else {
            MAX_COSCHEDULED_BEFORE_9
        };
        let mut sum = 0u64;
        for (index, group) in groups.iter().enumerate() {
            let wrong = |field, value, rule: String| {
                Err(ResourceProblem::Group { index, field, value, rule }.into())
            };
            let (coscheduled, preferred) = (group.coscheduled, group.preferred_coscheduled);
            if coscheduled > most {
                let rule = format!("at most {most} on this GPU");
                return wrong("coscheduled", coscheduled, rule);
            }
            let unit = if coscheduled == 0 { self.granularity.alignment } else { coscheduled };
            if preferred != 0 && (preferred < unit || !preferred.is_multiple_of(unit.max(1))) {
                let rule = format!("a multiple of the {unit} SMs that are co-scheduled");
                return wrong("preferred_coscheduled", preferred, rule);
            }
            let sms = group.sm_count;
            sum += u64::from(sms);
            if sms == 0 {
                continue;
            }
            if sms < 2 || sms > self.sm_count {
                return wrong("sm_count", sms, format!("0, or from 2 to {}", self.sm_count));
            }
            if !sms.is_multiple_of(2) {
                return wrong("sm_count", sms, "a multiple of 2".into());
            }
            if !group.backfill && !sms.is_multiple_of(unit.max(1)) {
                let rule = format!(
                    "a multiple of the {unit} SMs that are co-scheduled, or `backfill` set"
                );
                return wrong("sm_count", sms, rule);
            }
            if sms < unit {
                return wrong("sm_count", sms, format!("at least the {unit} co-scheduled SMs"));
            }
        }
        if sum > u64::from(self.sm_count) {
            let asked = u32::try_from(sum).unwrap_or(u32::MAX);
            return Err(self.too_few(asked));
        }
        let request = groups.iter().map(|group| SplitGroup {
            sm_count: group.sm_count,
            coscheduled: group.coscheduled,
            preferred: group.preferred_coscheduled,
            backfill: group.backfill,
        });
        Ok(request.collect())
    }
}

/// How workqueues are shared (`CUdevWorkqueueConfigScope`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkqueueScope {
    /// All contexts share all workqueues: the driver's default.
    DeviceContext,
    /// "When possible, use non-overlapping workqueue resources with other balanced green contexts."
    GreenContextBalanced,
}

/// The number of workqueues for a green context, and how they are shared. Since CUDA 13.1.
#[derive(Clone, Debug)]
pub struct WorkqueueConfig {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: ResourceHandle,
}

impl WorkqueueConfig {
    /// The expected maximum of stream-ordered workloads that run at a time.
    pub fn concurrency_limit(&self) -> u32 {
        self.handle.workqueue().0
    }

    /// The sharing scope.
    pub fn scope(&self) -> WorkqueueScope {
        if self.handle.workqueue().1 {
            WorkqueueScope::GreenContextBalanced
        } else {
            WorkqueueScope::DeviceContext
        }
    }

    /// Same with another limit. A limit above the primary context's, which follows `CUDA_DEVICE_MAX_CONNECTIONS`,
    /// is allowed, "but the driver will not guarantee that work submission remains non-overlapping".
    #[must_use]
    pub fn with_concurrency_limit(&self, limit: u32) -> WorkqueueConfig {
        self.with(limit, self.scope())
    }

    /// Same with another scope.
    #[must_use]
    pub fn with_scope(&self, scope: WorkqueueScope) -> WorkqueueConfig {
        self.with(self.concurrency_limit(), scope)
    }

    fn with(&self, limit: u32, scope: WorkqueueScope) -> WorkqueueConfig {
        let balanced = scope == WorkqueueScope::GreenContextBalanced;
        let handle = self.handle.with_workqueue(limit, balanced);
        WorkqueueConfig { device: Arc::clone(&self.device), handle }
    }
}

/// The workqueues of a context or green context, for sharing with another green context. Since CUDA 13.1.
#[derive(Clone, Debug)]
pub struct WorkqueueResource {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: ResourceHandle,
}

/// A resource of a [`ResourceDescriptor`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Resource {
    /// SMs.
    Sm(SmResource),
    /// New workqueues.
    WorkqueueConfig(WorkqueueConfig),
    /// The workqueues of another context.
    Workqueue(WorkqueueResource),
}

impl From<SmResource> for Resource {
    fn from(resource: SmResource) -> Resource {
        Resource::Sm(resource)
    }
}

impl From<WorkqueueConfig> for Resource {
    fn from(config: WorkqueueConfig) -> Resource {
        Resource::WorkqueueConfig(config)
    }
}

impl From<WorkqueueResource> for Resource {
    fn from(resource: WorkqueueResource) -> Resource {
        Resource::Workqueue(resource)
    }
}

impl Resource {
    fn device(&self) -> &Arc<DeviceInner> {
        match self {
            Resource::Sm(resource) => &resource.device,
            Resource::WorkqueueConfig(config) => &config.device,
            Resource::Workqueue(resource) => &resource.device,
        }
    }

    pub(crate) fn handle(&self) -> &ResourceHandle {
        match self {
            Resource::Sm(resource) => &resource.handle,
            Resource::WorkqueueConfig(config) => &config.handle,
            Resource::Workqueue(resource) => &resource.handle,
        }
    }
}

/// The resources for a green context, checked (`cuDevResourceGenerateDesc`).
#[derive(Clone, Debug)]
pub struct ResourceDescriptor {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) resources: Vec<Resource>,
}

impl ResourceDescriptor {
    /// Combines resources: at least one set of SMs, all of one device. Several sets of SMs "must be outputs … from
    /// the same split API instance and have the same smCoscheduledAlignment values".
    ///
    /// # Errors
    /// [`Error::Resource`], which names the broken rule.
    pub fn new(resources: impl IntoIterator<Item = impl Into<Resource>>) -> Result<Self> {
        let resources: Vec<Resource> = resources.into_iter().map(Into::into).collect();
        let mut sms: Vec<&SmResource> = vec![];
        let mut queues = 0;
        for resource in &resources {
            match resource {
                Resource::Sm(resource) => sms.push(resource),
                _ => queues += 1,
            }
        }
        let Some(first) = sms.first() else {
            return Err(ResourceProblem::NoSms.into());
        };
        if resources.iter().any(|resource| !Arc::ptr_eq(resource.device(), &first.device)) {
            return Err(ResourceProblem::SeveralDevices.into());
        }
        if queues > 1 {
            return Err(ResourceProblem::SeveralQueues.into());
        }
        let split = |resource: &SmResource| match resource.origin {
            Origin::Whole => None,
            Origin::Group(split) | Origin::Remainder(split) => Some(split),
        };
        for other in &sms[1..] {
            if split(first).is_none() || split(other) != split(first) {
                return Err(ResourceProblem::SeveralSplits.into());
            }
            let (a, b) = (first.granularity.alignment, other.granularity.alignment);
            if a != b {
                return Err(ResourceProblem::SeveralAlignments { first: a, other: b }.into());
            }
        }
        for (at, resource) in sms.iter().enumerate() {
            if sms[..at].iter().any(|earlier| earlier.number == resource.number) {
                return Err(ResourceProblem::Twice.into());
            }
        }
        let device = Arc::clone(&first.device);
        Ok(ResourceDescriptor { device, resources })
    }

    /// The number of SMs in all its resources.
    pub fn sm_count(&self) -> u32 {
        let sms = self.resources.iter().map(|resource| match resource {
            Resource::Sm(resource) => resource.sm_count,
            _ => 0,
        });
        sms.sum()
    }
}

#[cfg(test)]
mod tests;
