//! Where every byte of a type lies: sizes, alignments and offsets.
//!
//! Nothing else in the compiler computes one; [`crate::layout`] builds parameter buffers from these.
//!
//! The rules are those of CUDA C++ on a 64-bit device, so that a struct means the same bytes on both
//! sides (CUDA C++ Programming Guide, "Built-in Vector Types", and the C++ ABI that nvcc shares with the
//! host compiler):
//! - a scalar is aligned to its size; a pointer and a stream handle take 8 bytes;
//! - a vector of 2 or 4 is aligned to its size, but never beyond 16 bytes; a vector of 3 to its element;
//! - an array is its elements one after another, aligned as they are;
//! - a struct keeps declaration order, each field at its natural alignment, padded at the tail to a
//!   multiple of its own alignment; one without a byte in it takes 1 byte, as in C++.

use super::{Scalar, StructId, Structs, Type};

/// Most bytes that one type may take: offsets within it fit a signed 32-bit number.
pub const MAX_TYPE_BYTES: u64 = 1 << 31;

/// Size of a pointer and of a stream handle, and their alignment, in bytes.
pub const POINTER_BYTES: u64 = 8;

/// Where sizes stop growing, in bytes. Far above [`MAX_TYPE_BYTES`] and a multiple of every alignment, so
/// that sums of two sizes do not overflow.
pub(crate) const SATURATED: u64 = 1 << 62;

/// Size and alignment of a type in memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeLayout {
    /// Size, tail padding included; a multiple of `alignment`.
    pub size: u64,
    /// Alignment, a power of two.
    pub alignment: u64,
}

/// Where one part of a buffer lies, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSlot {
    /// First byte in the buffer.
    pub offset: u64,
    /// Size.
    pub size: u64,
    /// Alignment.
    pub alignment: u64,
}

/// A buffer of values one after another, each at its natural alignment, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// The values, in order.
    pub slots: Vec<BufferSlot>,
    /// From 0 to the end of the last value; no tail padding.
    pub size: u64,
    /// The largest alignment in it; 1 if it is empty.
    pub alignment: u64,
}

/// Size and alignment of a type.
///
/// Sizes stop growing at 2⁶² bytes instead of overflowing; [`crate::layout::compute_layouts`] refuses every type over
/// [`MAX_TYPE_BYTES`]. No struct may contain itself.
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

/// Where the fields of a struct lie. Computed once: a few structs can nest to a type of millions of fields.
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

/// Byte at which field `index` of a struct starts; the struct's size if it has no such field.
pub fn field_offset(id: StructId, index: u32, structs: &Structs) -> u64 {
    match fields_layout(id, structs).slots.get(index as usize) {
        Some(slot) => slot.offset,
        None => type_layout(&Type::Struct(id), structs).size,
    }
}

/// Bytes from one element of an array to the next: what `p + 1` adds to a pointer to `element`.
pub fn array_stride(element: &Type, structs: &Structs) -> u64 {
    type_layout(element, structs).size
}

/// Byte at which element `index` of a vector starts.
pub fn vector_element_offset(scalar: Scalar, index: u32) -> u64 {
    scalar.size() * u64::from(index)
}

/// Lays values out one after another: never reordered, each at the first multiple of its alignment after
/// the one before. Parameter buffers, struct fields and `printf`'s arguments all follow this rule.
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

/// The first multiple of `alignment`, a power of two, that is not below `bytes`.
fn align_up(bytes: u64, alignment: u64) -> u64 {
    (bytes + (alignment - 1)) & !(alignment - 1)
}
