//! Where every byte of a type lies: sizes, alignments and offsets.
//!
//! This is the only place that computes them; [`crate::layout`] builds parameter buffers from the results.
//!
//! The rules are those of CUDA C++ on a 64-bit device, so that a struct has the same layout on both sides
//! (CUDA C++ Programming Guide, "Built-in Vector Types", and the C++ ABI that nvcc shares with the host
//! compiler):
//! - a scalar is aligned to its size; a pointer and a stream handle take 8 bytes;
//! - a vector of 2 or 4 is aligned to its size, but never beyond 16 bytes; a vector of 3 to its element;
//! - an array stores its elements contiguously and has their alignment;
//! - a struct keeps declaration order, each field at its natural alignment, with tail padding to a multiple
//!   of its own alignment; a struct of zero bytes takes 1 byte, as in C++.

use super::{Scalar, StructId, Structs, Type};

/// The maximum size of a type, in bytes: offsets within it fit a signed 32-bit number.
pub const MAX_TYPE_BYTES: u64 = 1 << 31;

/// Size of a pointer and of a stream handle, and their alignment, in bytes.
pub const POINTER_BYTES: u64 = 8;

/// The size at which the computation saturates, in bytes. Far above [`MAX_TYPE_BYTES`], a multiple of every
/// alignment, and small enough that the sum of two sizes does not overflow.
pub(crate) const SATURATED: u64 = 1 << 62;

/// Size and alignment of a type in memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeLayout {
    /// Size, tail padding included; a multiple of `alignment`.
    pub size: u64,
    /// Alignment, a power of two.
    pub alignment: u64,
}

/// The position of one value in a buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSlot {
    /// First byte in the buffer.
    pub offset: u64,
    /// Size.
    pub size: u64,
    /// Alignment.
    pub alignment: u64,
}

/// A buffer of consecutive values, each at its natural alignment, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// The values, in order.
    pub slots: Vec<BufferSlot>,
    /// From 0 to the end of the last value, without tail padding.
    pub size: u64,
    /// The largest alignment of any value; 1 if the buffer is empty.
    pub alignment: u64,
}

/// Size and alignment of a type.
///
/// Sizes saturate at 2⁶² bytes instead of overflowing; [`crate::layout::compute_layouts`] rejects every type
/// over [`MAX_TYPE_BYTES`]. No struct may contain itself.
pub fn type_layout(ty: &Type, structs: &Structs) -> TypeLayout {
    let natural = |size| TypeLayout { size, alignment: size };
    match ty {
        Type::Unit => TypeLayout { size: 0, alignment: 1 },
        Type::Scalar(scalar) => natural(scalar.size()),
        Type::Vector(scalar, count) => vector_layout(*scalar, *count),
        Type::Array(element, count) => {
            let TypeLayout { size, alignment } = type_layout(element, structs);
            TypeLayout { size: size.saturating_mul(*count).min(SATURATED), alignment }
        }
        Type::Struct(id) => {
            let BufferLayout { size, alignment, .. } = *fields_layout(*id, structs);
            TypeLayout { size: align_up(size.max(1), alignment), alignment }
        }
        Type::Pointer { .. } | Type::Stream => natural(POINTER_BYTES),
    }
}

/// The layout of a struct's fields. Cached, because a few nested structs can expand to millions of fields.
fn fields_layout(id: StructId, structs: &Structs) -> &BufferLayout {
    structs.kept_layout(id).get_or_init(|| {
        buffer_layout(structs.get(id).fields.iter().map(|field| &field.ty), structs)
    })
}

fn vector_layout(scalar: Scalar, count: u8) -> TypeLayout {
    let size = scalar.size() * u64::from(count);
    let alignment = if count == 3 { scalar.size() } else { size.min(16) };
    TypeLayout { size, alignment }
}

/// The byte at which field `index` of a struct starts; the struct's size if it has no such field.
pub fn field_offset(id: StructId, index: u32, structs: &Structs) -> u64 {
    match fields_layout(id, structs).slots.get(index as usize) {
        Some(slot) => slot.offset,
        None => type_layout(&Type::Struct(id), structs).size,
    }
}

/// Bytes from one element of an array to the next: the distance that `p + 1` adds to a pointer to `element`.
pub fn array_stride(element: &Type, structs: &Structs) -> u64 {
    type_layout(element, structs).size
}

/// The byte at which element `index` of a vector starts.
pub fn vector_element_offset(scalar: Scalar, index: u32) -> u64 {
    scalar.size() * u64::from(index)
}

/// Lays out values consecutively: never reordered, each at the first multiple of its alignment after the
/// previous value. Parameter buffers, struct fields and `printf` arguments all follow this rule.
pub fn buffer_layout<'t>(
    types: impl IntoIterator<Item = &'t Type>,
    structs: &Structs,
) -> BufferLayout {
    let mut buffer = BufferLayout { slots: vec![], size: 0, alignment: 1 };
    for ty in types {
        let TypeLayout { size, alignment } = type_layout(ty, structs);
        let offset = align_up(buffer.size, alignment);
        buffer.slots.push(BufferSlot { offset, size, alignment });
        buffer.size = (offset + size).min(SATURATED);
        buffer.alignment = buffer.alignment.max(alignment);
    }
    buffer
}

/// Rounds `bytes` up to a multiple of `alignment`, a power of two.
fn align_up(bytes: u64, alignment: u64) -> u64 {
    (bytes + (alignment - 1)) & !(alignment - 1)
}
