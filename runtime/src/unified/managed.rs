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

/// Elements in managed memory (`cuMemAllocManaged`): a [`Buffer`] that the host reaches without copies.
///
/// It gives no `&mut Buffer`: for that a buffer could be exchanged whose memory the host does not reach.
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
    /// Allocates `length` elements; what they are is not defined.
    ///
    /// # Errors
    /// [`Error::Cuda`] if there is not so much memory or the device has no managed memory; [`Error::Unusable`].
    pub fn alloc(device: &Device, length: usize) -> Result<ManagedBuffer<T>> {
        let _visible = HostVisible::new(&device.inner);
        Ok(ManagedBuffer { buffer: Buffer::alloc_managed(device, length)?, _visible })
    }

    /// Allocates, and writes the values from the host.
    ///
    /// # Errors
    /// As [`ManagedBuffer::alloc`].
    pub fn from_slice(device: &Device, values: &[T]) -> Result<ManagedBuffer<T>> {
        let mut managed = ManagedBuffer::alloc(device, values.len())?;
        managed.host()?.copy_from_slice(values);
        Ok(managed)
    }

    /// The elements, for the host to read and write where they are. Waits for all launches on the device before,
    /// and borrows the buffer, so that none that uses it is made meanwhile.
    ///
    /// # Errors
    /// Those of [`Stream::synchronize`].
    pub fn host(&mut self) -> Result<&mut [T]> {
        self.buffer.host_slice()
    }

    /// As [`Buffer::copy_from_host`].
    ///
    /// # Errors
    /// As there.
    pub fn copy_from_host(&mut self, from: &[T]) -> Result<()> {
        self.buffer.copy_from_host(from)
    }

    /// As [`Buffer::copy_from`].
    ///
    /// # Errors
    /// As there.
    pub fn copy_from(&mut self, from: &Buffer<T>) -> Result<()> {
        self.buffer.copy_from(from)
    }

    /// As [`Buffer::fill`].
    ///
    /// # Errors
    /// As there.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.buffer.fill(value)
    }

    /// All of it, for advice and prefetching.
    pub fn whole(&self) -> ManagedRange<'_> {
        let (address, bytes) = (self.buffer.address(), self.buffer.memory().len());
        ManagedRange {
            device: self.buffer.memory().device(),
            address,
            bytes,
            _buffer: self.buffer.memory(),
        }
    }

    /// Some of its elements. The driver widens a range to whole pages of the host.
    ///
    /// # Errors
    /// [`Error::Length`] if the buffer is shorter, or the range ends before it starts.
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

/// How managed memory will be used (`CUmem_advise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Mostly read: each processor that reads gets a copy.
    ReadMostly,
    /// Undoes [`Advice::ReadMostly`].
    UnsetReadMostly,
    /// Where it should be. Not where it is: see [`ManagedRange::prefetch`].
    PreferredLocation(Location),
    /// Undoes [`Advice::PreferredLocation`].
    UnsetPreferredLocation,
    /// Stays mapped for that processor, which so meets no page faults.
    AccessedBy(Processor),
    /// Undoes [`Advice::AccessedBy`].
    UnsetAccessedBy(Processor),
}

impl Advice {
    /// `CUmem_advise`, and the location; the host's where it is ignored.
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

/// Part of a managed buffer.
#[derive(Clone, Debug)]
pub struct ManagedRange<'a> {
    pub(super) device: Device,
    pub(super) address: u64,
    pub(super) bytes: u64,
    _buffer: &'a crate::memory::DeviceMemory,
}

impl ManagedRange<'_> {
    /// Tells the driver how it will be used (`cuMemAdvise_v2`, before CUDA 12.2 `cuMemAdvise`). Changes no results.
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

    /// Moves it to where it will be used next, in the order of the stream (`cuMemPrefetchAsync_v2`, before CUDA 12.2
    /// `cuMemPrefetchAsync`). Does not wait. Changes no results.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]; as [`ManagedRange::advise`].
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

    /// All attributes, in one call (`cuMemRangeGetAttributes`). At most `processors` of those that access it.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn attributes(&self, processors: usize) -> Result<RangeAttributes> {
        RangeAttributes::read(self, processors)
    }
}
