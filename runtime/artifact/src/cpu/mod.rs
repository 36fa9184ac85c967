//! The interface between the compiler's CPU images and the CPU device.

pub mod abi;
pub mod findings;
