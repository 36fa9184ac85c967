//! Device memory, untyped and typed.

mod globals;

use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;
use std::{mem, slice};

use crate::arguments::{Arg, DeviceCopy, Element, Pointer, bytes_of, bytes_of_mut};
use crate::backend::Transfer;
use crate::error::{Error, Result};
use crate::handles::{DEFAULT_TIMEOUT, Device, DeviceInner, Program};
use crate::sharing::Keep;

/// Bytes of device memory, aligned to at least 256 ("the allocated memory is suitably aligned for any kind of
/// variable", `cuMemAlloc`). Freed when dropped, once earlier launches have ended.
#[derive(Debug)]
pub struct DeviceMemory {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) owner: Owner,
}

/// The owner of memory, who frees it.
#[derive(Debug)]
pub(crate) enum Owner {
    /// The value itself.
    Memory,
    /// Nobody: the memory is a variable of the program, or ownership was given away.
    #[expect(dead_code, reason = "a program is held for its drop")]
    Nobody(Option<Program>),
    /// Another library, which frees the memory when this is dropped.
    Other(Keep),
}

impl DeviceMemory {
    /// Allocates uninitialized memory.
    ///
    /// # Errors
    /// [`Error::Cuda`] if the device has too little memory; [`Error::Unusable`].
    pub fn alloc(device: &Device, bytes: u64) -> Result<DeviceMemory> {
        let device = Arc::clone(&device.inner);
        let address = device.call(|entered| device.handle.allocate(bytes, entered))?;
        Ok(DeviceMemory { device, address, bytes, owner: Owner::Memory })
    }

    /// Allocates managed memory, which the host accesses at the same address.
    pub(crate) fn alloc_managed(device: &Device, bytes: u64) -> Result<DeviceMemory> {
        let device = Arc::clone(&device.inner);
        let address = device.call(|entered| device.handle.allocate_managed(bytes, entered))?;
        Ok(DeviceMemory { device, address, bytes, owner: Owner::Memory })
    }

    /// A variable of a program, whose image it keeps loaded.
    pub(crate) fn of_program(program: &Program, address: u64, bytes: u64) -> DeviceMemory {
        let device = program.device().inner;
        DeviceMemory { device, address, bytes, owner: Owner::Nobody(Some(program.clone())) }
    }

    /// Allocates zeroed memory.
    ///
    /// # Errors
    /// The errors of [`DeviceMemory::alloc`].
    pub fn alloc_zeroed(device: &Device, bytes: u64) -> Result<DeviceMemory> {
        let mut memory = DeviceMemory::alloc(device, bytes)?;
        memory.fill(0)?;
        Ok(memory)
    }

    /// Its device.
    pub fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.device) }
    }

    /// The length in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Names the memory in the findings of a checking device, which otherwise count buffers. Other devices ignore the name, and the
    /// first name stays.
    pub fn set_name(&self, name: &str) {
        self.device.handle.set_name(self.address, name);
    }

    /// The memory as the host sees it: on the CPU device at the same address, on a GPU nowhere. Waits for all earlier
    /// launches on the device; a checking device takes the memory as written by the host.
    ///
    /// # Errors
    /// [`Error::Foreign`] on a GPU; the errors of [`crate::Stream::synchronize`].
    pub fn host_address(&self) -> Result<*mut u8> {
        if !self.device.handle.is_cpu() {
            let reason = "the host cannot access the memory of a GPU".into();
            return Err(Error::Foreign { what: "device memory", reason });
        }
        self.device().synchronize(DEFAULT_TIMEOUT)?;
        self.device.handle.host_wrote(self.address, self.bytes as usize);
        Ok(self.address as *mut u8)
    }

    /// Copies all of `from`, which must have the same length as the memory.
    ///
    /// # Errors
    /// [`Error::Length`]; the errors of [`crate::Stream::synchronize`].
    pub fn copy_from_host(&mut self, from: &[u8]) -> Result<()> {
        self.check(from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let copy = Transfer::ToDevice { from: from.as_ptr(), to: self.address, bytes: from.len() };
        // SAFETY: source and target both have `from.len()` bytes, and `transfer` waits for the copy.
        unsafe { self.device.transfer("a copy to the device", copy) }
    }

    /// Fills `to`, which must have the same length as the memory.
    ///
    /// # Errors
    /// [`Error::Length`]; the errors of [`crate::Stream::synchronize`].
    pub fn copy_to_host(&self, to: &mut [u8]) -> Result<()> {
        self.check(to.len())?;
        self.copy_start_to_host(to)
    }

    /// Fills `to` with the first bytes of the memory.
    ///
    /// # Errors
    /// [`Error::Length`] if the memory is shorter; the errors of [`crate::Stream::synchronize`].
    pub fn copy_start_to_host(&self, to: &mut [u8]) -> Result<()> {
        if to.len() as u64 > self.bytes {
            return Err(Error::Length { expected: self.bytes, given: to.len() as u64 });
        }
        if to.is_empty() {
            return Ok(());
        }
        let copy = Transfer::ToHost { from: self.address, to: to.as_mut_ptr(), bytes: to.len() };
        // SAFETY: the source has at least the target's `to.len()` bytes, and `transfer` waits for the copy.
        unsafe { self.device.transfer("a copy from the device", copy) }
    }

    /// Copies all of `from`, which has the same length.
    pub(crate) fn copy_from_memory(&mut self, from: &DeviceMemory) -> Result<()> {
        self.check(usize::try_from(from.bytes).unwrap_or(usize::MAX))?;
        if self.device.handle.is_cpu() != from.device.handle.is_cpu() {
            return Err(Error::OtherDevice {
                what: "the memory to copy".into(),
                expected: self.device.number,
                given: from.device.number,
            });
        }
        if self.bytes == 0 {
            return Ok(());
        }
        // Keeps both devices usable until the copy has ended.
        let _theirs = from.device.enter()?;
        if !Arc::ptr_eq(&self.device, &from.device) {
            from.device().synchronize(DEFAULT_TIMEOUT)?;
        }
        let bytes = self.bytes as usize;
        let copy = Transfer::Copy { from: from.address, to: self.address, bytes };
        // SAFETY: both memories have that many bytes, and `transfer` waits for the copy.
        unsafe { self.device.transfer("a copy between memories", copy) }
    }

    /// Sets every byte to `value`.
    ///
    /// # Errors
    /// The errors of [`crate::Stream::synchronize`].
    pub fn fill(&mut self, value: u8) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let fill = Transfer::Fill { to: self.address, value, bytes: self.bytes as usize };
        // SAFETY: the memory has that many bytes.
        unsafe { self.device.transfer("a fill", fill) }
    }

    fn check(&self, given: usize) -> Result<()> {
        let given = given as u64;
        if given == self.bytes {
            Ok(())
        } else {
            Err(Error::Length { expected: self.bytes, given })
        }
    }

    fn pointer(&self, element: Element, mutable: bool) -> Pointer<'_> {
        Pointer::to_memory(self.address, element, mutable, self.device.number)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let owner = mem::replace(&mut self.owner, Owner::Nobody(None));
        if let Owner::Nobody(_) = owner {
            return;
        }
        match (self.device.enter_for_drop(), owner) {
            (Some(entered), Owner::Memory) => {
                // SAFETY: the address comes from `alloc` and no kernel runs.
                unsafe { self.device.handle.free(self.address, &entered) };
            }
            // While the context is current, so that the other library need not switch to it.
            (Some(_entered), Owner::Other(keep)) => {
                self.device.handle.take_back(self.address, self.bytes);
                drop(keep);
            }
            // Freeing it could wait forever.
            (None, Owner::Other(keep)) if self.device.has_timed_out() => mem::forget(keep),
            (None, _) | (Some(_), Owner::Nobody(_)) => {}
        }
    }
}

/// Elements of one type in device memory.
#[derive(Debug)]
pub struct Buffer<T: DeviceCopy> {
    pub(crate) memory: DeviceMemory,
    pub(crate) length: usize,
    pub(crate) element: PhantomData<T>,
}

impl<T: DeviceCopy> Buffer<T> {
    /// Allocates `length` uninitialized elements.
    ///
    /// # Errors
    /// [`Error::Cuda`] if the device has too little memory; [`Error::Unusable`].
    pub fn alloc(device: &Device, length: usize) -> Result<Buffer<T>> {
        let bytes = (length as u64).saturating_mul(size_of::<T>() as u64);
        Ok(Buffer { memory: DeviceMemory::alloc(device, bytes)?, length, element: PhantomData })
    }

    /// Views memory as elements; its length must be a multiple of their size.
    pub(crate) fn of_memory(memory: DeviceMemory) -> Buffer<T> {
        let length = memory.bytes.checked_div(size_of::<T>() as u64).unwrap_or(0) as usize;
        Buffer { memory, length, element: PhantomData }
    }

    /// Allocates `length` elements of managed memory.
    pub(crate) fn alloc_managed(device: &Device, length: usize) -> Result<Buffer<T>> {
        let bytes = (length as u64).saturating_mul(size_of::<T>() as u64);
        let memory = DeviceMemory::alloc_managed(device, bytes)?;
        Ok(Buffer { memory, length, element: PhantomData })
    }

    /// The elements of a managed buffer, once all earlier launches have ended.
    pub(crate) fn host_slice(&mut self) -> Result<&mut [T]> {
        self.memory.device().synchronize(DEFAULT_TIMEOUT)?;
        self.memory.device.handle.host_wrote(self.memory.address, self.memory.bytes as usize);
        // SAFETY: managed memory of that many elements, aligned for any type; every bit pattern is a value. No
        // launched work uses it any more, and `self` is borrowed.
        Ok(unsafe { slice::from_raw_parts_mut(self.memory.address as *mut T, self.length) })
    }

    /// Allocates `length` zeroed elements.
    ///
    /// # Errors
    /// The errors of [`Buffer::alloc`].
    pub fn alloc_zeroed(device: &Device, length: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::alloc(device, length)?;
        buffer.memory.fill(0)?;
        Ok(buffer)
    }

    /// Allocates a buffer and copies `values` into it.
    ///
    /// # Errors
    /// The errors of [`Buffer::alloc`].
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Buffer<T>> {
        let mut buffer = Buffer::alloc(device, values.len())?;
        buffer.copy_from_host(values)?;
        Ok(buffer)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// The untyped memory.
    pub fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    /// Copies all of `from`, which must have the same length as the buffer.
    ///
    /// # Errors
    /// [`Error::Length`]; the errors of [`crate::Stream::synchronize`].
    pub fn copy_from_host(&mut self, from: &[T]) -> Result<()> {
        self.memory.copy_from_host(bytes_of(from))
    }

    /// Copies all of another buffer of the same length, as [`DeviceMemory::copy_from`] does.
    ///
    /// # Errors
    /// The errors of [`DeviceMemory::copy_from`].
    pub fn copy_from(&mut self, from: &Buffer<T>) -> Result<()> {
        self.memory.copy_from(&from.memory)
    }

    /// Fills `to`, which must have the same length as the buffer.
    ///
    /// # Errors
    /// [`Error::Length`]; the errors of [`crate::Stream::synchronize`].
    pub fn copy_to_host(&self, to: &mut [T]) -> Result<()> {
        self.memory.copy_to_host(bytes_of_mut(to))
    }

    /// Copies the elements to the host.
    ///
    /// # Errors
    /// The errors of [`crate::Stream::synchronize`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = room_for::<T>(self.length)?;
        // SAFETY: the vector has room for the elements, and every bit pattern is a value; the memory is zeroed
        // first.
        unsafe {
            values.as_mut_ptr().write_bytes(0, self.length);
            values.set_len(self.length);
        }
        self.copy_to_host(&mut values)?;
        Ok(values)
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// The errors of [`crate::Stream::synchronize`].
    pub fn fill(&mut self, value: T) -> Result<()> {
        match bytes_of(slice::from_ref(&value)) {
            [first, rest @ ..] if rest.iter().all(|byte| byte == first) => self.memory.fill(*first),
            _ => {
                let mut values = room_for(self.length)?;
                values.resize(self.length, value);
                self.copy_from_host(&values)
            }
        }
    }
}

/// An empty vector with room for as many elements as a buffer has, which may be more than the host has memory for.
fn room_for<T>(length: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let bytes = (length as u64).saturating_mul(size_of::<T>() as u64);
    values.try_reserve_exact(length).map_err(|_| Error::CpuMemory { bytes })?;
    Ok(values)
}

impl<'a, T: DeviceCopy> From<&'a Buffer<T>> for Arg<'a> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Arg::Pointer(buffer.memory.pointer(T::ELEMENT, false))
    }
}

impl<'a, T: DeviceCopy> From<&'a mut Buffer<T>> for Arg<'a> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        Arg::Pointer(buffer.memory.pointer(T::ELEMENT, true))
    }
}

impl<'a> From<&'a DeviceMemory> for Arg<'a> {
    fn from(memory: &'a DeviceMemory) -> Self {
        Arg::Pointer(memory.pointer(Element::Bytes, false))
    }
}

impl<'a> From<&'a mut DeviceMemory> for Arg<'a> {
    fn from(memory: &'a mut DeviceMemory) -> Self {
        Arg::Pointer(memory.pointer(Element::Bytes, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_beyond_the_memory_are_errors() {
        let bytes = 1 << 62;
        let refused = room_for::<u64>(1 << 59).unwrap_err();
        assert!(
            matches!(refused, Error::CpuMemory { bytes: wanted } if wanted == bytes),
            "{refused}"
        );
        assert!(room_for::<u64>(3).is_ok_and(|room| room.capacity() >= 3));
    }

    #[test]
    fn bytes_are_those_of_the_values() {
        assert_eq!(bytes_of(&[1u16, 0x0203]), [1, 0, 3, 2]);
        let mut values = [[0u8; 2]; 2];
        bytes_of_mut(&mut values).copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(values, [[1, 2], [3, 4]]);
        assert_eq!(<[[f32; 2]; 3]>::ELEMENT.to_string(), "[[f32; 2]; 3]");
    }
}
