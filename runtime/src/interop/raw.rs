//! Raw driver handles, as untyped pointers: cast them to the types of your bindings.

use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::arguments::{Arg, DeviceCopy, Pointer};
use crate::backend::cuda::{CudaEvent, CudaStream};
use crate::backend::{EventHandle, StreamHandle};
use crate::error::{Error, Result};
use crate::handles::{Device, Event, GreenContext, Kernel, Stream};
use crate::memory::{Buffer, DeviceMemory, Owner};
use crate::sharing::Sharing;

/// The handle, or an error on the CPU device, which has none.
fn on_gpu(handle: Option<*mut c_void>) -> Result<*mut c_void> {
    handle.ok_or(Error::NotOnCpu { what: "driver handles" })
}

impl Device {
    /// The primary context (`CUcontext`). The device holds one reference to it: release only references that you
    /// retained.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw_context(&self) -> Result<*mut c_void> {
        on_gpu(self.inner.handle.raw_context())
    }
}

impl GreenContext {
    /// The `CUgreenCtx`. The green context owns it: do not destroy it.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        on_gpu(self.inner.handle.raw())
    }
}

impl Kernel {
    /// The `CUkernel`, valid as long as the program. For a kernel that is launched through its program's resident entry, it
    /// is that entry's.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        on_gpu(self.entry.handle().raw())
    }
}

impl Stream {
    /// The `CUstream`, valid as long as the stream. [`Stream::synchronize`] also waits for other libraries' work
    /// in it; copies, and dropping memory, wait only for this crate's work.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        self.inner.sharing.told.store(true, Ordering::Release);
        on_gpu(self.inner.handle.raw())
    }

    /// A stream that other code created and destroys. `owner` is dropped with the last clone, once everything
    /// launched here has ended.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Foreign`].
    ///
    /// # Safety
    /// `handle` must be a `CUstream` of the device's primary context that lives as long as `owner`.
    pub unsafe fn borrow_raw(
        device: &Device,
        handle: *mut c_void,
        owner: impl Any + Send + Sync,
    ) -> Result<Stream> {
        /// `CU_STREAM_PER_THREAD`
        const PER_THREAD: usize = 2;

        on_gpu(device.inner.handle.raw_context())?;
        if handle.addr() == PER_THREAD {
            let reason =
                "it is a different stream in each thread, so waits would query the wrong one";
            return Err(Error::Foreign { what: "the per-thread stream", reason: reason.into() });
        }
        // SAFETY: passed on to the caller.
        let handle = StreamHandle::Cuda(unsafe { CudaStream::from_raw(handle) });
        let sharing = Sharing::owned_by(Box::new(owner));
        Ok(Stream::of_handle(&device.inner, None, handle, sharing))
    }
}

impl Event {
    /// The `CUevent`, valid as long as the event.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        on_gpu(self.handle.raw())
    }

    /// An event that other code created and destroys.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    ///
    /// # Safety
    /// `handle` must be a `CUevent` of the device's primary context that lives as long as `owner`.
    pub unsafe fn borrow_raw(
        device: &Device,
        handle: *mut c_void,
        owner: impl Any + Send + Sync,
    ) -> Result<Event> {
        on_gpu(device.inner.handle.raw_context())?;
        // SAFETY: passed on to the caller.
        let handle = EventHandle::Cuda(unsafe { CudaEvent::from_raw(handle) });
        Ok(Event { device: Arc::clone(&device.inner), handle, owner: Some(Box::new(owner)) })
    }
}

impl DeviceMemory {
    /// Takes ownership of memory, such as that returned by [`DeviceMemory::into_raw`], and frees it with
    /// `cuMemFree` when dropped.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    ///
    /// # Safety
    /// The address must come from `cuMemAlloc` or `cuMemAllocManaged` in the device's primary context, with this
    /// many bytes, and nothing else may free it.
    pub unsafe fn from_raw(device: &Device, address: u64, bytes: u64) -> Result<DeviceMemory> {
        on_gpu(device.inner.handle.raw_context())?;
        let device = Arc::clone(&device.inner);
        Ok(DeviceMemory { device, address, bytes, owner: Owner::Memory })
    }

    /// Memory that other code allocated and frees; on the CPU device, memory of this process. `owner` is dropped with
    /// it, once all earlier launches have ended.
    ///
    /// # Errors
    /// [`Error::Unusable`].
    ///
    /// # Safety
    /// The device must be able to access the memory at this address, with this length, as long as `owner` lives.
    /// Other code's uses of it must be ordered with the launches and copies here. A checking device must not be lent the
    /// same bytes twice at a time, nor memory that it allocated.
    pub unsafe fn borrow_raw(
        device: &Device,
        address: u64,
        bytes: u64,
        owner: impl Any + Send + Sync,
    ) -> Result<DeviceMemory> {
        let device = Arc::clone(&device.inner);
        device.usable()?;
        device.handle.lend(address, bytes);
        Ok(DeviceMemory { device, address, bytes, owner: Owner::Other(Box::new(owner)) })
    }

    /// The device address and the length in bytes. The caller must free the memory with `cuMemFree`, after the
    /// launches that use it have ended and before the device's primary context is destroyed.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`]; [`Error::Foreign`] if the memory is a program's variable or belongs to another
    /// library. On error, `self` is dropped.
    pub fn into_raw(mut self) -> Result<(u64, u64)> {
        on_gpu(self.device.handle.raw_context())?;
        if !matches!(self.owner, Owner::Memory) {
            let reason = "a program or another library owns it".into();
            return Err(Error::Foreign { what: "device memory", reason });
        }
        self.owner = Owner::Nobody(None);
        Ok((self.address, self.bytes))
    }
}

impl<T: DeviceCopy> Buffer<T> {
    /// Views memory as elements.
    ///
    /// # Errors
    /// [`Error::Length`] if the length is not a whole number of elements; [`Error::Foreign`] if the memory is not
    /// aligned for them. On error, the memory is dropped.
    pub fn from_memory(memory: DeviceMemory) -> Result<Buffer<T>> {
        let size = size_of::<T>().max(1) as u64;
        let whole = memory.bytes / size * size;
        if whole != memory.bytes {
            return Err(Error::Length { expected: whole, given: memory.bytes });
        }
        if !memory.address.is_multiple_of(align_of::<T>() as u64) {
            let reason = format!("{:#x} is not aligned for `{}`", memory.address, T::ELEMENT);
            return Err(Error::Foreign { what: "device memory", reason });
        }
        let length = usize::try_from(whole / size).unwrap_or(usize::MAX);
        Ok(Buffer { memory, length, element: PhantomData })
    }

    /// The untyped memory.
    pub fn into_memory(self) -> DeviceMemory {
        self.memory
    }
}

impl Arg<'static> {
    /// A device address from elsewhere, for a `*const` of the device type of `T`. Its type and its device are
    /// checked; the caller must ensure that the memory exists for long enough.
    pub fn at<T: DeviceCopy>(device: &Device, address: u64) -> Self {
        Arg::Pointer(Pointer::to_memory(address, T::ELEMENT, false, device.inner.number))
    }

    /// Same for a `*mut` or a `*const`.
    pub fn at_mut<T: DeviceCopy>(device: &Device, address: u64) -> Self {
        Arg::Pointer(Pointer::to_memory(address, T::ELEMENT, true, device.inner.number))
    }
}
