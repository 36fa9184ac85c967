//! Host memory that devices can access.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::slice;
use std::sync::Arc;

use crate::arguments::DeviceCopy;
use crate::arguments::{Arg, Pointer};
use crate::error::Result;
use crate::handles::{DEFAULT_TIMEOUT, Device, DeviceInner, HostVisible};

/// Options for allocating host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostFlags {
    /// `CU_MEMHOSTALLOC_WRITECOMBINED`: faster for the device to read, very slow for the host to read. Its device
    /// address differs from its host address.
    pub write_combined: bool,
}

impl HostFlags {
    gridlet_artifact::setters! { with_write_combined: write_combined: bool }
}

/// Elements in page-locked host memory (`cuMemHostAlloc`), which kernels of all devices can access.
#[derive(Debug)]
pub struct HostBuffer<T: DeviceCopy> {
    memory: Pinned<T>,
    _visible: HostVisible,
}

impl<T: DeviceCopy> HostBuffer<T> {
    /// Allocates `length` zeroed elements.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda), [`Error::Unusable`](crate::Error::Unusable).
    pub fn alloc_zeroed(device: &Device, length: usize, flags: HostFlags) -> Result<HostBuffer<T>> {
        let inner = Arc::clone(&device.inner);
        let bytes = length.saturating_mul(size_of::<T>());
        let _visible = HostVisible::new(&inner);
        let (host, address) = inner.call(|entered| {
            inner.handle.allocate_host(bytes.max(1), flags.write_combined, entered)
        })?;
        // SAFETY: this many bytes were just allocated.
        unsafe { host.write_bytes(0, bytes) };
        inner.handle.host_wrote(address, bytes);
        let host = host.cast();
        let memory = Pinned { device: inner, host, address, length, element: PhantomData };
        Ok(HostBuffer { memory, _visible })
    }

    /// The elements. Waits for all earlier launches on the device.
    ///
    /// # Errors
    /// The errors of [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn host(&mut self) -> Result<&mut [T]> {
        self.memory.slice()
    }

    /// Writes an element while kernels run, as a single access that they see eventually. Does nothing past the
    /// end.
    pub(crate) fn set_from_host(&self, index: usize, value: T) {
        if index < self.memory.length {
            // SAFETY: an element of the buffer, written whole; kernels read it as volatile.
            unsafe { self.memory.host.add(index).write_volatile(value) };
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.memory.length
    }

    /// Whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.memory.length == 0
    }

    /// The device address, for kernels.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// The host address.
    pub fn host_address(&self) -> u64 {
        self.memory.host as u64
    }

    /// Whether the driver reports the memory as write-combined (`cuMemHostGetFlags`); false on the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda), [`Error::Unusable`](crate::Error::Unusable).
    pub fn is_write_combined(&self) -> Result<bool> {
        let device = &self.memory.device;
        // SAFETY: the memory is host memory of this device's driver.
        unsafe {
            device.call(|entered| device.handle.is_write_combined(self.memory.host.cast(), entered))
        }
    }
}

impl<T: DeviceCopy> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        let memory = &self.memory;
        if let Some(entered) = memory.device.enter_for_drop() {
            // SAFETY: the address comes from `allocate_host`, and no kernel runs.
            unsafe { memory.device.handle.free_host(memory.host.cast(), &entered) };
        }
    }
}

/// Options for registering host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisterFlags {
    /// `CU_MEMHOSTREGISTER_READ_ONLY`: devices only read it.
    pub read_only: bool,
}

impl RegisterFlags {
    gridlet_artifact::setters! { with_read_only: read_only: bool }
}

/// A host vector registered with a device (`cuMemHostRegister`), so that kernels can access it. It owns the
/// memory, because kernels may use it while it is registered.
#[derive(Debug)]
pub struct RegisteredMemory<T: DeviceCopy> {
    memory: Pinned<T>,
    capacity: usize,
}

impl<T: DeviceCopy> RegisteredMemory<T> {
    /// Registers the elements of a vector, which must not be empty.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda), also for an empty vector; [`Error::Unusable`](crate::Error::Unusable).
    pub fn new(
        device: &Device,
        values: Vec<T>,
        flags: RegisterFlags,
    ) -> Result<RegisteredMemory<T>> {
        let inner = Arc::clone(&device.inner);
        let mut values = ManuallyDrop::new(values);
        let (host, length, capacity) = (values.as_mut_ptr(), values.len(), values.capacity());
        let bytes = length.saturating_mul(size_of::<T>());
        let registered = inner.enter().and_then(|entered| {
            // SAFETY: the vector's memory stays in place until it is unregistered.
            unsafe { inner.handle.register_host(host.cast(), bytes, flags.read_only, &entered) }
        });
        match registered {
            Ok(address) => {
                let memory = Pinned { device: inner, host, address, length, element: PhantomData };
                Ok(RegisteredMemory { memory, capacity })
            }
            Err(error) => {
                drop(ManuallyDrop::into_inner(values));
                Err(error)
            }
        }
    }

    /// The elements. Waits for all earlier launches on the device.
    ///
    /// # Errors
    /// The errors of [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn host(&mut self) -> Result<&mut [T]> {
        self.memory.slice()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.memory.length
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.memory.length == 0
    }

    /// The device address, for kernels; it differs from the host address.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// The host address.
    pub fn host_address(&self) -> u64 {
        self.memory.host as u64
    }

    /// Unregisters the vector and returns it. Waits for all earlier launches on the device.
    ///
    /// # Errors
    /// The errors of [`Stream::synchronize`](crate::Stream::synchronize); on error, the memory is dropped.
    pub fn into_vec(self) -> Result<Vec<T>> {
        self.memory.settle()?;
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never used or dropped again, so the field is moved out only once.
        let memory = unsafe { std::ptr::read(&this.memory) };
        let entered = memory.device.enter()?;
        // SAFETY: registered in `new`; nothing runs.
        unsafe {
            memory.device.handle.unregister_host(memory.host.cast(), memory.bytes(), &entered)
        };
        // SAFETY: pointer, length and capacity come from the vector taken apart in `new`.
        Ok(unsafe { Vec::from_raw_parts(memory.host, memory.length, this.capacity) })
    }
}

impl<T: DeviceCopy> Drop for RegisteredMemory<T> {
    fn drop(&mut self) {
        let memory = &self.memory;
        // Leaked if a kernel may still use it.
        if let Some(entered) = memory.device.enter_for_drop() {
            // SAFETY: registered in `new`; nothing runs; pointer, length and capacity come from the vector.
            unsafe {
                memory.device.handle.unregister_host(memory.host.cast(), memory.bytes(), &entered);
                drop(Vec::from_raw_parts(memory.host, memory.length, self.capacity));
            }
        }
    }
}

/// Host memory with its device address.
#[derive(Debug)]
struct Pinned<T> {
    device: Arc<DeviceInner>,
    host: *mut T,
    address: u64,
    length: usize,
    element: PhantomData<T>,
}

// SAFETY: it owns the memory, and the elements are `Send`.
unsafe impl<T: DeviceCopy> Send for Pinned<T> {}
// SAFETY: a shared reference exposes only addresses.
unsafe impl<T: DeviceCopy> Sync for Pinned<T> {}

impl<T: DeviceCopy> Pinned<T> {
    fn settle(&self) -> Result<()> {
        let entered = self.device.enter()?;
        self.device.settle(DEFAULT_TIMEOUT, &entered)?;
        self.device.report_lost_launches(&entered)
    }

    fn bytes(&self) -> usize {
        self.length.saturating_mul(size_of::<T>())
    }

    fn slice(&mut self) -> Result<&mut [T]> {
        self.settle()?;
        self.device.handle.host_wrote(self.address, self.bytes());
        // SAFETY: that many initialized elements, aligned for any type; no launched work uses them any more, and
        // `self` is borrowed.
        Ok(unsafe { slice::from_raw_parts_mut(self.host, self.length) })
    }

    fn pointer(&self, mutable: bool) -> Pointer<'_> {
        Pointer::to_memory(self.address, T::ELEMENT, mutable, self.device.number)
    }
}

impl<'a, T: DeviceCopy> From<&'a HostBuffer<T>> for Arg<'a> {
    fn from(buffer: &'a HostBuffer<T>) -> Self {
        Arg::Pointer(buffer.memory.pointer(false))
    }
}

impl<'a, T: DeviceCopy> From<&'a mut HostBuffer<T>> for Arg<'a> {
    fn from(buffer: &'a mut HostBuffer<T>) -> Self {
        Arg::Pointer(buffer.memory.pointer(true))
    }
}

impl<'a, T: DeviceCopy> From<&'a RegisteredMemory<T>> for Arg<'a> {
    fn from(memory: &'a RegisteredMemory<T>) -> Self {
        Arg::Pointer(memory.memory.pointer(false))
    }
}

impl<'a, T: DeviceCopy> From<&'a mut RegisteredMemory<T>> for Arg<'a> {
    fn from(memory: &'a mut RegisteredMemory<T>) -> Self {
        Arg::Pointer(memory.memory.pointer(true))
    }
}
