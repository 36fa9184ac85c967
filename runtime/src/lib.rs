//! The host side of Gridlet: artifacts, devices, memory, green contexts, launches.
//!
//! ```no_run
//! use gridlet_runtime::{Arg, Artifact, Buffer, Device, GreenContext, LaunchConfig, Program};
//!
//! # fn main() -> gridlet_runtime::Result<()> {
//! let device = Device::open(0)?;
//! device.set_pending_launch_limit(65_536)?; // before the first kernel
//!
//! let artifact = Artifact::open("quicksort.gridlet")?;
//! let program = Program::load(&device, &artifact)?;
//! let kernel = program.kernel("quicksort")?;
//!
//! let numbers: Vec<u32> = (0..100_000).rev().collect();
//! let mut data = Buffer::from_slice(&device, &numbers)?;
//!
//! let partition = GreenContext::with_sms(&device, 16)?;
//! let stream = partition.stream()?;
//! let arguments = [Arg::from(&mut data), Arg::from(0u32), Arg::from(100_000u32)];
//! stream.launch(&kernel, &LaunchConfig::new(1, 128), &arguments)?;
//! stream.synchronize_default()?; // reports faults and lost launches
//!
//! println!("{:?}", &data.to_vec()?[..10]);
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//! - Nothing here panics because a driver, a GPU or a driver call is missing; such failures are [`Error`]s.
//! - Every handle is cheap to clone or owns its dependencies, so any drop order is correct: streams are destroyed
//!   before their green context; programs, buffers and green contexts before the device's primary context.
//! - Every wait has a timeout. After [`Error::TimedOut`] the device is unusable in this process and its handles
//!   leak when dropped, because destroying them would wait for the hung kernel.
//! - A launch that is lost on the device makes the next wait fail ([`Error::LostLaunches`]).
//! - Copies between host and device wait for all earlier launches on that device's streams.
//!
//! # The CPU device
//! `Device::open_named("cpu")` opens this machine's processor: CPU images
//! ([`ImageKind::SharedObject`](manifest::ImageKind::SharedObject)) run on worker threads of this process. The
//! rules above hold there too; an SM partition limits the number of workers, and a fault ends the launch but not
//! the device. [`CpuConfig`] sets the number of threads, a seed that permutes execution order, and checks.
//!
//! # Safety limits
//! A kernel can write to any address of its device. On a GPU that cannot harm the host's memory, since this crate
//! hands out device memory only; the caller is responsible for other addresses passed through [`Arg::address`] and
//! [`Arg::Bytes`]. On the CPU, device memory is host memory and an image is a program: run only images from a
//! source that you trust.

/// `docs/runtime.md`; its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../docs/runtime.md")]
pub struct Guide;

pub mod arguments;
mod backend;
mod driver;
mod error;
mod handles;
mod info;
pub mod interop;
pub mod launch_queue;
mod limits;
mod location;
mod memory;
pub mod observe;
pub mod occupancy;
mod selector;
mod sharing;
mod statistics;
mod strategy;
pub mod typed;
pub mod unified;

pub use gridlet_artifact::manifest;
pub use gridlet_cpu as cpu;

/// Compiled programs: see [`gridlet_artifact`].
pub mod artifact {
    pub use gridlet_artifact::{
        Artifact, ComputeCapability, ImageArch, ImageTarget, MANIFEST_FILE, cpu_arch,
        describe_image,
    };
}

pub use arguments::{Arg, DeviceCopy, Element, Pointer, Scalar};
pub use artifact::{Artifact, ComputeCapability, ImageArch};
pub use cpu::CpuConfig;
pub use error::{
    CPU_DEVICES, CudaError, CudaVersion, Error, Fault, Findings, LostLaunches, ResourceProblem,
    Result,
};
pub use gridlet_artifact::{
    ArtifactError, ArtifactProblem, Dim3, KernelLimits, LaunchConfig, LaunchLimits, LaunchProblem,
    LaunchStrategy, PORTABLE_CLUSTER_BLOCKS, ScalarType, UnknownStrategy,
};
pub use handles::resources::{
    ResourceDescriptor, SmGroup, SmResource, Split, SplitFlags, WorkqueueConfig, WorkqueueResource,
    WorkqueueScope,
};
pub use handles::{
    Confinement, CurrentDevice, CurrentGreenContext, DEFAULT_TIMEOUT, Device, Event, GreenContext,
    Kernel, Program, Stream, resources,
};
#[cfg(feature = "async")]
pub use handles::{EventDone, StreamDone};
pub use info::{DeviceInfo, DeviceKind, GreenContextFeatures, SmGranularity};
pub use limits::Limit;
pub use memory::{Buffer, DeviceMemory};
pub use selector::DeviceSelector;
pub use statistics::Statistics;
pub use strategy::LaunchPool;
pub use typed::DevicePointer;
