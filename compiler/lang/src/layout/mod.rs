//! The layout pass: positions in parameter buffers, and the limit of 4,096 bytes.
//!
//! [`crate::types::layout`] lays out single types. No other code in the compiler computes an offset, a size
//! or an alignment.
//!
//! # Parameter buffers
//! NVIDIA states the rule in "Parameter Buffer Layout" of the dynamic parallelism chapter of the CUDA
//! Programming Guide:
//!
//! > Parameter reordering in the parameter buffer is prohibited, and each individual parameter placed in
//! > the parameter buffer is required to be aligned. That is, each parameter must be placed at the n-th
//! > byte in the parameter buffer, where n is the smallest multiple of the parameter size that is greater
//! > than the offset of the last byte taken by the preceding parameter. The maximum size of the parameter
//! > buffer is 4KB.
//!
//! "Multiple of the parameter size" holds for scalars, whose alignment is their size. It would be wrong for
//! aggregates: the child reads its parameters where ptxas places a `.param` of that alignment, and nvcc's own
//! launches store them there. A struct of three `int` after a `char` is at 4, not at 12; an `f32x3` is
//! aligned to 4. The first sentence of the quote is the rule, so *n is the smallest multiple of the
//! parameter's alignment* that is not below the end of the preceding parameter. The kernel parameter records
//! that ptxas writes into every cubin agree, and `link::cubin` compares each build with them.

mod module;

pub use module::{Layouts, compute_layouts, static_shared_bytes};

use serde_json::{Value, json};

pub use crate::types::layout::{
    BufferLayout, BufferSlot, MAX_TYPE_BYTES, POINTER_BYTES, TypeLayout, array_stride,
    buffer_layout, field_offset, type_layout, vector_element_offset,
};
pub use crate::types::leaves::{Leaf, Leaves, leaves};
use crate::types::{Structs, Type};

/// The maximum size of the parameters of a device-side launch, in bytes ("The maximum size of the parameter
/// buffer is 4KB": see the module's documentation).
pub const MAX_PARAMETER_BYTES: u32 = 4096;

/// The position of one parameter in the parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSlot {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The first byte in the buffer.
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
    /// Size in bytes, from 0 to the end of the last parameter.
    pub size: u32,
}

impl ParamLayout {
    /// The layout with the names of the types.
    pub fn described(&self, structs: &Structs) -> DescribedLayout {
        let slots = self.slots.iter().map(|slot| DescribedSlot {
            name: slot.name.clone(),
            ty: slot.ty.display(structs).to_string(),
            offset: slot.offset,
            size: slot.size,
            alignment: slot.alignment,
        });
        DescribedLayout { kernel: self.kernel.clone(), slots: slots.collect(), size: self.size }
    }
}

/// A [`ParamLayout`] with the names of the types, as in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedLayout {
    /// The kernel's name.
    pub kernel: String,
    /// Its parameters, in declaration order.
    pub slots: Vec<DescribedSlot>,
    /// Size in bytes.
    pub size: u32,
}

/// A [`ParamSlot`] with the name of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedSlot {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: String,
    /// The first byte in the buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub alignment: u32,
}

/// JSON of layouts: offsets, sizes and alignments in bytes.
pub fn to_json<'a>(layouts: impl IntoIterator<Item = &'a DescribedLayout>) -> Value {
    let kernels = layouts.into_iter().map(|layout| {
        let parameters = layout.slots.iter().map(|slot| {
            json!({
                "name": slot.name, "type": slot.ty,
                "offset": slot.offset, "size": slot.size, "alignment": slot.alignment,
            })
        });
        let parameters: Vec<Value> = parameters.collect();
        json!({"kernel": layout.kernel, "size": layout.size, "parameters": parameters})
    });
    json!({"limit": MAX_PARAMETER_BYTES, "kernels": kernels.collect::<Vec<Value>>()})
}

#[cfg(test)]
mod tests;
