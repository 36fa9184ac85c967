//! By-value struct and vector parameters in the calling conventions of C and CUDA C++.
//!
//! In LLVM, the front end implements this part of a calling convention: it passes a struct as its
//! parts, as an array of registers, or as a pointer with the attribute `byval` or `sret`. This
//! module follows clang's choice of types, so that functions that clang compiled to LLVM IR can be
//! linked.
//!
//! A vector has the type of CUDA's headers, `struct { float x, y, z, w; }` with its alignment;
//! `f16` is C's `_Float16` and `bf16` is `__bf16`.

mod aapcs64;
mod system_v;
#[cfg(test)]
mod tests;

use gridlet_lang::layout::{self, Leaf};
use gridlet_lang::types::{Scalar, Structs, Type};

/// A calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Convention {
    /// CUDA C++ device functions: every struct is an array of bytes with its alignment in the
    /// `.param` space, which LLVM expresses as `byval` (PTX ISA, "Parameter State Space").
    Cuda,
    /// C on x86-64, except on Windows: System V Application Binary Interface, AMD64 Architecture
    /// Processor Supplement, 3.2.3 "Parameter Passing".
    SystemV,
    /// C on 64-bit Arm, except on Windows and Apple's systems: Procedure Call Standard for the Arm
    /// 64-bit Architecture, 6.8.2 "Parameter passing rules".
    Aapcs64,
}

/// The type of a value in one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// An integer of this many bits; 24, 40, 48 and 56 occupy part of a larger register.
    Int(u32),
    /// A pointer.
    Pointer,
    /// A float.
    Float(Scalar),
    /// Several floats in one register.
    Floats(Scalar, u32),
}

/// How a parameter or result is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// Directly: numbers, `bool`, pointers.
    Itself,
    /// In registers, each loaded from the given byte offset. As parameters they are separate; as
    /// a result, two of them form a struct.
    Pieces(Vec<(u64, Register)>),
    /// As one array of registers, which LLVM keeps together.
    Array {
        /// The type of each register.
        element: Register,
        /// The number of registers.
        count: u32,
        /// The alignment in bytes on the stack, where LLVM needs it explicitly.
        stack_alignment: Option<u32>,
    },
    /// A parameter as a copy on the stack (`byval`), a result in memory that the caller provides
    /// (`sret`).
    Memory,
    /// By the address of a copy, which the callee may modify.
    Address,
}

/// How a function is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// One per parameter.
    pub(super) parameters: Vec<Passing>,
    /// Also [`Passing::Itself`] if there is no result.
    pub(super) result: Passing,
}

/// Maximum size in bytes of an array that a CUDA function takes or returns: LLVM splits it into
/// elements.
pub(super) const MAX_CUDA_ARRAY_BYTES: u64 = 4096;

/// Whether a type has its own passing rules.
pub(super) fn is_aggregate(ty: &Type) -> bool {
    matches!(ty, Type::Struct(_) | Type::Vector(..) | Type::Array(..))
}

impl Convention {
    /// The C convention of an LLVM target triple; `None` if unknown.
    pub(super) fn of_c(triple: &str) -> Option<Convention> {
        let architecture = triple.split('-').next().unwrap_or_default();
        let has = |name: &str| triple.contains(name);
        match architecture {
            "x86_64" if !has("windows") && !has("cygwin") && !has("gnux32") => {
                Some(Convention::SystemV)
            }
            "aarch64" if has("linux") && !has("ilp32") => Some(Convention::Aapcs64),
            _ => None,
        }
    }

    /// Classifies the parameters and the result of a function.
    pub(super) fn signature(
        self,
        parameters: &[Type],
        result: &Type,
        structs: &Structs,
    ) -> Signature {
        match self {
            Convention::Cuda => cuda(parameters, result, structs),
            Convention::SystemV => system_v::signature(parameters, result, structs),
            Convention::Aapcs64 => aapcs64::signature(parameters, result, structs),
        }
    }
}

fn cuda(parameters: &[Type], result: &Type, structs: &Structs) -> Signature {
    // LLVM gives an array its element type's alignment, so the element must be an integer of that
    // size.
    let array = |ty| {
        let layout = layout::type_layout(ty, structs);
        let count = u32::try_from(layout.size / layout.alignment).unwrap_or(u32::MAX);
        let element = Register::Int(8 * u32::try_from(layout.alignment).unwrap_or(1));
        Passing::Array { element, count, stack_alignment: None }
    };
    // libNVVM raises the alignment of a `byval` parameter to 4, but nvcc does not.
    let is_raised = |ty| {
        let layout = layout::type_layout(ty, structs);
        layout.alignment < 4 && layout.size <= MAX_CUDA_ARRAY_BYTES
    };
    let parameter = |ty| match is_aggregate(ty) {
        false => Passing::Itself,
        true if is_raised(ty) => array(ty),
        true => Passing::Memory,
    };
    Signature {
        parameters: parameters.iter().map(parameter).collect(),
        result: if is_aggregate(result) { array(result) } else { Passing::Itself },
    }
}

/// A number or pointer within a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    offset: u64,
    /// `None` for a pointer or a stream handle.
    scalar: Option<Scalar>,
}

impl Part {
    fn size(self) -> u64 {
        self.scalar.map_or(layout::POINTER_BYTES, Scalar::size)
    }

    fn float(self) -> Option<Scalar> {
        self.scalar.filter(|scalar| scalar.is_float())
    }
}

/// The numbers and pointers in a type, in ascending order of offset.
fn parts<'t>(ty: &'t Type, structs: &'t Structs) -> impl Iterator<Item = Part> + use<'t> {
    layout::leaves(ty, structs).flat_map(|Leaf { offset, ty, .. }| {
        let (scalar, count) = match ty {
            Type::Vector(scalar, count) => (Some(scalar), u64::from(count)),
            ty => (ty.as_scalar(), 1),
        };
        let size = scalar.map_or(0, Scalar::size);
        (0..count).map(move |at| Part { offset: offset + at * size, scalar })
    })
}
