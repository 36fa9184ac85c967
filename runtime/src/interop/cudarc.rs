//! Conversions to and from cudarc's safe types.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut,
    DriverError, SyncOnDrop,
};

use crate::arguments::{Arg, DeviceCopy, Pointer};
use crate::backend::cuda::call_failed;
use crate::error::{Error, Result};
use crate::handles::{DEFAULT_TIMEOUT, Device, Stream, number_of};
use crate::memory::{Buffer, DeviceMemory, Owner};

/// Converts an error from cudarc.
fn failed(call: &'static str, error: DriverError) -> Error {
    call_failed(call, error.0 as i32)
}

impl Device {
    /// The device of a cudarc context.
    ///
    /// # Errors
    /// [`Error::Foreign`] unless it is the primary context, in which this crate works; the errors of
    /// [`Device::open`].
    pub fn from_cudarc(context: &CudaContext) -> Result<Device> {
        if !context.is_primary() {
            let reason = "it is not the device's primary context, which `CudaContext::new` returns";
            return Err(Error::Foreign { what: "a cudarc context", reason: reason.into() });
        }
        Device::open(u32::try_from(context.ordinal()).unwrap_or(u32::MAX))
    }

    /// The device as a cudarc context: its primary context, retained once more.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn to_cudarc(&self) -> Result<Arc<CudaContext>> {
        self.raw_context()?;
        // cudarc makes the context current if it is not, and leaves it current; entering it first restores the
        // previous one.
        let _entered = self.inner.enter()?;
        CudaContext::new(self.inner.ordinal as usize)
            .map_err(|error| failed("cuDevicePrimaryCtxRetain", error))
    }
}

impl Stream {
    /// A cudarc stream, shared: work that either side submits runs in order. The cudarc handle is kept alive and
    /// destroys the stream.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a stream of a context other than the primary one, and for the per-thread stream; the
    /// errors of [`Device::open`].
    pub fn from_cudarc(stream: &Arc<CudaStream>) -> Result<Stream> {
        let device = Device::from_cudarc(stream.context())?;
        let handle = stream.cu_stream().cast();
        // SAFETY: a stream of the primary context, kept alive by the cudarc handle.
        unsafe { Stream::borrow_raw(&device, handle, Arc::clone(stream)) }
    }

    /// The stream as a cudarc stream; every call returns the same one. If cudarc still holds it when the last
    /// clone here is dropped, the stream is destroyed only with the device's primary context.
    ///
    /// cudarc orders its streams' uses of a slice only after a call of [`CudaContext::new_stream`]
    /// ([`CudaContext::is_in_multi_stream_mode`]).
    ///
    /// # Errors
    /// [`Error::NotOnCpu`]; [`Error::Foreign`] for a stream of a green context, which cudarc would use in the primary
    /// context; [`Error::Cuda`], [`Error::Unusable`].
    pub fn to_cudarc(&self) -> Result<Arc<CudaStream>> {
        let handle = self.raw()?;
        if self.inner.green.is_some() {
            let reason = "cudarc would use it in the device's primary context".into();
            return Err(Error::Foreign { what: "a stream of a green context", reason });
        }
        let lent = &self.inner.sharing.lent;
        if lent.get().is_none() {
            let context = self.device().to_cudarc()?;
            // SAFETY: a stream of that context. It is not destroyed while cudarc holds it: `Sharing::may_destroy`.
            let _ = lent.set(unsafe { context.wrap_borrowed_stream(handle.cast()) });
        }
        let gone = || Error::Foreign { what: "a stream", reason: "it is gone".into() };
        lent.get().cloned().ok_or_else(gone)
    }
}

impl<'a> Arg<'a> {
    /// A cudarc slice or view, for a `*const` of its elements, in a launch on `stream`, that is, on the
    /// corresponding stream from [`Stream::from_cudarc`] or [`Stream::to_cudarc`]. Drop the second value after the
    /// launch: cudarc learns of the use only then.
    #[must_use = "the second value must live until the launch is made"]
    pub fn cudarc<T: DeviceCopy>(
        slice: &'a impl DevicePtr<T>,
        stream: &'a CudaStream,
    ) -> (Arg<'a>, SyncOnDrop<'a>) {
        let device = number(slice.stream());
        let (address, until_launched) = slice.device_ptr(stream);
        (Arg::Pointer(Pointer::to_memory(address, T::ELEMENT, false, device)), until_launched)
    }

    /// Same for a `*mut` or a `*const`.
    #[must_use = "the second value must live until the launch is made"]
    pub fn cudarc_mut<T: DeviceCopy>(
        slice: &'a mut impl DevicePtrMut<T>,
        stream: &'a CudaStream,
    ) -> (Arg<'a>, SyncOnDrop<'a>) {
        let device = number(slice.stream());
        let (address, until_launched) = slice.device_ptr_mut(stream);
        (Arg::Pointer(Pointer::to_memory(address, T::ELEMENT, true, device)), until_launched)
    }
}

/// The number that this crate's handles use for the stream's device.
fn number(stream: &CudaStream) -> u32 {
    number_of(u32::try_from(stream.context().ordinal()).unwrap_or(u32::MAX))
}

impl<T: DeviceCopy> Buffer<T> {
    /// Takes over a cudarc slice, once cudarc's work on it has ended. cudarc frees it when the buffer is dropped.
    ///
    /// # Errors
    /// [`Error::Foreign`] as for [`Stream::from_cudarc`]; the errors of [`Stream::synchronize`].
    pub fn from_cudarc(mut slice: CudaSlice<T>) -> Result<Buffer<T>> {
        let theirs = Arc::clone(slice.stream());
        let stream = Stream::from_cudarc(&theirs)?;
        let length = slice.len();
        let entered = stream.inner.device.enter()?;
        let (address, until_waited) = slice.device_ptr_mut(&theirs);
        let waited = stream.synchronize(DEFAULT_TIMEOUT);
        drop(until_waited);
        drop(entered);
        if let Err(error) = waited {
            if stream.inner.device.has_timed_out() {
                // Freeing it could wait forever.
                std::mem::forget(slice);
            }
            return Err(error);
        }
        let device = Arc::clone(&stream.inner.device);
        let bytes = (length as u64).saturating_mul(size_of::<T>() as u64);
        let owner = Owner::Other(Box::new(slice));
        let memory = DeviceMemory { device, address, bytes, owner };
        Ok(Buffer { memory, length, element: PhantomData })
    }

    /// Gives cudarc read access to the elements on `stream`. Waits for all earlier launches, and afterwards for
    /// the stream.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], [`Error::NotOnCpu`]; the errors of [`Stream::synchronize`].
    pub fn with_cudarc<R>(
        &self,
        stream: &Arc<CudaStream>,
        work: impl FnOnce(CudaView<'_, T>) -> R,
    ) -> Result<R> {
        self.lend(stream, |slice| work(slice.as_view()))
    }

    /// Gives cudarc read and write access to the elements; otherwise the same as [`Buffer::with_cudarc`].
    ///
    /// # Errors
    /// The errors of [`Buffer::with_cudarc`].
    pub fn with_cudarc_mut<R>(
        &mut self,
        stream: &Arc<CudaStream>,
        work: impl FnOnce(CudaViewMut<'_, T>) -> R,
    ) -> Result<R> {
        self.lend(stream, |slice| work(slice.as_view_mut()))
    }

    fn lend<R>(
        &self,
        theirs: &Arc<CudaStream>,
        work: impl FnOnce(&mut CudaSlice<T>) -> R,
    ) -> Result<R> {
        let device = self.memory().device();
        device.raw_context()?;
        let stream = Stream::from_cudarc(theirs)?;
        if !Arc::ptr_eq(&stream.inner.device, &device.inner) {
            return Err(Error::OtherDevice {
                what: "the buffer".into(),
                expected: stream.inner.device.number,
                given: device.inner.number,
            });
        }
        device.synchronize(DEFAULT_TIMEOUT)?;
        let mut lent = Lent::new(theirs, self, &stream)?;
        let result = work(&mut lent.slice);
        drop(lent);
        stream.synchronize(DEFAULT_TIMEOUT)?;
        Ok(result)
    }
}

/// A buffer presented as a slice that cudarc does not free.
struct Lent<'a, T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    stream: &'a Stream,
}

impl<'a, T: DeviceCopy> Lent<'a, T> {
    fn new(theirs: &Arc<CudaStream>, buffer: &Buffer<T>, stream: &'a Stream) -> Result<Self> {
        let _entered = stream.inner.device.enter()?;
        // SAFETY: the buffer has that many elements, every bit pattern is a value, and `drop` takes the memory
        // back before cudarc frees it.
        let make = || unsafe { theirs.upgrade_device_ptr::<T>(buffer.address(), buffer.len()) };
        // cudarc creates two events and panics if it cannot.
        let slice = catch_unwind(AssertUnwindSafe(make)).map_err(|_| Error::Foreign {
            what: "a buffer with cudarc",
            reason: "cudarc could not create events for it".into(),
        })?;
        Ok(Lent { slice: ManuallyDrop::new(slice), stream })
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        // The stream waits for other streams' uses of the slice; waits here wait for the stream.
        self.stream.inner.note_work();
        self.stream.inner.note_returned();
        // SAFETY: taken once, here.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        let _entered = self.stream.inner.device.enter();
        let _address = slice.leak();
    }
}
