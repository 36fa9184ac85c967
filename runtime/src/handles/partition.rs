//! Green contexts: partitions of a device's SMs.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, Weak};

use gridlet_cpu::sync::lock;

use super::device::{Device, DeviceInner};
use super::event::Event;
use super::program::{Program, ProgramInner};
use super::resources::{
    Origin, ResourceDescriptor, ResourceProblem, SmResource, SplitFlags, WorkqueueConfig,
    WorkqueueResource,
};
use super::stream::{Stream, StreamInner};
use crate::backend::{Entered, PartitionHandle, ResourceKind};
use crate::error::{Error, Result};
use crate::info::SmGranularity;
use crate::observe;
use crate::strategy;

/// A green context: a partition of a device's SMs, with streams whose kernels run there. Cheap to clone.
///
/// Memory, programs and events belong to the device and serve all of its green contexts.
///
/// Kernels may use more SMs than the partition has (driver API, Green Contexts, On Concurrency): on compute
/// capability 9.x two more, shared by all partitions, once a program that launches from the device is loaded.
/// Grids launched from the device through CUDA's device runtime run outside the partition.
/// [`GreenContext::confinement`] reports which rule applies to a program.
#[derive(Clone, Debug)]
pub struct GreenContext {
    pub(crate) inner: Arc<GreenInner>,
}

/// Whether a program's kernels stay on the SMs of a green context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// They stay on the partition's SMs.
    Confined,
    /// Host-launched kernels may use two more SMs, which all green contexts share; device-launched kernels run on
    /// any SM. The behavior of compute capability 9.x.
    ChildrenLeave,
    /// They may use two more SMs, which all green contexts share, because another program that launches from the
    /// device was loaded. The behavior of compute capability 9.x.
    TwoMore,
    /// Unknown: the program launches from the device, and this was not measured on the GPU's compute capability.
    NotMeasured,
}

impl std::fmt::Display for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Confinement::Confined => "kernels stay on the partition's SMs",
            Confinement::ChildrenLeave => {
                "kernels launched from the device leave the partition: CUDA's device runtime runs them on any SM, \
                 and kernels launched from the host may use 2 SMs more than the partition has"
            }
            Confinement::TwoMore => {
                "kernels may use 2 SMs more than the partition has, because a program that launches from the device was \
                 loaded"
            }
            Confinement::NotMeasured => {
                "kernels launched from the device may leave the partition: they do on compute capability 9.x, and \
                 others were not measured"
            }
        })
    }
}

impl GreenContext {
    /// Creates a green context of at least `sms` SMs, by the steps in the driver API's green-context section. The
    /// driver rounds up; [`GreenContext::sm_count`] is the actual size. If no smaller partition is large enough,
    /// it is the whole device.
    ///
    /// # Errors
    /// [`crate::Error::Partition`] if the device has fewer SMs or `sms` is 0; [`crate::Error::MissingCall`] if the
    /// driver is older than CUDA 12.4; [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn with_sms(device: &Device, sms: u32) -> Result<GreenContext> {
        GreenContext::new(&ResourceDescriptor::new([at_least(device, sms)?.0])?)
    }

    /// Creates a green context of exactly `sms` SMs.
    ///
    /// # Errors
    /// [`Error::Resource`] if the driver would round the size; the error gives the rounded size and the possible
    /// sizes. The errors of [`GreenContext::with_sms`].
    pub fn with_exactly(device: &Device, sms: u32) -> Result<GreenContext> {
        let (sms_resource, granularity) = at_least(device, sms)?;
        if sms_resource.sm_count() != sms {
            return Err(ResourceProblem::Rounded {
                asked: sms,
                given: sms_resource.sm_count(),
                minimum: granularity.minimum,
                alignment: granularity.alignment,
            }
            .into());
        }
        GreenContext::new(&ResourceDescriptor::new([sms_resource])?)
    }

    /// Creates a green context with the descriptor's resources (`cuGreenCtxCreate`).
    ///
    /// # Errors
    /// [`Error::MissingCall`] if the driver is older than CUDA 12.4; [`Error::Cuda`], [`Error::Unusable`].
    pub fn new(descriptor: &ResourceDescriptor) -> Result<GreenContext> {
        let device = Arc::clone(&descriptor.device);
        let resources: Vec<_> =
            descriptor.resources.iter().map(|resource| resource.handle()).collect();
        let (handle, sm_count) =
            device.call(|entered| device.handle.partition(&resources, entered))?;
        let streams = Mutex::default();
        let green =
            GreenContext { inner: Arc::new(GreenInner { device, handle, sm_count, streams }) };
        observe::green_created(green.device(), sm_count);
        Ok(green)
    }

    /// The number of SMs.
    pub fn sm_count(&self) -> u32 {
        self.inner.sm_count
    }

    /// Its device.
    pub fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.inner.device) }
    }

    /// A number that no other live green context has (`cuGreenCtxGetId`). After a green context is dropped, the
    /// driver's object and its number serve the next one with the same resources.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 13.0, [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn id(&self) -> Result<u64> {
        self.inner.device.call(|entered| self.inner.handle.id(entered))
    }

    /// A stream whose kernels run on the green context's SMs.
    ///
    /// # Errors
    /// [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// Same as [`GreenContext::stream`], with a priority: lower numbers run first, 0 is the default, and values
    /// outside [`Device::stream_priorities`] are clamped.
    ///
    /// # Errors
    /// [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::create(&self.inner.device, Some(&self.inner), priority)
    }

    /// Records an event after everything launched on the green context's streams so far (`cuGreenCtxRecordEvent`).
    ///
    /// # Errors
    /// [`Error::OtherDevice`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn record(&self, event: &Event) -> Result<()> {
        event.expect_device(&self.inner.device)?;
        let streams = self.streams();
        let handles: Vec<_> = streams.iter().map(|stream| &stream.handle).collect();
        let entered = self.inner.device.enter()?;
        self.inner.handle.record(&event.handle, &handles, &entered)
    }

    /// Makes everything launched on the green context's streams from now on wait for an event
    /// (`cuGreenCtxWaitEvent`); the call itself does not wait.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        event.expect_device(&self.inner.device)?;
        let streams = self.streams();
        let handles: Vec<_> = streams.iter().map(|stream| &stream.handle).collect();
        let entered = self.inner.device.enter()?;
        self.inner.handle.wait_event(&event.handle, &handles, &entered)
    }

    /// The live streams.
    fn streams(&self) -> Vec<Arc<StreamInner>> {
        lock(&self.inner.streams).iter().filter_map(Weak::upgrade).collect()
    }

    /// The SMs that the green context was created with, which can be split for further green contexts.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn sm_resource(&self) -> Result<SmResource> {
        let inner = &self.inner;
        let entered = inner.device.enter()?;
        let handle = inner.handle.resource(ResourceKind::Sm, inner.sm_count, &entered)?;
        Ok(SmResource::new(&inner.device, handle, Origin::Whole))
    }

    /// The configuration of the green context's workqueues.
    ///
    /// # Errors
    /// [`Error::MissingFeature`] before CUDA 13.1, [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn workqueue_config(&self) -> Result<WorkqueueConfig> {
        let device = Arc::clone(&self.inner.device);
        let entered = device.enter()?;
        let handle = self.inner.handle.resource(ResourceKind::WorkqueueConfig, 0, &entered)?;
        drop(entered);
        Ok(WorkqueueConfig { device, handle })
    }

    /// The green context's workqueues, for sharing with another green context.
    ///
    /// # Errors
    /// The errors of [`GreenContext::workqueue_config`].
    pub fn workqueue(&self) -> Result<WorkqueueResource> {
        let device = Arc::clone(&self.inner.device);
        let entered = device.enter()?;
        let handle = self.inner.handle.resource(ResourceKind::Workqueue, 0, &entered)?;
        drop(entered);
        Ok(WorkqueueResource { device, handle })
    }

    /// Makes the green context the calling thread's current context, for other CUDA libraries, until the value is
    /// dropped. "A green context can be current to only one thread at a time": other threads that need it wait
    /// meanwhile, and the value cannot be sent to another thread. Launches on its streams from this thread cost
    /// less meanwhile, because it is already current.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn make_current(&self) -> Result<CurrentGreenContext<'_>> {
        let _inside = self.inner.device.inside()?;
        let Some(context) = self.inner.handle.raw_context() else {
            return Err(Error::NotOnCpu { what: "current context" });
        };
        let entered = self.inner.handle.hold()?;
        Ok(CurrentGreenContext { context, _entered: entered, _one_thread: PhantomData })
    }

    /// Whether the program's kernels stay on the green context's SMs, given the programs loaded on the device so
    /// far. Device-side launches go through CUDA's device runtime, whose child grids leave the partition (seen on
    /// an H200, of compute capability 9.0, with driver 580.159.04; not measured on other GPUs).
    pub fn confinement(&self, program: &Program) -> Confinement {
        self.inner.confinement(&program.inner)
    }
}

/// The smallest partition of the device with at least `sms` SMs, and the possible sizes.
fn at_least(device: &Device, sms: u32) -> Result<(SmResource, SmGranularity)> {
    let all = device.sm_resource()?;
    let (available, granularity) = (all.sm_count(), all.granularity());
    let refuse = || Error::Partition {
        asked: sms,
        available,
        minimum: granularity.minimum,
        alignment: granularity.alignment,
    };
    if sms == 0 || sms > available {
        return Err(refuse());
    }
    if granularity.round_up(sms) > available {
        return Ok((all, granularity));
    }
    let split = all.split_by_count(1, sms, SplitFlags::default())?;
    split.groups.into_iter().next().map(|sms| (sms, granularity)).ok_or_else(refuse)
}

/// A green context that is current on this thread. Dropping it restores the previous context; a thread may drop
/// such values in any order.
///
/// It cannot move to another thread:
/// ```compile_fail
/// fn send<T: Send>(_: T) {}
/// fn f(current: gridlet_runtime::CurrentGreenContext<'_>) { send(current) }
/// ```
pub struct CurrentGreenContext<'a> {
    context: *mut std::ffi::c_void,
    _entered: Entered<'a>,
    _one_thread: PhantomData<*mut ()>,
}

impl CurrentGreenContext<'_> {
    /// The `CUcontext` (`cuCtxFromGreenCtx`). The green context owns it: do not destroy it.
    pub fn raw(&self) -> *mut std::ffi::c_void {
        self.context
    }
}

impl std::fmt::Debug for CurrentGreenContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentGreenContext").finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct GreenInner {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: PartitionHandle,
    pub(crate) sm_count: u32,
    /// The live streams.
    pub(crate) streams: Mutex<Vec<Weak<StreamInner>>>,
}

impl GreenInner {
    /// See [`GreenContext::confinement`].
    pub(crate) fn confinement(&self, program: &ProgramInner) -> Confinement {
        let launches = strategy::uses_device_runtime(program.artifact.manifest());
        match self.device.info.compute_capability.major {
            // "When a module with dynamic parallelism (CDP) is loaded, all future kernels running under green contexts
            // may use and share an additional set of 2 SMs."
            9 if !launches && self.device.has_launching_programs() => Confinement::TwoMore,
            _ if !launches => Confinement::Confined,
            // The CPU device enforces its partitions.
            0 => Confinement::Confined,
            9 => Confinement::ChildrenLeave,
            _ => Confinement::NotMeasured,
        }
    }
}

impl Drop for GreenInner {
    fn drop(&mut self) {
        if let Some(entered) = self.device.enter_for_drop() {
            // SAFETY: its streams held `self`, so they are already destroyed.
            unsafe { self.handle.retire(&self.device.handle, &entered) };
        }
    }
}
