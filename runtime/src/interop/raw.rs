//! Raw handles of the driver, as untyped pointers: cast them to the types of the bindings at hand.

use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::arguments::{Arg, DeviceCopy, Pointer};
use crate::backend::cuda::{CudaEvent, CudaStream};
use crate::backend::{EventHandle, StreamHandle};
use crate::error::{Error, Result};
use crate::handles::{Device, Event, GreenContext, Kernel, Stream};
use crate::memory::{Buffer, DeviceMemory, Owner};
use crate::sharing::Sharing;

/// The handle, or that the CPU device has none.
fn on_gpu(handle: Option<*mut c_void>) -> Result<*mut c_void> {
    handle.ok_or(Error::NotOnCpu { what: "handles of a driver" })
}

impl Device {
    /// The primary context (`CUcontext`). The device holds a reference to it: release none that was not retained.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw_context(&self) -> Result<*mut c_void> {
        on_gpu(self.inner.handle.raw_context())
    }
}

impl GreenContext {
    /// The `CUgreenCtx`. It belongs to the green context: destroy it nowhere.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        on_gpu(self.inner.handle.raw())
    }
}

impl Kernel {
    /// The `CUkernel`, which lives as long as the program.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        on_gpu(self.entry.handle.raw())
    }
}

impl Stream {
    /// The `CUstream`, which lives as long as the stream. A [`Stream::synchronize`] waits for what others put into it as
    /// well; copies, and dropping memory, wait only for what this crate put there.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        on_gpu(self.inner.handle.raw())
    }

    /// A stream that something else made and destroys. `owner` is dropped with the last clone, after all that was
    /// launched here has ended.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Foreign`].
    ///
    /// # Safety
    /// The handle is a `CUstream` of the device's primary context, and lives as long as `owner`.
    pub unsafe fn borrow_raw(
        device: &Device,
        handle: *mut c_void,
        owner: impl Any + Send + Sync,
    ) -> Result<Stream> {
        /// `CU_STREAM_PER_THREAD`
        const PER_THREAD: usize = 2;

        on_gpu(device.inner.handle.raw_context())?;
        if handle.addr() == PER_THREAD {
            let reason = "it is another stream in each thread, and waits would ask the wrong one";
            return Err(Error::Foreign { what: "the stream per thread", reason: reason.into() });
        }
        // SAFETY: passed on to the caller.
        let handle = StreamHandle::Cuda(unsafe { CudaStream::from_raw(handle) });
        let sharing = Sharing::owned_by(Box::new(owner));
        Ok(Stream::of_handle(&device.inner, None, handle, sharing))
    }
}

impl Event {
    /// The `CUevent`, which lives as long as the event.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    pub fn raw(&self) -> Result<*mut c_void> {
        on_gpu(self.handle.raw())
    }

    /// An event that something else made and destroys.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    ///
    /// # Safety
    /// The handle is a `CUevent` of the device's primary context, and lives as long as `owner`.
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
    /// Memory that is freed with `cuMemFree` when dropped, such as [`DeviceMemory::into_raw`] gave.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    ///
    /// # Safety
    /// The address is one that `cuMemAlloc` or `cuMemAllocManaged` gave in the device's primary context, it has those
    /// bytes, and nothing else frees it.
    pub unsafe fn from_raw(device: &Device, address: u64, bytes: u64) -> Result<DeviceMemory> {
        on_gpu(device.inner.handle.raw_context())?;
        let device = Arc::clone(&device.inner);
        Ok(DeviceMemory { device, address, bytes, owner: Owner::Memory })
    }

    /// Memory that something else allocated and frees. `owner` is dropped with it, after all launches before have ended.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`].
    ///
    /// # Safety
    /// The address is memory that the device reaches, with those bytes, as long as `owner` lives. What others do with it
    /// meanwhile is ordered with what is launched and copied here.
    pub unsafe fn borrow_raw(
        device: &Device,
        address: u64,
        bytes: u64,
        owner: impl Any + Send + Sync,
    ) -> Result<DeviceMemory> {
        on_gpu(device.inner.handle.raw_context())?;
        let device = Arc::clone(&device.inner);
        Ok(DeviceMemory { device, address, bytes, owner: Owner::Other(Box::new(owner)) })
    }

    /// The device address and the bytes. Who has them frees them with `cuMemFree`, once the launches that use them have
    /// ended and before the device's primary context goes.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`]; [`Error::Foreign`] if the memory is a program's variable or another library's. It is dropped
    /// then.
    pub fn into_raw(mut self) -> Result<(u64, u64)> {
        on_gpu(self.device.handle.raw_context())?;
        if !matches!(self.owner, Owner::Memory) {
            let reason = "it is a program's or another library's to free".into();
            return Err(Error::Foreign { what: "device memory", reason });
        }
        self.owner = Owner::Nobody(None);
        Ok((self.address, self.bytes))
    }
}

impl<T: DeviceCopy> Buffer<T> {
    /// The memory as elements.
    ///
    /// # Errors
    /// [`Error::Length`] if it is not a whole number of elements; [`Error::Foreign`] if it is not aligned for them. The
    /// memory is dropped then.
    pub fn from_memory(memory: DeviceMemory) -> Result<Buffer<T>> {
        let size = size_of::<T>().max(1) as u64;
        let whole = memory.bytes / size * size;
        if whole != memory.bytes {
            return Err(Error::Length { expected: whole, given: memory.bytes });
        }
        if !memory.address.is_multiple_of(align_of::<T>() as u64) {
            let reason = format!("{:#x} is no address of a `{}`", memory.address, T::ELEMENT);
            return Err(Error::Foreign { what: "device memory", reason });
        }
        let length = usize::try_from(whole / size).unwrap_or(usize::MAX);
        Ok(Buffer { memory, length, element: PhantomData })
    }

    /// The memory without its type.
    pub fn into_memory(self) -> DeviceMemory {
        self.memory
    }
}

impl Arg<'static> {
    /// A device address from elsewhere, for a `*const` of what `T` stands for. Its type and its device are checked;
    /// whether there is such memory, and for how long, is the caller's to know.
    pub fn at<T: DeviceCopy>(device: &Device, address: u64) -> Self {
        Arg::Pointer(Pointer::to_memory(address, T::ELEMENT, false, device.inner.number))
    }

    /// The same for a `*mut`, or for either.
    pub fn at_mut<T: DeviceCopy>(device: &Device, address: u64) -> Self {
        Arg::Pointer(Pointer::to_memory(address, T::ELEMENT, true, device.inner.number))
    }
}
