//! Unified addressing (driver API, Unified Addressing): managed memory with advice and prefetching, pointer
//! attributes, host memory that devices can access, and peers.
//!
//! On the CPU device, host and device memory are the same: managed and host buffers work, advice and prefetching
//! do nothing, and queries that only a driver can answer return [`Error::NotOnCpu`](crate::Error::NotOnCpu).

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

use crate::handles::Device;
use crate::info::DeviceKind;
pub use crate::location::{Location, Processor};

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

#[cfg(test)]
mod tests;
