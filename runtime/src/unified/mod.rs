//! Unified addressing (driver API, Unified Addressing): managed memory with advice and prefetching, what the driver
//! knows of a pointer, host memory that devices see, and peers.
//!
//! On the CPU device host and device memory are the same: managed and host buffers work, advice and prefetching do
//! nothing, and what only a driver can tell is [`Error::NotOnCpu`](crate::Error::NotOnCpu).

mod host;
mod managed;
mod peers;
mod pointers;
mod ranges;

pub use host::{HostBuffer, HostFlags, RegisterFlags, RegisteredMemory};
pub use managed::{Advice, ManagedBuffer, ManagedRange};
pub use peers::PeerAttributes;
pub use pointers::{Access, HandleTypes, MemoryType, P2pTokens, PointerInfo, PointerQuery};
pub use ranges::RangeAttributes;

use crate::device::Device;
use crate::driver::unified::{DEVICE_CPU, DEVICE_INVALID, MemoryLocation, location};
use crate::info::DeviceKind;

/// Where managed memory can be (`CUmemLocation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// The memory of the GPU of that number.
    Device(u32),
    /// The host's memory.
    Host,
    /// That NUMA node of the host. Since CUDA 12.2.
    HostNuma(u32),
    /// The host's NUMA node nearest to the calling thread. Since CUDA 12.2.
    HostNumaCurrent,
}

/// What accesses memory: advice on access takes no NUMA nodes ("All other location types are invalid").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Processor {
    /// The host.
    Host,
    /// The GPU of that number.
    Device(u32),
}

impl From<Processor> for Location {
    fn from(processor: Processor) -> Location {
        match processor {
            Processor::Host => Location::Host,
            Processor::Device(ordinal) => Location::Device(ordinal),
        }
    }
}

impl From<&Device> for Processor {
    /// The CPU device is the host.
    fn from(device: &Device) -> Processor {
        match device.info().kind {
            DeviceKind::Cuda => Processor::Device(device.info().ordinal),
            DeviceKind::Cpu => Processor::Host,
        }
    }
}

impl From<&Device> for Location {
    fn from(device: &Device) -> Location {
        Processor::from(device).into()
    }
}

impl Location {
    fn raw(self) -> MemoryLocation {
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

    /// From a kind and an id as attributes give them; `None` for `CU_MEM_LOCATION_TYPE_INVALID`.
    fn from_raw(kind: i32, id: i32) -> Option<Location> {
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
    /// From a device number as attributes give it; `None` for `CU_DEVICE_INVALID`.
    fn from_raw(device: i32) -> Option<Processor> {
        match device {
            DEVICE_CPU => Some(Processor::Host),
            DEVICE_INVALID => None,
            number => u32::try_from(number).ok().map(Processor::Device),
        }
    }
}

#[cfg(test)]
mod tests;
