//! Hints for fixing an error, unless its message already contains one.

use gridlet_cpu::{CpuFault, FaultKind};

use super::Error;

impl Error {
    /// How to fix the error, as a sentence; `None` if the message says it or no general advice exists.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::NoDriver { .. } => Some(
                "`gridlet doctor` shows the libraries that were tried; the CPU device needs no driver",
            ),
            Error::DriverTooOld { .. } => Some("update the NVIDIA driver, or use the CPU device"),
            Error::MissingCall { .. } | Error::MissingFeature { .. } => {
                Some("update the NVIDIA driver, or avoid the feature")
            }
            Error::NotOnCpu { .. } => Some("this needs a GPU: open one with `Device::open`"),
            Error::NoDevice { found: 0, .. } => Some(
                "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES; the CPU device needs no GPU",
            ),
            Error::NoDevice { .. } => Some(
                "`gridlet device` lists the GPUs; CUDA_VISIBLE_DEVICES hides and renumbers them",
            ),
            Error::Cuda(error) => call(error.code),
            Error::Fault(fault) => Some(fault_hint(fault.code)),
            Error::Artifact(error) => error.problem.hint(),
            Error::NoImage { .. } => {
                Some("build the program for this device as well: `gridlet build --arch`")
            }
            Error::Launch { problem, .. } => problem.hint(),
            Error::NotRecorded => Some("call `Stream::record` before reading the event's time"),
            Error::NotChecked { .. } => Some("build it with `gridlet build --arch cpu --check`"),
            Error::WouldBlock { .. } => {
                Some("wait for the stream, or launch with `Stream::launch`, which waits by itself")
            }
            Error::ParameterMismatch { .. } => Some(
                "build the artifact again: its image and its manifest come from different programs",
            ),
            Error::LaunchMemory { .. } => {
                Some("set a larger size with `Device::set_launch_memory`; the default is 64 MiB")
            }
            Error::LimitTooLate { .. } => {
                Some("set limits right after `Device::open`, before any launch")
            }
            Error::OtherDevice { .. } => {
                Some("load programs and allocate memory on the device that they are used with")
            }
            Error::TimedOut { is_cpu, stopped, .. } => Some(time_out(*is_cpu, stopped.as_deref())),
            Error::Unusable { .. } | Error::NotRecovered { .. } => {
                Some("start a new process: only that makes the device usable again")
            }
            Error::CpuImage { .. } => Some(
                "an image runs only on the kind of machine that it was built for: build it again here",
            ),
            Error::CpuThreads { .. } => Some(
                "`CpuConfig::threads` or GRIDLET_CPU_THREADS sets how many threads it starts, from 1 on",
            ),
            Error::CpuMemory { .. } => Some("free buffers, or use smaller ones"),
            Error::Foreign { .. } => None,
            Error::LostLaunches(lost) if lost.full_pool.is_some() => None,
            Error::LostLaunches(_) => {
                Some("`try launch` gives the program the status of each launch")
            }
            Error::CpuFault(fault) => cpu_fault(fault),
            // The message lists the choices or names the expected value.
            Error::Resource(_)
            | Error::DeviceName { .. }
            | Error::UnknownKernel { .. }
            | Error::UnknownGlobal { .. }
            | Error::GlobalType { .. }
            | Error::ArgumentCount { .. }
            | Error::Argument { .. }
            | Error::Partition { .. }
            | Error::Length { .. }
            | Error::Broken { .. }
            | Error::HostMemoryInUse { .. }
            | Error::Checked(_) => None,
        }
    }
}

/// The hint for a `CUresult` that leaves the context usable (driver API, `CUresult`).
fn call(code: i32) -> Option<&'static str> {
    match code {
        2 => Some(
            "free buffers, lower the limits that take device memory, or check with `nvidia-smi` which processes use it",
        ),
        3 | 4 => Some(
            "the driver is shutting down: use devices before the process ends, not in exit handlers",
        ),
        46 => Some("the GPU is busy or in exclusive mode: `nvidia-smi` shows by whom"),
        100 | 101 => Some("the GPU is gone: look at `nvidia-smi` and at the system's log"),
        200 | 209 => Some("the image is not for this GPU: build the program for its architecture"),
        218 => Some("the PTX is wrong, or the driver is too old for it: the log says which"),
        222 => Some(
            "the driver is older than the toolkit that made the PTX: update it, or build a cubin for this GPU",
        ),
        304 => {
            Some("the operating system refused: look at its log, and at the limits of the process")
        }
        701 => Some(
            "use smaller blocks or less shared memory: an SM does not have that many registers",
        ),
        802 | 803 => Some(
            "the system is not ready for CUDA: the driver and its services are of different versions or still starting",
        ),
        804 => Some(
            "this GPU does not support the forward-compatibility driver: use its regular driver",
        ),
        805..=809 => Some("CUDA's multi-process service (MPS) refused: look at its log"),
        _ => None,
    }
}

fn time_out(is_cpu: bool, stopped: Option<&CpuFault>) -> &'static str {
    match (is_cpu, stopped) {
        (false, _) => {
            "give the wait more time if the work is only slow; a run with checks on the CPU device may find a grid that never ends"
        }
        (true, Some(fault)) if fault.location.is_some() => {
            "give the wait more time if the work is only slow; otherwise look for a loop that never ends around that line"
        }
        (true, Some(fault)) if !fault.is_checked => {
            "give the wait more time if the work is only slow; a run with checks names the last line of a loop that never ends"
        }
        (true, _) => "give the wait more time if the work is only slow",
    }
}

/// The hint for a kernel that failed on the CPU device.
fn cpu_fault(fault: &CpuFault) -> Option<&'static str> {
    match fault.kind {
        FaultKind::Access | FaultKind::Bus | FaultKind::InvalidFree | FaultKind::Deadlock
            if !fault.is_checked =>
        {
            Some("run it with checks on: they name the access or the wait that is wrong")
        }
        FaultKind::StackOverflow => Some("recurse less, or use smaller local variables"),
        FaultKind::NoMemory => Some("use smaller blocks, or less shared memory"),
        // The message names the line, or checks would find no more.
        _ => None,
    }
}

/// The hint for a `CUresult` that loses the context.
fn fault_hint(code: i32) -> &'static str {
    match code {
        214 | 220 | 226 => "the hardware failed: look at `nvidia-smi -q` and at the system's log",
        702 => "launch shorter grids, or use a GPU that drives no display",
        714 => "give threads a larger stack with `Limit::StackBytes`, or recurse less",
        _ => {
            "run the program on the CPU device with checks on, or under `compute-sanitizer`: both name the line"
        }
    }
}

#[cfg(test)]
mod tests;
