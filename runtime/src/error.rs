//! The errors of the host side; each message includes the values and limits involved.

mod codes;
mod hint;
mod resource;

use std::fmt;

use crate::strategy::LaunchPool;
pub(crate) use codes::{cuda_error_name, is_sticky};
use codes::{explain_fault, lost_launch_hint};
use gridlet_artifact::{ArtifactError, LaunchProblem};
use gridlet_cpu::CpuFault;
use gridlet_cpu::check::{Report, render_all};
pub use resource::ResourceProblem;

/// The first number that errors use for CPU devices. Each opened CPU device has a unique number; GPUs have the
/// driver's.
pub const CPU_DEVICES: u32 = 1 << 31;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The CUDA driver's library is missing or does not initialize.
    #[error("no NVIDIA driver: {reason}")]
    NoDriver {
        /// The libraries tried, or the driver's answer.
        reason: String,
    },
    /// The driver initializes, but Gridlet needs a newer one.
    #[error(
        "the NVIDIA driver is too old: it supports CUDA {found}, Gridlet needs CUDA {needed} or later"
    )]
    DriverTooOld {
        /// `cuDriverGetVersion`.
        found: CudaVersion,
        /// The oldest supported version.
        needed: CudaVersion,
    },
    /// The driver lacks a requested call.
    #[error(
        "the NVIDIA driver has no `{call}`: it came with CUDA {since}, this driver supports CUDA {found}"
    )]
    MissingCall {
        /// The driver call.
        call: &'static str,
        /// The version that introduced it.
        since: CudaVersion,
        /// `cuDriverGetVersion`.
        found: CudaVersion,
    },
    /// The driver has the call but not a feature that a later version added to it.
    #[error(
        "the NVIDIA driver's `{call}` does not support {feature}: they came with CUDA {since}, this driver supports CUDA {found}"
    )]
    MissingFeature {
        /// The driver call.
        call: &'static str,
        /// The requested feature.
        feature: &'static str,
        /// The version that introduced it.
        since: CudaVersion,
        /// `cuDriverGetVersion`.
        found: CudaVersion,
    },
    /// A feature that only GPUs have was requested from the CPU device.
    #[error("the CPU device has no {what}")]
    NotOnCpu {
        /// The requested feature.
        what: &'static str,
    },
    /// The resources cannot be split or combined in this way.
    #[error(transparent)]
    Resource(Box<ResourceProblem>),
    /// No GPU has this number.
    #[error("no CUDA device {ordinal}: {}", match found {
        0 => "the driver sees no GPU".to_string(),
        1 => "the driver sees 1 GPU, number 0".to_string(),
        n => format!("the driver sees {n} GPUs, numbers 0 to {}", n - 1),
    })]
    NoDevice {
        /// The requested number.
        ordinal: u32,
        /// The number of GPUs.
        found: u32,
    },
    /// The text does not name a device.
    #[error("{reason}")]
    DeviceName {
        /// The reason.
        reason: String,
    },
    /// A driver call failed.
    #[error(transparent)]
    Cuda(#[from] Box<CudaError>),
    /// A kernel fault corrupted the device's context: nothing more runs in it.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// An artifact is damaged, invalid or too new.
    #[error(transparent)]
    Artifact(#[from] Box<ArtifactError>),
    /// No image of the artifact runs on the device.
    #[error("no image for {device}: the artifact has {}", list_or(available, "no images"))]
    NoImage {
        /// The device's name and architecture.
        device: String,
        /// Kind and architecture of each image.
        available: Vec<String>,
    },
    /// The program has no kernel with this name.
    #[error("no kernel `{name}`: the program has {}", list_or(known, "no kernels"))]
    UnknownKernel {
        /// The requested name.
        name: String,
        /// The program's kernels.
        known: Vec<String>,
    },
    /// A program has no `static` variable with this name.
    #[error("no variable `{name}`: the program has {}", list_or(known, "no variables"))]
    UnknownGlobal {
        /// The requested name.
        name: String,
        /// The program's variables.
        known: Vec<String>,
    },
    /// A `static` variable has another element type.
    #[error("the variable `{name}` is `{is}`, which does not hold `{asked}` elements")]
    GlobalType {
        /// The variable.
        name: String,
        /// Its type.
        is: String,
        /// The requested element type.
        asked: String,
    },
    /// A launch has too many or too few arguments.
    #[error("kernel `{kernel}` takes {expected} argument{}, {given} given", plural(*expected as u64))]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// Number of parameters.
        expected: usize,
        /// Number of arguments given.
        given: usize,
    },
    /// An argument does not fit its parameter.
    #[error(
        "kernel `{kernel}`, argument {index} (`{parameter}`): expected {expected}, given {given}"
    )]
    Argument {
        /// The kernel.
        kernel: String,
        /// The argument's index, from 0.
        index: usize,
        /// The parameter's name, followed by the path of the field in a struct.
        parameter: String,
        /// The argument that the parameter takes.
        expected: String,
        /// The argument given.
        given: String,
    },
    /// An event that was never recorded has no time.
    #[error("the event was never recorded")]
    NotRecorded,
    /// A checking device was given an image built without checks.
    #[error("kernel `{kernel}` of program `{program}` was built without --check")]
    NotChecked {
        /// The program.
        program: String,
        /// The first such kernel.
        kernel: String,
    },
    /// The grid or block exceeds a limit.
    #[error("kernel `{kernel}`: {problem}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// The broken rule, with the values.
        problem: LaunchProblem,
    },
    /// The driver's queue may be full, so a launch could block.
    #[error(
        "a launch would block: {launches} of the stream's launches are unfinished, and the driver's queue holds {allowed}"
    )]
    WouldBlock {
        /// Launches of the stream not yet known to have ended.
        launches: u64,
        /// The most that may be in progress.
        allowed: u64,
    },
    /// The manifest and the driver disagree about a kernel's parameters: the image does not belong to the
    /// manifest.
    #[error(
        "kernel `{kernel}`, parameter {index}: {manifest} in the manifest, {driver} in the image"
    )]
    ParameterMismatch {
        /// The kernel.
        kernel: String,
        /// The parameter's index, from 0.
        index: usize,
        /// Offset and size according to the manifest.
        manifest: String,
        /// Offset and size according to `cuKernelGetParamInfo`.
        driver: String,
    },
    /// A green context of this size cannot be created.
    #[error(
        "no partition of {asked} SMs: the device has {available}, in partitions of at least {minimum} and multiples of {alignment}"
    )]
    Partition {
        /// SMs requested.
        asked: u32,
        /// SMs of the device.
        available: u32,
        /// SMs of the smallest partition.
        minimum: u32,
        /// Partition sizes are multiples of this many SMs.
        alignment: u32,
    },
    /// A limit must be set before the device runs its first kernel.
    #[error("the {limit} must be set before the first kernel runs on the device")]
    LimitTooLate {
        /// The limit's name.
        limit: &'static str,
    },
    /// The launch memory that a stream gets is too small for a kernel to start.
    #[error(
        "kernel `{kernel}` needs at least {needed} bytes of launch memory for {workers} workers, and streams get {bytes}"
    )]
    LaunchMemory {
        /// The kernel.
        kernel: String,
        /// [`Device::launch_memory`](crate::Device::launch_memory).
        bytes: u64,
        /// The number of blocks that run the kernel's grid and those that it launches.
        workers: u32,
        /// The least size that suffices.
        needed: u64,
    },
    /// Host and device lengths differ.
    #[error("a copy of {given} bytes does not fit a buffer of {expected} bytes")]
    Length {
        /// Bytes of the device memory.
        expected: u64,
        /// Bytes of the host slice.
        given: u64,
    },
    /// Two handles belong to different devices.
    #[error(
        "{what} belongs to device {}, the stream to device {}",
        device_text(*given),
        device_text(*expected)
    )]
    OtherDevice {
        /// The handle that was passed.
        what: String,
        /// The number of the stream's device: for a GPU, its ordinal plus 65,536 for each recovery; for CPU
        /// devices, [`CPU_DEVICES`] and up.
        expected: u32,
        /// The number of the other handle's device.
        given: u32,
    },
    /// The device did not finish in time. A GPU may still be busy: this process can no longer use it, and all its
    /// handles leak when dropped, because destroying one would wait for the hung work. The CPU device stops its
    /// work and stays usable, unless even stopping fails.
    #[error("not finished after {seconds} s: {what}{}", stopped_text(stopped.as_deref()))]
    TimedOut {
        /// The timeout, in seconds.
        seconds: f64,
        /// The work that was waited for.
        what: String,
        /// Whether the device is the CPU device.
        is_cpu: bool,
        /// On the CPU device, the first block that it stopped, if one was running.
        stopped: Option<Box<CpuFault>>,
    },
    /// The device timed out earlier, so this process can no longer use it.
    #[error(
        "device {} is unusable in this process: an earlier wait timed out ({what})",
        device_text(*ordinal)
    )]
    Unusable {
        /// The device: a GPU's ordinal, or [`CPU_DEVICES`] and up for CPU devices.
        ordinal: u32,
        /// The wait that timed out.
        what: String,
    },
    /// A fault destroyed the device's context and everything in it. [`crate::Device::recover`] opens a new one.
    #[error("device {ordinal} lost its context to a fault; `Device::recover` reopens it: {fault}")]
    Broken {
        /// The GPU's number.
        ordinal: u32,
        /// The fault.
        fault: Box<Fault>,
    },
    /// Recovery destroys the memory of the context, so it is refused while the host may hold references into that
    /// memory.
    #[error(
        "device {ordinal} cannot be recovered while {buffers} managed or host buffer{} in use by the host: drop them first",
        if *buffers == 1 { " is" } else { "s are" }
    )]
    HostMemoryInUse {
        /// The GPU's number.
        ordinal: u32,
        /// The number of such buffers.
        buffers: usize,
    },
    /// The driver cannot create a new context after a fault.
    #[error("device {ordinal} cannot be used in this process any more: {reason}")]
    NotRecovered {
        /// The GPU's number.
        ordinal: u32,
        /// The driver's error.
        reason: Box<Error>,
    },
    /// Device-side launches failed and the program did not check their status.
    #[error(transparent)]
    LostLaunches(#[from] Box<LostLaunches>),
    /// A grid failed on the CPU device. The device stays usable.
    #[error(transparent)]
    CpuFault(#[from] Box<gridlet_cpu::CpuFault>),
    /// A checking device found errors in a kernel.
    #[error(transparent)]
    Checked(#[from] Box<Findings>),
    /// A CPU image cannot be loaded.
    #[error("the CPU image cannot be loaded: {reason}")]
    CpuImage {
        /// The loader's message, or the defect of the image.
        reason: String,
    },
    /// The CPU device cannot start its worker threads.
    #[error("the CPU device cannot start: {reason}")]
    CpuThreads {
        /// The reason.
        reason: String,
    },
    /// The host has no memory left, for the CPU device or for a copy of device memory.
    #[error("cannot allocate {bytes} bytes on the host")]
    CpuMemory {
        /// Bytes requested.
        bytes: u64,
    },
    /// A handle from another library cannot be used here, or one of this crate's handles cannot be used there.
    #[error("cannot share {what}: {reason}")]
    Foreign {
        /// The handle.
        what: &'static str,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// Whether the error says that this machine has no GPU (rather than that one failed): the only reason for a
    /// test to skip.
    pub fn is_absent_gpu(&self) -> bool {
        matches!(self, Error::NoDriver { .. } | Error::NoDevice { found: 0, .. })
    }

    /// Whether a tool, driver or device is missing or too old, as opposed to a failed run.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Error::NoDriver { .. }
                | Error::DriverTooOld { .. }
                | Error::MissingCall { .. }
                | Error::MissingFeature { .. }
                | Error::NoDevice { .. }
                | Error::NoImage { .. }
                | Error::CpuThreads { .. }
        )
    }
}

impl From<ArtifactError> for Error {
    fn from(error: ArtifactError) -> Self {
        Error::Artifact(Box::new(error))
    }
}

impl From<gridlet_cpu::Error> for Error {
    fn from(error: gridlet_cpu::Error) -> Self {
        use gridlet_cpu::Error as CpuError;
        match error {
            CpuError::Image { reason } => Error::CpuImage { reason },
            CpuError::Threads { reason } => Error::CpuThreads { reason },
            CpuError::Memory { bytes } => Error::CpuMemory { bytes },
            CpuError::Launch { kernel, problem } => Error::Launch { kernel, problem },
            CpuError::ParameterBytes { expected, given, .. } => {
                Error::Length { expected: u64::from(expected), given: given as u64 }
            }
            CpuError::TimedOut { seconds, stopped } => Error::TimedOut {
                seconds,
                what: "a stream of the CPU device".into(),
                is_cpu: true,
                stopped,
            },
            CpuError::Fault(fault) => Error::CpuFault(fault),
        }
    }
}

/// A CUDA version, such as 12.4; for a driver, the newest that it supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(into = "String")]
pub struct CudaVersion {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

impl CudaVersion {
    /// Makes a version from its two numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        CudaVersion { major, minor }
    }

    /// From `cuDriverGetVersion`: "(1000 × major + 10 × minor)" (driver API, Version Management).
    pub fn from_driver(version: i32) -> Self {
        let version = version.max(0).unsigned_abs();
        CudaVersion { major: version / 1000, minor: version % 1000 / 10 }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<CudaVersion> for String {
    fn from(version: CudaVersion) -> String {
        version.to_string()
    }
}

/// A driver call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{call}` failed with {name} ({code}): {message}{}", log_text(log))]
#[non_exhaustive]
pub struct CudaError {
    /// The driver call.
    pub call: &'static str,
    /// The `CUresult`.
    pub code: i32,
    /// Its name, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
    /// The driver's description.
    pub message: String,
    /// The driver's compile log; empty if it wrote none.
    pub log: String,
}

/// A kernel fault: a `CUresult` after which "the process must be terminated and relaunched" or the context is lost
/// (driver API, `CUresult`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{} [{name} ({code}), seen by `{call}`]", explain_fault(*code), kernels_text(kernels))]
#[non_exhaustive]
pub struct Fault {
    /// The driver call that reported the fault, which happened earlier.
    pub call: &'static str,
    /// The `CUresult`.
    pub code: i32,
    /// Its name, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    /// The kernels that the stream launched since it was last synchronized; empty if unknown.
    pub kernels: Vec<String>,
}

/// Device-side launches that failed since the last synchronization.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "program `{program}` lost {count} launch{}; the first at {file}:{line}, with {name} ({error}){}",
    if *count == 1 { "" } else { "es" },
    lost_launch_hint(*error, *full_pool)
)]
#[non_exhaustive]
pub struct LostLaunches {
    /// The program's name in its manifest.
    pub program: String,
    /// Number of failed launches.
    pub count: u32,
    /// The `cudaError` of the first failed launch.
    pub error: i32,
    /// Its name, such as `cudaErrorLaunchPendingCountExceeded`.
    pub name: String,
    /// Source file of the first failed launch.
    pub file: String,
    /// Source line of the first failed launch, from 1.
    pub line: u32,
    /// The pool that had no room for the first; `None` if it failed for another reason.
    pub full_pool: Option<LaunchPool>,
}

/// The errors that a device's checks found since the last wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", render_all(reports, *further, &|_, _| None).trim_end())]
#[non_exhaustive]
pub struct Findings {
    /// The first error of each kind and line.
    pub reports: Vec<Report>,
    /// The number of further errors.
    pub further: u64,
}

/// The step between the numbers of one GPU before and after a recovery; no machine has this many GPUs.
const RECOVERED: u32 = 1 << 16;

/// The number for a GPU that is reopened while handles with the number `latest` still exist.
pub(crate) fn next_number(ordinal: u32, latest: u32) -> u32 {
    ordinal % RECOVERED + (latest / RECOVERED + 1) * RECOVERED % CPU_DEVICES
}

fn stopped_text(stopped: Option<&CpuFault>) -> String {
    stopped.map_or_else(String::new, |fault| format!("; {fault}"))
}

fn device_text(number: u32) -> String {
    match number.checked_sub(CPU_DEVICES) {
        None if number < RECOVERED => number.to_string(),
        None => format!("{} (recovery {} of it)", number % RECOVERED, number / RECOVERED),
        Some(0) => "cpu".into(),
        Some(more) => format!("cpu (opened as number {more} of this process)"),
    }
}

fn log_text(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{}", log.trim_end()) }
}

fn kernels_text(kernels: &[String]) -> String {
    match kernels {
        [] => String::new(),
        [one] => format!(" (kernel launched: `{one}`)"),
        more => format!(" (kernels launched: {})", list_or(more, "")),
    }
}

fn list_or(items: &[String], none: &str) -> String {
    match items {
        [] => none.to_string(),
        items => items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(", "),
    }
}

pub(crate) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
