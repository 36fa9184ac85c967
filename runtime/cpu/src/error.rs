//! The errors of the CPU device.

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
        /// The message of the system's loader, or the flaw in the image.
        reason: String,
    },
    /// The device cannot start its worker threads.
    #[error("the CPU device cannot start: {reason}")]
    Threads {
        /// Why not.
        reason: String,
    },
    /// The host has no memory left.
    #[error("cannot allocate {bytes} bytes on the CPU device")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A grid or block is too large.
    #[error("kernel `{kernel}`: {problem}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// The rule that the launch breaks.
        problem: LaunchProblem,
    },
    /// A parameter buffer is not of the kernel's size.
    #[error("kernel `{kernel}` takes {expected} bytes of parameters, but {given} were given")]
    ParameterBytes {
        /// The kernel.
        kernel: String,
        /// Bytes that the kernel takes.
        expected: u32,
        /// Bytes of the buffer.
        given: usize,
    },
    /// A stream did not finish in time. The device stops the grids that ran.
    #[error("not finished after {seconds} s: a stream of the CPU device")]
    TimedOut {
        /// The time-out, in seconds.
        seconds: f64,
    },
    /// A grid failed. The device goes on.
    #[error(transparent)]
    Fault(#[from] Box<CpuFault>),
}
