//! The nvvm stage.

use crate::arch::Dialect;

/// A module for libNVVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvvmModule {
    /// Its name, for messages.
    pub name: String,
    /// The dialect that it is written in.
    pub dialect: Dialect,
    /// Text or bitcode.
    pub bytes: Vec<u8>,
}
