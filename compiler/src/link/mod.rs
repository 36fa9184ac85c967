//! Device linking: PTX and the device runtime to a cubin.

mod check;
pub mod cubin;
pub(crate) mod externs;
pub(crate) mod input;
mod nvjitlink;

pub use check::check_parameters;
pub use input::{InputKind, LinkInput};
pub use nvjitlink::{LinkOptions, LinkOutput, NvJitLink, device_link};

/// Machine code for one architecture: an ELF file.
#[derive(Clone, PartialEq, Eq)]
pub struct Cubin(pub Vec<u8>);

impl std::fmt::Debug for Cubin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cubin({} bytes)", self.0.len())
    }
}
