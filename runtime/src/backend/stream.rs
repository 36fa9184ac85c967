//! Streams and events on both kinds of device.

use std::ffi::c_void;
use std::time::Duration;

use gridlet_artifact::LaunchConfig;
use gridlet_cpu::CpuStream;

use super::{Entered, KernelHandle, ResourceHandle, Waited, cpu, cuda, mixed};
use crate::error::{Error, Result};

/// A stream. Only [`StreamHandle::destroy`] destroys it.
#[derive(Debug)]
pub(crate) enum StreamHandle {
    Cuda(cuda::CudaStream),
    Cpu(CpuStream),
}

impl StreamHandle {
    /// Launches a kernel.
    ///
    /// # Safety
    /// The contract of [`super`]; `parameters` must match the kernel's. The stream's own context must be entered:
    /// its partition's, if it has one.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &KernelHandle,
        config: &LaunchConfig,
        parameters: &mut [u8],
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match (self, kernel) {
            (StreamHandle::Cuda(stream), KernelHandle::Cuda(kernel)) => {
                // SAFETY: passed on to the caller.
                unsafe { stream.launch(kernel, config, parameters) }
            }
            (StreamHandle::Cpu(stream), KernelHandle::Cpu(kernel)) => {
                cpu::launch(stream, kernel, config, parameters)
            }
            _ => Err(mixed()),
        }
    }

    /// Zeroes memory at this point of the stream.
    ///
    /// # Safety
    /// The contract of [`super`].
    pub(crate) unsafe fn clear(
        &self,
        address: u64,
        bytes: u64,
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            // SAFETY: passed on to the caller.
            StreamHandle::Cuda(stream) => unsafe { stream.clear(address, bytes) },
            StreamHandle::Cpu(_) => Err(Error::NotOnCpu { what: "resident launches" }),
        }
    }

    /// The id of the capture that records the stream's work into a graph, if there is one.
    pub(crate) fn capture(&self, _entered: &Entered<'_>) -> Result<Option<u64>> {
        match self {
            StreamHandle::Cuda(stream) => stream.capture(),
            StreamHandle::Cpu(_) => Ok(None),
        }
    }

    /// Records an event of the same device at this point of the stream.
    pub(crate) fn record(&self, event: &EventHandle, _entered: &Entered<'_>) -> Result<()> {
        match (self, event) {
            (StreamHandle::Cuda(stream), EventHandle::Cuda(event)) => stream.record(event),
            (StreamHandle::Cpu(stream), EventHandle::Cpu(event)) => {
                event.record([stream]);
                Ok(())
            }
            _ => Err(mixed()),
        }
    }

    /// Makes work launched from now on wait for an event of the same kind of device.
    pub(crate) fn wait_event(&self, event: &EventHandle, _entered: &Entered<'_>) -> Result<()> {
        match (self, event) {
            (StreamHandle::Cuda(stream), EventHandle::Cuda(event)) => stream.wait_event(event),
            (StreamHandle::Cpu(stream), EventHandle::Cpu(event)) => {
                stream.wait_for(&event.marks());
                Ok(())
            }
            _ => Err(mixed()),
        }
    }

    /// The driver's handle; `None` on the CPU.
    pub(crate) fn raw(&self) -> Option<*mut c_void> {
        match self {
            StreamHandle::Cuda(stream) => Some(stream.raw()),
            StreamHandle::Cpu(_) => None,
        }
    }

    /// The stream's priority.
    pub(crate) fn priority(&self, _entered: &Entered<'_>) -> Result<i32> {
        match self {
            StreamHandle::Cuda(stream) => stream.priority(),
            StreamHandle::Cpu(_) => Ok(0),
        }
    }

    /// The SMs that the stream's kernels run on; `workers` workers on the CPU.
    pub(crate) fn sms(&self, workers: u32, _entered: &Entered<'_>) -> Result<ResourceHandle> {
        match self {
            StreamHandle::Cuda(stream) => stream.sms(),
            StreamHandle::Cpu(_) => Ok(ResourceHandle::Cpu(workers)),
        }
    }

    /// Waits for all launched work, at most `timeout`.
    pub(crate) fn wait(&self, timeout: Duration, _entered: &Entered<'_>) -> Result<Waited> {
        match self {
            StreamHandle::Cuda(stream) => stream.wait(timeout).map(Waited::from_done),
            StreamHandle::Cpu(stream) => cpu::wait(stream, timeout),
        }
    }

    /// Destroys the stream.
    ///
    /// # Safety
    /// The contract of [`super`]; the stream may not be used again.
    pub(crate) unsafe fn destroy(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            StreamHandle::Cuda(stream) => unsafe { stream.destroy() },
            // Dropping it suffices.
            StreamHandle::Cpu(_) => {}
        }
    }
}

/// An event. Only [`EventHandle::destroy`] destroys it.
#[derive(Debug)]
pub(crate) enum EventHandle {
    Cuda(cuda::CudaEvent),
    Cpu(cpu::CpuEvent),
}

impl EventHandle {
    /// The driver's handle; `None` on the CPU.
    pub(crate) fn raw(&self) -> Option<*mut c_void> {
        match self {
            EventHandle::Cuda(event) => Some(event.raw()),
            EventHandle::Cpu(_) => None,
        }
    }

    /// Waits for the work before the event, at most `timeout`.
    pub(crate) fn wait(&self, timeout: Duration, _entered: &Entered<'_>) -> Result<Waited> {
        match self {
            EventHandle::Cuda(event) => event.wait(timeout).map(Waited::from_done),
            EventHandle::Cpu(event) => Ok(event.wait(timeout)),
        }
    }

    /// Milliseconds from this event to another one of the same kind of device; both must be done.
    pub(crate) fn elapsed_ms(&self, later: &EventHandle, _entered: &Entered<'_>) -> Result<f32> {
        match (self, later) {
            (EventHandle::Cuda(event), EventHandle::Cuda(later)) => event.elapsed_ms(later),
            (EventHandle::Cpu(event), EventHandle::Cpu(later)) => event.elapsed_ms(later),
            _ => Err(mixed()),
        }
    }

    /// Destroys the event.
    ///
    /// # Safety
    /// The contract of [`super`]; the event may not be used again.
    pub(crate) unsafe fn destroy(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            EventHandle::Cuda(event) => unsafe { event.destroy() },
            EventHandle::Cpu(_) => {}
        }
    }
}
