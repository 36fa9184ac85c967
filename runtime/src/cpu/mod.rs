//! The CPU device.

pub mod abi;
pub mod check;
