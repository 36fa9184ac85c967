//! Everything that can go wrong on the host side, with the values and the limits in the message.

mod codes;
mod hint;
mod resource;

use std::fmt;

use crate::strategy::LaunchPool;
pub(crate) use codes::{cuda_error_name, is_sticky};
use codes::{explain_fault, lost_launch_hint};
use gridlet_artifact::{ArtifactError, LaunchProblem};
use gridlet_cpu::check::{Report, render_all};
pub use resource::ResourceProblem;

/// Where errors begin to number CPU devices: each that is opened has a number of its own, GPUs have the driver's.
pub const CPU_DEVICES: u32 = 1 << 31;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The CUDA driver's library is missing or does not start.
    #[error("no NVIDIA driver: {reason}")]
    NoDriver {
        /// What was looked for or what the driver answered.
        reason: String,
    },
    /// The driver starts, but Gridlet needs a newer one.
    #[error(
        "the NVIDIA driver is too old: it supports CUDA {found}, Gridlet needs CUDA {needed} or later"
    )]
    DriverTooOld {
        /// `cuDriverGetVersion`.
        found: CudaVersion,
        /// The oldest that will do.
        needed: CudaVersion,
    },
    /// The driver lacks a call that was asked for.
    #[error(
        "the NVIDIA driver has no `{call}`: it came with CUDA {since}, this driver supports CUDA {found}"
    )]
    MissingCall {
        /// The driver call.
        call: &'static str,
        /// The version that brought it.
        since: CudaVersion,
        /// `cuDriverGetVersion`.
        found: CudaVersion,
    },
    /// The driver has the call, but in a later version the call can do more.
    #[error(
        "the NVIDIA driver's `{call}` does not know {feature}: they came with CUDA {since}, this driver supports CUDA {found}"
    )]
    MissingFeature {
        /// The driver call.
        call: &'static str,
        /// What was asked of it.
        feature: &'static str,
        /// The version that brought it.
        since: CudaVersion,
        /// `cuDriverGetVersion`.
        found: CudaVersion,
    },
    /// Something that only GPUs have was asked of the CPU device.
    #[error("the CPU device has no {what}")]
    NotOnCpu {
        /// What was asked for.
        what: &'static str,
    },
    /// Resources cannot be split or put together so.
    #[error(transparent)]
    Resource(Box<ResourceProblem>),
    /// There is no such GPU.
    #[error("no CUDA device {ordinal}: {}", match found {
        0 => "the driver sees no GPU".to_string(),
        1 => "the driver sees 1 GPU, number 0".to_string(),
        n => format!("the driver sees {n} GPUs, numbers 0 to {}", n - 1),
    })]
    NoDevice {
        /// The number asked for.
        ordinal: u32,
        /// How many there are.
        found: u32,
    },
    /// A device's name that is none.
    #[error("{reason}")]
    DeviceName {
        /// What is wrong with it.
        reason: String,
    },
    /// A driver call failed.
    #[error(transparent)]
    Cuda(#[from] Box<CudaError>),
    /// A kernel broke the device's context: nothing more runs in it.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// An artifact is damaged, foreign or too new.
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
    /// The program has no kernel of that name.
    #[error("no kernel `{name}`: the program has {}", list_or(known, "no kernels"))]
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The kernels there are.
        known: Vec<String>,
    },
    /// A program has no `static` variable of that name.
    #[error("no variable `{name}`: the program has {}", list_or(known, "no variables"))]
    UnknownGlobal {
        /// The name asked for.
        name: String,
        /// The variables there are.
        known: Vec<String>,
    },
    /// A `static` variable holds elements of another type.
    #[error("the variable `{name}` is `{is}`, which holds no `{asked}`")]
    GlobalType {
        /// The variable.
        name: String,
        /// Its type.
        is: String,
        /// The elements asked for.
        asked: String,
    },
    /// A launch has too many or too few arguments.
    #[error("kernel `{kernel}` takes {expected} argument{}, {given} given", plural(*expected as u64))]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// How many parameters it has.
        expected: usize,
        /// How many arguments came.
        given: usize,
    },
    /// An argument does not fit its parameter.
    #[error(
        "kernel `{kernel}`, argument {index} (`{parameter}`): expected {expected}, given {given}"
    )]
    Argument {
        /// The kernel.
        kernel: String,
        /// The argument, counted from 0.
        index: usize,
        /// The parameter's name, with the field's path in a struct.
        parameter: String,
        /// What the parameter takes.
        expected: String,
        /// What came.
        given: String,
    },
    /// An event that no stream was told to record has no time.
    #[error("the event was never recorded")]
    NotRecorded,
    /// A device that checks was given an image that was built without checks.
    #[error("kernel `{kernel}` of program `{program}` was built without --check")]
    NotChecked {
        /// The program.
        program: String,
        /// Its first such kernel.
        kernel: String,
    },
    /// A grid or block does not fit.
    #[error("kernel `{kernel}`: {problem}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// Which rule, with the values.
        problem: LaunchProblem,
    },
    /// The driver's queue may be full, and a launch would wait for it.
    #[error(
        "a launch would block: {launches} of the stream's launches are under way, and {allowed} fit the driver's queue"
    )]
    WouldBlock {
        /// Launches of the stream that were not seen to end.
        launches: u64,
        /// How many may be under way.
        allowed: u64,
    },
    /// The manifest and the driver disagree about a kernel's parameters: the image is not the manifest's.
    #[error(
        "kernel `{kernel}`, parameter {index}: {manifest} in the manifest, {driver} in the image"
    )]
    ParameterMismatch {
        /// The kernel.
        kernel: String,
        /// The parameter, counted from 0.
        index: usize,
        /// Offset and size as the manifest has them.
        manifest: String,
        /// Offset and size as `cuKernelGetParamInfo` has them.
        driver: String,
    },
    /// A green context of that size cannot be made.
    #[error(
        "no partition of {asked} SMs: the device has {available}, in partitions of at least {minimum} and multiples of {alignment}"
    )]
    Partition {
        /// SMs asked for.
        asked: u32,
        /// SMs of the device.
        available: u32,
        /// SMs of the smallest partition.
        minimum: u32,
        /// Partitions are multiples of this many SMs.
        alignment: u32,
    },
    /// A limit must be set before the device runs its first kernel.
    #[error("the {limit} must be set before the first kernel runs on the device")]
    LimitTooLate {
        /// The limit's name.
        limit: &'static str,
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
        /// What was passed.
        what: String,
        /// The stream's device: a GPU's number, with 65,536 more for each time that it was recovered, or [`CPU_DEVICES`] and
        /// more for CPU devices.
        expected: u32,
        /// The other's device.
        given: u32,
    },
    /// The device did not finish in time. A GPU may still be busy: this process can no longer use it, and every
    /// handle of it leaks when dropped, because destroying one would wait for the work that hangs. The CPU
    /// device stops what ran and can be used again, unless even stopping fails.
    #[error("not finished after {seconds} s: {what}")]
    TimedOut {
        /// The time-out, in seconds.
        seconds: f64,
        /// What was waited for.
        what: String,
    },
    /// The device timed out before, so this process can no longer use it.
    #[error(
        "device {} is unusable in this process: an earlier wait timed out ({what})",
        device_text(*ordinal)
    )]
    Unusable {
        /// The device: a GPU's number, or [`CPU_DEVICES`] and more for CPU devices.
        ordinal: u32,
        /// What timed out.
        what: String,
    },
    /// The device lost its context to a fault, and with it everything on it. [`crate::Device::recover`] gives a new one.
    #[error(
        "device {ordinal} lost everything on it to a fault, and `Device::recover` opens it anew: {fault}"
    )]
    Broken {
        /// The GPU's number.
        ordinal: u32,
        /// What happened.
        fault: Box<Fault>,
    },
    /// A device is recovered only when the host cannot have elements of its memory any more, which goes with the context.
    #[error(
        "device {ordinal} cannot be recovered while {buffers} managed or host buffer{} there, whose elements the host may have: drop them first",
        if *buffers == 1 { " is" } else { "s are" }
    )]
    HostMemoryInUse {
        /// The GPU's number.
        ordinal: u32,
        /// How many such buffers there are.
        buffers: usize,
    },
    /// After a fault the driver starts no new context.
    #[error("device {ordinal} cannot be used in this process any more: {reason}")]
    NotRecovered {
        /// The GPU's number.
        ordinal: u32,
        /// What the driver said.
        reason: Box<Error>,
    },
    /// Device-side launches failed and the program did not ask for their status.
    #[error(transparent)]
    LostLaunches(#[from] Box<LostLaunches>),
    /// A grid failed on the CPU device. The device goes on.
    #[error(transparent)]
    CpuFault(#[from] Box<gridlet_cpu::CpuFault>),
    /// A device that checks found something wrong.
    #[error(transparent)]
    Checked(#[from] Box<Findings>),
    /// An image for the CPU cannot be loaded.
    #[error("the CPU image cannot be loaded: {reason}")]
    CpuImage {
        /// What the system's loader says, or what is wrong with the image.
        reason: String,
    },
    /// The CPU device cannot start its worker threads.
    #[error("the CPU device cannot start: {reason}")]
    CpuThreads {
        /// What went wrong.
        reason: String,
    },
    /// The host has no memory left for the CPU device.
    #[error("cannot allocate {bytes} bytes on the CPU device")]
    CpuMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A handle that another library made cannot be used here, or one of this crate's not there.
    #[error("cannot share {what}: {reason}")]
    Foreign {
        /// The handle.
        what: &'static str,
        /// Why not.
        reason: String,
    },
}

impl Error {
    /// Whether the error says that there is no GPU here (and not that one misbehaved): the only reason for
    /// which a test may skip.
    pub fn is_absent_gpu(&self) -> bool {
        matches!(self, Error::NoDriver { .. } | Error::NoDevice { found: 0, .. })
    }

    /// Whether a tool, driver or device is missing or too old, as opposed to a run that failed.
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
            CpuError::TimedOut { seconds } => {
                Error::TimedOut { seconds, what: "a stream of the CPU device".into() }
            }
            CpuError::Fault(fault) => Error::CpuFault(fault),
        }
    }
}

/// A CUDA version such as 12.4; what a driver supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(into = "String")]
pub struct CudaVersion {
    /// Before the dot.
    pub major: u32,
    /// After the dot.
    pub minor: u32,
}

impl CudaVersion {
    /// The version of those parts.
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
pub struct CudaError {
    /// The driver call.
    pub call: &'static str,
    /// The `CUresult`.
    pub code: i32,
    /// Its name, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
    /// The driver's words for it.
    pub message: String,
    /// The driver's compile log; empty if it wrote none.
    pub log: String,
}

/// A fault of a kernel: a `CUresult` after which "the process must be terminated and relaunched" or the
/// context is lost (driver API, `CUresult`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{} [{name} ({code}), seen by `{call}`]", explain_fault(*code), kernels_text(kernels))]
pub struct Fault {
    /// The driver call that reported it; the fault itself happened earlier.
    pub call: &'static str,
    /// The `CUresult`.
    pub code: i32,
    /// Its name, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    /// The kernels that the stream launched since it was last synchronised; empty if not known.
    pub kernels: Vec<String>,
}

/// Device-side launches that failed since the last synchronise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "program `{program}` lost {count} launch{}; the first at {file}:{line}, with {name} ({error}){}",
    if *count == 1 { "" } else { "es" },
    lost_launch_hint(*error, *full_pool)
)]
pub struct LostLaunches {
    /// The program, as its manifest names it.
    pub program: String,
    /// How many launches failed.
    pub count: u32,
    /// `cudaError` of the first.
    pub error: i32,
    /// Its name, such as `cudaErrorLaunchPendingCountExceeded`.
    pub name: String,
    /// Source file of the first.
    pub file: String,
    /// Source line of the first, from 1.
    pub line: u32,
    /// The pool that had no room for the first; `None` if it failed for another reason.
    pub full_pool: Option<LaunchPool>,
}

/// What the checks of a device found since the last wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", render_all(reports, *further, &|_, _| None).trim_end())]
pub struct Findings {
    /// The first of each kind and line.
    pub reports: Vec<Report>,
    /// How many more there were.
    pub further: u64,
}

/// What the numbers of one GPU differ by, which counts how often it was recovered: more GPUs than that no machine has.
const RECOVERED: u32 = 1 << 16;

/// The number of a GPU that is opened anew while handles with that `latest` number are still there.
pub(crate) fn next_number(ordinal: u32, latest: u32) -> u32 {
    ordinal % RECOVERED + (latest / RECOVERED + 1) * RECOVERED % CPU_DEVICES
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
