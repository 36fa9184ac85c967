//! Managed memory: one address on the host and on every device.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::ranges::RangeAttributes;
use super::{Location, Processor};
use crate::arguments::Arg;
use crate::arguments::DeviceCopy;
use crate::error::{Error, Result};
use crate::handles::Stream;
use crate::handles::{Device, HostVisible};
use crate::memory::Buffer;

/// Elements in managed memory (`cuMemAllocManaged`): a [`Buffer`] that the host can access without copies.
///
/// It never exposes a `&mut Buffer`, through which a buffer that the host cannot access could be swapped in.
/// ```compile_fail,E0596
/// use gridlet_runtime::{Buffer, unified::ManagedBuffer};
/// fn exchange(managed: &mut ManagedBuffer<u32>, plain: &mut Buffer<u32>) {
///     std::mem::swap(&mut **managed, plain)
/// }
/// ```
#[derive(Debug)]
pub struct ManagedBuffer<T: DeviceCopy> {
    buffer: Buffer<T>,
    _visible: HostVisible,
}

impl<T: DeviceCopy> ManagedBuffer<T> {
    /// Allocates `length` uninitialized elements.
    ///
    /// # Errors
    /// [`Error::Cuda`] if the device has too little memory or no managed memory; [`Error::Unusable`].
    pub fn alloc(device: &Device, length: usize) -> Result<ManagedBuffer<T>> {
        let _visible = HostVisible::new(&device.inner);
        Ok(ManagedBuffer { buffer: Buffer::alloc_managed(device, length)?, _visible })
    }

    /// Allocates a buffer and writes the values from the host.
    ///
    /// # Errors
    /// The errors of [`ManagedBuffer::alloc`].
    pub fn from_slice(device: &Device, values: &[T]) -> Result<ManagedBuffer<T>> {
        let mut managed = ManagedBuffer::alloc(device, values.len())?;
        managed.host()?.copy_from_slice(values);
        Ok(managed)
    }

    /// The elements, which the host reads and writes in place. Waits for all earlier launches on the device; the
    /// exclusive borrow prevents new launches that use the buffer.
    ///
    /// # Errors
    /// The errors of [`Stream::synchronize`].
    pub fn host(&mut self) -> Result<&mut [T]> {
        self.buffer.host_slice()
    }

    /// See [`Buffer::copy_from_host`].
    ///
    /// # Errors
    /// The errors of [`Buffer::copy_from_host`].
    pub fn copy_from_host(&mut self, from: &[T]) -> Result<()> {
        self.buffer.copy_from_host(from)
    }

    /// See [`Buffer::copy_from`].
    ///
    /// # Errors
    /// The errors of [`Buffer::copy_from`].
    pub fn copy_from(&mut self, from: &Buffer<T>) -> Result<()> {
        self.buffer.copy_from(from)
    }

    /// See [`Buffer::fill`].
    ///
    /// # Errors
    /// The errors of [`Buffer::fill`].
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.buffer.fill(value)
    }

    /// The whole buffer, for advice and prefetching.
    pub fn whole(&self) -> ManagedRange<'_> {
        let (address, bytes) = (self.buffer.address(), self.buffer.memory().len());
        ManagedRange {
            device: self.buffer.memory().device(),
            address,
            bytes,
            _buffer: self.buffer.memory(),
        }
    }

    /// A range of elements. The driver extends it to whole host pages.
    ///
    /// # Errors
    /// [`Error::Length`] if the range extends past the buffer or ends before it starts.
    pub fn range(&self, elements: Range<usize>) -> Result<ManagedRange<'_>> {
        let size = size_of::<T>() as u64;
        let whole = self.whole();
        if elements.start > elements.end || elements.end > self.buffer.len() {
            let given = (elements.end as u64).saturating_mul(size);
            return Err(Error::Length { expected: whole.bytes, given });
        }
        Ok(ManagedRange {
            address: whole.address + elements.start as u64 * size,
            bytes: elements.len() as u64 * size,
            ..whole
        })
    }
}

impl<T: DeviceCopy> Deref for ManagedBuffer<T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.buffer
    }
}

impl<'a, T: DeviceCopy> From<&'a ManagedBuffer<T>> for Arg<'a> {
    fn from(managed: &'a ManagedBuffer<T>) -> Self {
        Arg::from(&managed.buffer)
    }
}

impl<'a, T: DeviceCopy> From<&'a mut ManagedBuffer<T>> for Arg<'a> {
    fn from(managed: &'a mut ManagedBuffer<T>) -> Self {
        Arg::from(&mut managed.buffer)
    }
}

/// Advice on how managed memory will be used (`CUmem_advise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Mostly read: each processor that reads it gets a copy.
    ReadMostly,
    /// Undoes [`Advice::ReadMostly`].
    UnsetReadMostly,
    /// The preferred location. This does not move the memory: see [`ManagedRange::prefetch`].
    PreferredLocation(Location),
    /// Undoes [`Advice::PreferredLocation`].
    UnsetPreferredLocation,
    /// Keeps the memory mapped for the processor, which then has no page faults on it.
    AccessedBy(Processor),
    /// Undoes [`Advice::AccessedBy`].
    UnsetAccessedBy(Processor),
}

impl Advice {
    /// `CUmem_advise` and the location; the host where the location is ignored.
    pub(super) fn raw(self) -> (u32, Location) {
        match self {
            Advice::ReadMostly => (1, Location::Host),
            Advice::UnsetReadMostly => (2, Location::Host),
            Advice::PreferredLocation(location) => (3, location),
            Advice::UnsetPreferredLocation => (4, Location::Host),
            Advice::AccessedBy(processor) => (5, processor.into()),
            Advice::UnsetAccessedBy(processor) => (6, processor.into()),
        }
    }
}

/// A range of a managed buffer.
#[derive(Clone, Debug)]
pub struct ManagedRange<'a> {
    pub(super) device: Device,
    pub(super) address: u64,
    pub(super) bytes: u64,
    _buffer: &'a crate::memory::DeviceMemory,
}

impl ManagedRange<'_> {
    /// Advises the driver on how the range will be used (`cuMemAdvise_v2`, before CUDA 12.2 `cuMemAdvise`). Does
    /// not change results.
    ///
    /// # Errors
    /// [`Error::MissingCall`] for NUMA nodes before CUDA 12.2; [`Error::Cuda`], for example for a GPU without
    /// concurrent managed access; [`Error::Unusable`].
    pub fn advise(&self, advice: Advice) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let (advice, location) = advice.raw();
        let device = &self.device.inner;
        let entered = device.enter()?;
        // SAFETY: the range lies in managed memory that `self` borrows.
        unsafe { device.handle.advise(self.address, self.bytes, advice, location, &entered) }
    }

    /// Migrates the range to the location of its next use, in stream order (`cuMemPrefetchAsync_v2`, before CUDA
    /// 12.2 `cuMemPrefetchAsync`). Does not wait. Does not change results.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]; the errors of [`ManagedRange::advise`].
    pub fn prefetch(&self, location: Location, stream: &Stream) -> Result<()> {
        let device = &self.device.inner;
        let theirs = &stream.inner.device;
        if !Arc::ptr_eq(theirs, device) {
            return Err(Error::OtherDevice {
                what: "the memory".into(),
                expected: theirs.number,
                given: device.number,
            });
        }
        if self.bytes == 0 {
            return Ok(());
        }
        stream.prefetch(self.address, self.bytes, location)
    }

    /// All attributes in one call (`cuMemRangeGetAttributes`), with at most `processors` of the processors that
    /// access the range.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn attributes(&self, processors: usize) -> Result<RangeAttributes> {
        RangeAttributes::read(self, processors)
    }
}
