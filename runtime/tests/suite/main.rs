//! The crate's integration tests, in one program. `gpu`, `launch_allocations` and `typed` are separate programs;
//! each says why.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(target_os = "linux")]
mod asleep;
#[cfg(target_os = "linux")]
mod c_image;
#[cfg(target_os = "linux")]
mod collect;
#[cfg(target_os = "linux")]
mod common;
#[cfg(target_os = "linux")]
mod cpu_handles;
#[cfg(target_os = "linux")]
mod fake_driver;
mod guide;
#[cfg(target_os = "linux")]
mod observe_cpu;
#[cfg(target_os = "linux")]
mod resident_artifact;
