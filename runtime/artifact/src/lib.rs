//! Compiled Gridlet programs, which the compiler writes and the runtime reads.
//!
//! - [`manifest`]: the description of a program and its images, as JSON.
//! - [`Artifact`]: a manifest together with its images, in memory or as a bundle.
//! - [`launch`]: the geometry of a launch, and the limits of devices and kernels.
//! - [`LaunchStrategy`]: how kernels launch kernels.
//! - [`resident`]: what the host passes to the kernel of resident launches.
//! - [`read_file`]: the bytes of a file, which must be one.
//! - [`cpu`]: the interface between the compiler's CPU images and the device that runs them.
//!
//! This crate is all that the compiler and the runtime share. It knows neither LLVM nor a driver.

mod arch;
mod artifact;
pub mod cpu;
mod error;
mod files;
pub mod launch;
pub mod manifest;
pub mod resident;
mod setters;
mod strategy;
mod types;

pub use arch::{ComputeCapability, ImageArch, cpu_arch};
pub use artifact::{Artifact, ImageTarget, describe_image};
pub use error::{ArtifactError, ArtifactProblem};
pub use files::read_file;
pub use launch::{
    Dim3, KernelLimits, LaunchConfig, LaunchLimits, LaunchProblem, PORTABLE_CLUSTER_BLOCKS,
};
pub use manifest::MANIFEST_FILE;
pub use strategy::{LaunchStrategy, UnknownStrategy};
pub use types::{Extent, ScalarType, extent};
