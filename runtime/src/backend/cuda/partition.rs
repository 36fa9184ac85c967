//! Green contexts and their resources.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use gridlet_cpu::sync::lock;

use super::{CudaDevice, CudaEvent, CudaStream, Entered};
use crate::backend::ResourceHandle;
use crate::driver;
use crate::driver::Failed;
use crate::driver::green::{RawResource, ResourceKind};
use crate::driver::sys::{CUcontext, CUgreenCtx};
use crate::error::{CudaVersion, Error, Result};
use crate::observe;

/// A green context.
#[derive(Debug)]
pub(crate) struct CudaPartition {
    pub(super) handle: CUgreenCtx,
    /// From `cuCtxFromGreenCtx`; owned by `handle` and never destroyed itself.
    context: CUcontext,
    /// Identifies the resources.
    key: Key,
    sms: u32,
    /// Held while the context is current: "a green context can be current to only one thread at a time. There
    /// is no internal synchronization" (`cuGreenCtxCreate`).
    one_thread: OneThread,
}

// SAFETY: the raw handles are names of driver objects; `one_thread` serializes their use across threads.
unsafe impl Send for CudaPartition {}
// SAFETY: as above.
unsafe impl Sync for CudaPartition {}

/// The right to make a green context current: held by one thread at a time, any number of times.
#[derive(Debug, Default)]
struct OneThread {
    holder: Mutex<Holder>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct Holder {
    thread: Option<ThreadId>,
    times: usize,
    waiting: usize,
}

impl OneThread {
    /// Waits while another thread holds the right.
    fn hold(&self) -> Hold<'_> {
        let this = thread::current().id();
        let mut holder = lock(&self.holder);
        while holder.thread.is_some_and(|thread| thread != this) {
            holder.waiting += 1;
            holder = self.free.wait(holder).unwrap_or_else(PoisonError::into_inner);
            holder.waiting -= 1;
        }
        holder.thread = Some(this);
        holder.times += 1;
        Hold { of: self, _one_thread: PhantomData }
    }

    fn is_held(&self) -> bool {
        lock(&self.holder).thread.is_some()
    }
}

/// The thread holds the right until this is dropped.
pub(super) struct Hold<'a> {
    of: &'a OneThread,
    _one_thread: PhantomData<*mut ()>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut holder = lock(&self.of.holder);
        holder.times -= 1;
        if holder.times == 0 {
            holder.thread = None;
            if holder.waiting > 0 {
                self.of.free.notify_one();
            }
        }
    }
}

/// The bytes of a green context's resources, in order.
type Key = Vec<u8>;

/// Unused green contexts, kept for the next request for the same resources: each `cuGreenCtxCreate` takes 4 MiB of
/// device memory that `cuGreenCtxDestroy` does not free (seen with driver 580.159.04); only releasing the primary
/// context frees it.
#[derive(Debug, Default)]
pub(super) struct IdlePartitions(Mutex<Vec<CudaPartition>>);

impl IdlePartitions {
    fn take(&self, key: &Key) -> Option<CudaPartition> {
        let mut idle = lock(&self.0);
        let at = idle.iter().position(|partition| partition.key == *key)?;
        Some(idle.swap_remove(at))
    }

    /// Destroys all of them.
    ///
    /// # Safety
    /// The contract of [`crate::driver`].
    pub(super) unsafe fn destroy(&self) {
        for partition in lock(&self.0).drain(..) {
            // SAFETY: passed on to the caller. An error means that it is gone already.
            let _ = unsafe { driver::green::destroy(partition.handle) };
        }
    }
}

impl CudaPartition {
    /// Creates a green context and returns it with its number of SMs. "It is advised to have the primary context
    /// active before calling this API", and it is.
    pub(crate) fn create(
        device: &CudaDevice,
        resources: &[RawResource],
    ) -> Result<(CudaPartition, u32)> {
        let key: Key = resources.iter().flat_map(RawResource::bytes).collect();
        if let Some(idle) = device.idle.take(&key) {
            let sms = idle.sms;
            return Ok((idle, sms));
        }
        // SAFETY: the resources are of that device.
        let handle = unsafe { driver::green::create(resources, device.handle) }?;
        // SAFETY: the context was just created.
        let made = unsafe {
            driver::green::context(handle).and_then(|context| {
                let sms = driver::green::of_green(handle, ResourceKind::Sm)?.sm().sm_count;
                Ok((context, sms))
            })
        };
        let (context, sms) = made.inspect_err(|_| {
            // SAFETY: nothing uses it yet.
            let _ = unsafe { driver::green::destroy(handle) };
        })?;
        let one_thread = OneThread::default();
        Ok((CudaPartition { handle, context, key, sms, one_thread }, sms))
    }

    /// Keeps the green context for the next request for its resources.
    ///
    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn retire(&self, device: &CudaDevice) {
        if self.one_thread.is_held() {
            // A thread made it current and never released it, so no other thread may get it.
            return observe::leaked("a green context is still current on a thread");
        }
        let (handle, context, sms) = (self.handle, self.context, self.sms);
        let (key, one_thread) = (self.key.clone(), OneThread::default());
        let partition = CudaPartition { handle, context, key, sms, one_thread };
        lock(&device.idle.0).push(partition);
    }

    /// Makes the green context current on this thread and blocks other threads from it.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        let one_thread = self.one_thread.hold();
        // SAFETY: `self` holds the context, and `one_thread` restricts it to this thread.
        unsafe { Entered::push(self.context, Some(one_thread)) }
    }

    /// Same, until the host program drops the value.
    pub(crate) fn hold(&self) -> Result<Entered<'_>> {
        let one_thread = self.one_thread.hold();
        // SAFETY: as above.
        unsafe { Entered::hold(self.context, Some(one_thread)) }
    }

    /// The green context, for other libraries.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.handle.cast()
    }

    /// The context, for other libraries.
    pub(crate) fn context(&self) -> CUcontext {
        self.context
    }

    pub(crate) fn id(&self) -> Result<u64> {
        // SAFETY: the green context lives.
        Ok(unsafe { driver::green::id(self.handle) }?)
    }

    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        // SAFETY: both live.
        Ok(unsafe { driver::green::record_event(self.handle, event.0) }?)
    }

    pub(crate) fn wait_event(&self, event: &CudaEvent) -> Result<()> {
        // SAFETY: both live.
        Ok(unsafe { driver::green::wait_event(self.handle, event.0) }?)
    }

    /// The resources that the green context was created with.
    pub(crate) fn resource(&self, kind: ResourceKind) -> Result<ResourceHandle> {
        // SAFETY: the green context lives.
        resource(unsafe { driver::green::of_green(self.handle, kind) }, kind)
    }

    /// Whether the stream belongs to this green context, according to the driver.
    pub(crate) fn owns(&self, stream: &CudaStream) -> Result<bool> {
        // SAFETY: the stream lives.
        Ok(unsafe { driver::green::of_stream_context(stream.0) }? == self.handle)
    }
}

impl CudaDevice {
    /// The device's resources.
    pub(crate) fn resource(&self, kind: ResourceKind) -> Result<ResourceHandle> {
        // SAFETY: the device's handle is of this driver.
        resource(unsafe { driver::green::of_device(self.handle, kind) }, kind)
    }

    /// The primary context's resources.
    pub(crate) fn context_resource(&self, kind: ResourceKind) -> Result<ResourceHandle> {
        // SAFETY: `self` holds the context.
        resource(unsafe { driver::green::of_context(self.context(), kind) }, kind)
    }
}

impl CudaStream {
    /// The SMs that the stream's kernels run on.
    pub(crate) fn sms(&self) -> Result<ResourceHandle> {
        // SAFETY: the stream lives.
        resource(unsafe { driver::green::of_stream(self.0) }, ResourceKind::Sm)
    }
}

fn resource(answer: Result<RawResource, Failed>, kind: ResourceKind) -> Result<ResourceHandle> {
    /// Workqueues came with CUDA 13.1 (cuda.h of 13.1: `CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG`).
    const WORKQUEUES: CudaVersion = CudaVersion::new(13, 1);

    answer.map(ResourceHandle::Cuda).map_err(|failed| match kind {
        ResourceKind::Sm => Error::from(failed),
        ResourceKind::WorkqueueConfig => failed.since("workqueue configurations", WORKQUEUES),
        ResourceKind::Workqueue => failed.since("workqueues", WORKQUEUES),
    })
}
