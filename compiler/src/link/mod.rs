//! Machine code: assembles PTX as a whole program, or links it with the device runtime and other modules.

#[cfg(feature = "llvm")]
pub(crate) mod barriers;
mod check;
pub mod cubin;
#[cfg(feature = "llvm")]
pub(crate) mod extern_kernels;
mod frames;
#[cfg(feature = "llvm")]
pub(crate) mod lanes;
mod nvjitlink;
#[cfg(feature = "llvm")]
mod occupancy;
#[cfg(feature = "llvm")]
pub(crate) mod ptxas;
#[cfg(feature = "llvm")]
pub(crate) mod registers;
mod stderr;
#[cfg(feature = "llvm")]
mod waits;

pub use crate::inputs::{InputKind, LinkInput};
pub use check::check_parameters;
#[cfg(feature = "llvm")]
pub(crate) use check::check_records;
pub use nvjitlink::{LinkOptions, LinkOutput, NvJitLink, Program, device_link};

/// Machine code for one architecture: an ELF file.
#[derive(Clone, PartialEq, Eq)]
pub struct Cubin(pub Vec<u8>);

impl std::fmt::Debug for Cubin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cubin({} bytes)", self.0.len())
    }
}
