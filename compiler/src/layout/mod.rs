//! The layout pass: where every byte of a type and of a parameter buffer lies.
//!
//! Nothing else in the compiler computes an offset, a size or an alignment.

use crate::types::Type;

/// Size and alignment of a type in memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeLayout {
    /// Size, tail padding included; a multiple of `alignment`.
    pub size: u64,
    /// Alignment, a power of two.
    pub alignment: u64,
}

/// Where one parameter lies in the parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSlot {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// First byte in the buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub alignment: u32,
}

/// The parameter buffer of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// The kernel's name.
    pub kernel: String,
    /// Its parameters, in declaration order.
    pub slots: Vec<ParamSlot>,
    /// Bytes from 0 to the end of the last parameter.
    pub size: u32,
}
