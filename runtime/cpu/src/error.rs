//! Errors of the CPU device.

use gridlet_artifact::LaunchProblem;

use crate::fault::CpuFault;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the CPU device. Not `non_exhaustive`: `gridlet-runtime` converts every variant.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// An image cannot be loaded.
    #[error("the CPU image cannot be loaded: {reason}")]
    Image {
        /// The loader's message, or the defect in the image.
        reason: String,
    },
    /// The device cannot start its worker threads.
    #[error("the CPU device cannot start: {reason}")]
    Threads {
        /// The reason.
        reason: String,
    },
    /// The system is out of memory.
    #[error("cannot allocate {bytes} bytes on the CPU device")]
    Memory {
        /// Number of bytes requested.
        bytes: u64,
    },
    /// A grid or block is too large.
    #[error("kernel `{kernel}`: {problem}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// The rule that the launch violates.
        problem: LaunchProblem,
    },
    /// The size of a parameter buffer is not the kernel's.
    #[error("kernel `{kernel}` takes {expected} bytes of parameters, but {given} were given")]
    ParameterBytes {
        /// The kernel.
        kernel: String,
        /// Size of the kernel's parameters in bytes.
        expected: u32,
        /// Size of the buffer in bytes.
        given: usize,
    },
    /// A stream did not finish in time. The device stops its running grids.
    #[error("not finished after {seconds} s: a stream of the CPU device")]
    TimedOut {
        /// The timeout in seconds.
        seconds: f64,
        /// The first block that was stopped, of kind [`FaultKind::Cancelled`]; `None` if none was running, or it did not end.
        ///
        /// [`FaultKind::Cancelled`]: crate::FaultKind::Cancelled
        stopped: Option<Box<CpuFault>>,
    },
    /// A grid failed. The device remains usable.
    #[error(transparent)]
    Fault(#[from] Box<CpuFault>),
}
