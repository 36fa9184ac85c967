//! Partitions on both kinds of device.

use std::ffi::c_void;

use gridlet_cpu::{CpuPartition, CpuStream};

use super::ResourceKind;
use super::{
    DeviceHandle, Entered, EventHandle, ResourceHandle, StreamHandle, cpu_resource, cuda, mixed,
};
use crate::error::{Error, Result};

/// A partition of a device. Only [`PartitionHandle::retire`] releases it.
#[derive(Debug)]
pub(crate) enum PartitionHandle {
    Cuda(cuda::CudaPartition),
    Cpu(CpuPartition),
}

impl PartitionHandle {
    /// Makes the partition's handles usable on this thread, and on no other.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        match self {
            PartitionHandle::Cuda(partition) => partition.enter().map(Entered::Cuda),
            PartitionHandle::Cpu(_) => Ok(Entered::Cpu),
        }
    }

    /// Same, until the host program drops the value; such values may be dropped in any order.
    pub(crate) fn hold(&self) -> Result<Entered<'_>> {
        match self {
            PartitionHandle::Cuda(partition) => partition.hold().map(Entered::Cuda),
            PartitionHandle::Cpu(_) => Ok(Entered::Cpu),
        }
    }

    /// A number that no other live green context of the process has.
    pub(crate) fn id(&self, _entered: &Entered<'_>) -> Result<u64> {
        match self {
            PartitionHandle::Cuda(partition) => partition.id(),
            PartitionHandle::Cpu(_) => Err(Error::NotOnCpu { what: "green context ids" }),
        }
    }

    /// The resources that the partition was created with; on the CPU, `workers` workers.
    pub(crate) fn resource(
        &self,
        kind: ResourceKind,
        workers: u32,
        _entered: &Entered<'_>,
    ) -> Result<ResourceHandle> {
        match self {
            PartitionHandle::Cuda(partition) => partition.resource(kind),
            PartitionHandle::Cpu(_) => cpu_resource(kind, workers),
        }
    }

    /// Records an event after everything submitted to the partition; `streams` are its streams on the CPU.
    pub(crate) fn record(
        &self,
        event: &EventHandle,
        streams: &[&StreamHandle],
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match (self, event) {
            (PartitionHandle::Cuda(partition), EventHandle::Cuda(event)) => partition.record(event),
            (PartitionHandle::Cpu(_), EventHandle::Cpu(event)) => {
                event.record(cpu_streams(streams));
                Ok(())
            }
            _ => Err(mixed()),
        }
    }

    /// Makes everything submitted to the partition from now on wait for an event; `streams` are its streams on the
    /// CPU.
    pub(crate) fn wait_event(
        &self,
        event: &EventHandle,
        streams: &[&StreamHandle],
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match (self, event) {
            (PartitionHandle::Cuda(partition), EventHandle::Cuda(event)) => {
                partition.wait_event(event)
            }
            (PartitionHandle::Cpu(partition), EventHandle::Cpu(event)) => {
                partition.wait_for(cpu_streams(streams), &event.marks());
                Ok(())
            }
            _ => Err(mixed()),
        }
    }

    /// Whether the stream belongs to this partition, according to the device.
    pub(crate) fn owns(&self, stream: &StreamHandle, _entered: &Entered<'_>) -> Result<bool> {
        match (self, stream) {
            (PartitionHandle::Cuda(partition), StreamHandle::Cuda(stream)) => {
                partition.owns(stream)
            }
            (PartitionHandle::Cpu(_), StreamHandle::Cpu(_)) => Ok(true),
            _ => Ok(false),
        }
    }

    /// The driver's handle; `None` on the CPU.
    pub(crate) fn raw(&self) -> Option<*mut c_void> {
        match self {
            PartitionHandle::Cuda(partition) => Some(partition.raw()),
            PartitionHandle::Cpu(_) => None,
        }
    }

    /// The driver's context with the partition's resources, as an address; `None` on the CPU.
    pub(crate) fn raw_context(&self) -> Option<*mut c_void> {
        match self {
            PartitionHandle::Cuda(partition) => Some(partition.context().cast()),
            PartitionHandle::Cpu(_) => None,
        }
    }

    /// Releases the partition.
    ///
    /// # Safety
    /// The contract of [`super`]; its streams must be destroyed, and it may not be used again.
    pub(crate) unsafe fn retire(&self, device: &DeviceHandle, _entered: &Entered<'_>) {
        if let (PartitionHandle::Cuda(partition), DeviceHandle::Cuda(device)) = (self, device) {
            // SAFETY: passed on to the caller.
            unsafe { partition.retire(device) };
        }
    }
}

fn cpu_streams<'a>(streams: &[&'a StreamHandle]) -> impl Iterator<Item = &'a CpuStream> {
    streams.iter().filter_map(|stream| match stream {
        StreamHandle::Cpu(stream) => Some(stream),
        StreamHandle::Cuda(_) => None,
    })
}
