//! Unified addressing on both kinds of device.

use std::ffi::c_void;

use super::{DeviceHandle, Entered, StreamHandle, mixed};
use crate::driver::unified as driver;
use crate::driver::unified::{DEVICE_CPU, DEVICE_INVALID, MemoryLocation, location};
use crate::error::{Error, Result};
use crate::location::{Location, Processor};

/// The device number with which the driver says that no device applies.
pub(crate) const NO_DEVICE: i32 = DEVICE_INVALID;

impl DeviceHandle {
    /// Allocates at least one byte of managed memory, initialized; freed like other memory of the device.
    pub(crate) fn allocate_managed(&self, bytes: u64, entered: &Entered<'_>) -> Result<u64> {
        match self {
            DeviceHandle::Cuda(_) => {
                let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
                // SAFETY: the device was entered.
                Ok(unsafe { driver::allocate_managed(size) }?)
            }
            DeviceHandle::Cpu(_) => {
                let address = self.allocate(bytes, entered)?;
                // The host gets references to the elements, so the memory must be initialized.
                // SAFETY: this many bytes were just allocated.
                unsafe { (address as *mut u8).write_bytes(0, bytes as usize) };
                Ok(address)
            }
        }
    }

    /// Gives the driver a memory hint; does nothing on the CPU.
    ///
    /// # Safety
    /// The contract of [`super`]; the range must be managed memory.
    pub(crate) unsafe fn advise(
        &self,
        address: u64,
        bytes: u64,
        advice: u32,
        location: Location,
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            DeviceHandle::Cuda(_) => {
                // SAFETY: passed on to the caller.
                Ok(unsafe { driver::advise(address, bytes as usize, advice, location.raw()) }?)
            }
            DeviceHandle::Cpu(_) => Ok(()),
        }
    }

    /// # Safety
    /// Same as [`DeviceHandle::advise`].
    pub(crate) unsafe fn range_attribute(
        &self,
        address: u64,
        bytes: u64,
        attribute: u32,
        data: &mut [i32],
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            DeviceHandle::Cuda(_) => {
                // SAFETY: passed on to the caller.
                Ok(unsafe { driver::range_attribute(address, bytes as usize, attribute, data) }?)
            }
            DeviceHandle::Cpu(_) => Err(Error::NotOnCpu { what: "attributes of memory ranges" }),
        }
    }

    /// # Safety
    /// Same as [`DeviceHandle::advise`].
    pub(crate) unsafe fn range_attributes(
        &self,
        address: u64,
        bytes: u64,
        attributes: &mut [(u32, &mut [i32])],
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            DeviceHandle::Cuda(_) => {
                // SAFETY: passed on to the caller.
                Ok(unsafe { driver::range_attributes(address, bytes as usize, attributes) }?)
            }
            DeviceHandle::Cpu(_) => Err(Error::NotOnCpu { what: "attributes of memory ranges" }),
        }
    }

    /// # Safety
    /// `T` must be the attribute's type, and every bit pattern a value of it.
    pub(crate) unsafe fn pointer_attribute<T: Copy>(
        &self,
        address: u64,
        attribute: u32,
        empty: T,
        _entered: &Entered<'_>,
    ) -> Result<T> {
        match self {
            DeviceHandle::Cuda(_) => {
                // SAFETY: passed on to the caller; the driver accepts any address.
                Ok(unsafe { driver::pointer_attribute(address, attribute, empty) }?)
            }
            DeviceHandle::Cpu(_) => Err(Error::NotOnCpu { what: "attributes of pointers" }),
        }
    }

    /// # Safety
    /// Each pointer must point to a live value of its attribute's type.
    pub(crate) unsafe fn pointer_attributes(
        &self,
        address: u64,
        attributes: &mut [(u32, *mut c_void)],
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            DeviceHandle::Cuda(_) => {
                // SAFETY: passed on to the caller; the driver accepts any address.
                Ok(unsafe { driver::pointer_attributes(address, attributes) }?)
            }
            DeviceHandle::Cpu(_) => Err(Error::NotOnCpu { what: "attributes of pointers" }),
        }
    }

    pub(crate) fn set_pointer_attribute(
        &self,
        address: u64,
        attribute: u32,
        value: u32,
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            DeviceHandle::Cuda(_) => {
                // SAFETY: the driver accepts any address, and reports an unknown one.
                Ok(unsafe { driver::set_pointer_attribute(address, attribute, value) }?)
            }
            DeviceHandle::Cpu(_) => Err(Error::NotOnCpu { what: "attributes of pointers" }),
        }
    }

    /// Allocates at least one byte of host memory and returns its address on the host and on the device.
    pub(crate) fn allocate_host(
        &self,
        bytes: usize,
        write_combined: bool,
        _entered: &Entered<'_>,
    ) -> Result<(*mut u8, u64)> {
        match self {
            DeviceHandle::Cuda(_) => {
                // SAFETY: the device was entered, and the second call gets the memory from the first.
                unsafe {
                    let host = driver::allocate_host(bytes, write_combined)?;
                    let address = driver::host_device_address(host).inspect_err(|_| {
                        let _ = driver::free_host(host);
                    })?;
                    Ok((host.cast(), address))
                }
            }
            // All memory is alike on the CPU, and the checker tracks device memory.
            DeviceHandle::Cpu(device) => {
                let address = device.allocate(bytes as u64)?;
                Ok((address as *mut u8, address))
            }
        }
    }

    /// # Safety
    /// The contract of [`super`]; the memory must come from [`DeviceHandle::allocate_host`], and nothing may use
    /// it.
    pub(crate) unsafe fn free_host(&self, host: *mut u8, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller. An error means that the memory is gone already.
            DeviceHandle::Cuda(_) => drop(unsafe { driver::free_host(host.cast()) }),
            // SAFETY: passed on to the caller.
            DeviceHandle::Cpu(device) => unsafe { device.free(host as u64) },
        }
    }

    /// Tells a checking device that the host may have written this many bytes of memory that it sees.
    pub(crate) fn host_wrote(&self, address: u64, bytes: usize) {
        if let DeviceHandle::Cpu(device) = self {
            device.host_wrote(address, bytes);
        }
    }

    /// Tells a checking device that kernels may use this memory of other code, which counts as written.
    pub(crate) fn lend(&self, address: u64, bytes: u64) {
        if let DeviceHandle::Cpu(device) = self {
            device.lend(address as *const u8, bytes as usize);
        }
    }

    /// Ends a loan from [`DeviceHandle::lend`].
    pub(crate) fn take_back(&self, address: u64, bytes: u64) {
        if let DeviceHandle::Cpu(device) = self {
            device.take_back(address as *const u8, bytes as usize);
        }
    }

    /// # Safety
    /// Same as [`DeviceHandle::free_host`], except that the memory may be in use.
    pub(crate) unsafe fn is_write_combined(
        &self,
        host: *mut u8,
        _entered: &Entered<'_>,
    ) -> Result<bool> {
        match self {
            // SAFETY: passed on to the caller.
            DeviceHandle::Cuda(_) => Ok(unsafe { driver::is_write_combined(host.cast()) }?),
            DeviceHandle::Cpu(_) => Ok(false),
        }
    }

    /// Registers host memory and returns its address on the device.
    ///
    /// # Safety
    /// The contract of [`super`]; the memory must live until [`DeviceHandle::unregister_host`].
    pub(crate) unsafe fn register_host(
        &self,
        host: *mut u8,
        bytes: usize,
        read_only: bool,
        _entered: &Entered<'_>,
    ) -> Result<u64> {
        match self {
            // SAFETY: passed on to the caller; the second call gets the memory that the first registered.
            DeviceHandle::Cuda(_) => unsafe {
                driver::register_host(host.cast(), bytes, read_only)?;
                let address = driver::host_device_address(host.cast()).inspect_err(|_| {
                    let _ = driver::unregister_host(host.cast());
                })?;
                Ok(address)
            },
            DeviceHandle::Cpu(device) => {
                device.lend(host, bytes);
                Ok(host as u64)
            }
        }
    }

    /// # Safety
    /// The contract of [`super`]; the memory was registered with this length, and nothing may use its device
    /// address any more.
    pub(crate) unsafe fn unregister_host(
        &self,
        host: *mut u8,
        bytes: usize,
        _entered: &Entered<'_>,
    ) {
        match self {
            // SAFETY: passed on to the caller. An error means that the context is gone.
            DeviceHandle::Cuda(_) => drop(unsafe { driver::unregister_host(host.cast()) }),
            DeviceHandle::Cpu(device) => device.take_back(host, bytes),
        }
    }

    /// Whether kernels of this device can be given access to the memory of `peer`.
    pub(crate) fn can_access(&self, peer: &DeviceHandle) -> Result<bool> {
        match (self, peer) {
            (DeviceHandle::Cuda(device), DeviceHandle::Cuda(peer)) => device.can_access(peer),
            _ => Err(mixed()),
        }
    }

    pub(crate) fn peer_attribute(&self, peer: &DeviceHandle, attribute: u32) -> Result<i32> {
        match (self, peer) {
            (DeviceHandle::Cuda(device), DeviceHandle::Cuda(peer)) => {
                device.peer_attribute(peer, attribute)
            }
            _ => Err(mixed()),
        }
    }

    pub(crate) fn enable_peer(&self, peer: &DeviceHandle, _entered: &Entered<'_>) -> Result<()> {
        match (self, peer) {
            (DeviceHandle::Cuda(_), DeviceHandle::Cuda(peer)) => peer.open_to_current(),
            _ => Err(mixed()),
        }
    }

    pub(crate) fn disable_peer(&self, peer: &DeviceHandle, _entered: &Entered<'_>) -> Result<()> {
        match (self, peer) {
            (DeviceHandle::Cuda(_), DeviceHandle::Cuda(peer)) => peer.close_to_current(),
            _ => Err(mixed()),
        }
    }
}

impl StreamHandle {
    /// Starts migrating managed memory; does nothing on the CPU.
    ///
    /// # Safety
    /// The contract of [`super`]; the range must be managed memory.
    pub(crate) unsafe fn prefetch(
        &self,
        address: u64,
        bytes: u64,
        location: Location,
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            // SAFETY: passed on to the caller.
            StreamHandle::Cuda(stream) => unsafe {
                stream.prefetch(address, bytes, location.raw())
            },
            StreamHandle::Cpu(_) => Ok(()),
        }
    }
}

/// Conversions to and from the driver's numbers.
impl Location {
    pub(super) fn raw(self) -> MemoryLocation {
        let id = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        match self {
            Location::Device(ordinal) => MemoryLocation { kind: location::DEVICE, id: id(ordinal) },
            Location::Host => MemoryLocation { kind: location::HOST, id: 0 },
            Location::HostNuma(node) => MemoryLocation { kind: location::HOST_NUMA, id: id(node) },
            Location::HostNumaCurrent => {
                MemoryLocation { kind: location::HOST_NUMA_CURRENT, id: 0 }
            }
        }
    }

    /// From a kind and an id, as attributes report them; `None` for `CU_MEM_LOCATION_TYPE_INVALID`.
    pub(crate) fn from_raw(kind: i32, id: i32) -> Option<Location> {
        let number = u32::try_from(id).unwrap_or(0);
        match u32::try_from(kind).ok()? {
            location::DEVICE => Some(Location::Device(number)),
            location::HOST => Some(Location::Host),
            location::HOST_NUMA => Some(Location::HostNuma(number)),
            location::HOST_NUMA_CURRENT => Some(Location::HostNumaCurrent),
            _ => None,
        }
    }
}

impl Processor {
    /// From a device number, as attributes report it; `None` for `CU_DEVICE_INVALID`.
    pub(crate) fn from_raw(device: i32) -> Option<Processor> {
        match device {
            DEVICE_CPU => Some(Processor::Host),
            DEVICE_INVALID => None,
            number => u32::try_from(number).ok().map(Processor::Device),
        }
    }
}

#[cfg(test)]
mod tests;
