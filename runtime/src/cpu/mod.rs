//! The CPU device.

pub mod abi;
