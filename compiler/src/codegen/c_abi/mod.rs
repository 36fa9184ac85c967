//! How functions of C and CUDA C++ pass structs and vectors by value.
//!
//! LLVM's front ends, not LLVM, know how a C compiler passes a struct: they say its parts as parameters, or as
//! an array of registers, or as a pointer with the attribute `byval` or `sret`. This is that part of a front
//! end, with the types that clang chooses, so that functions which clang compiled to LLVM IR can be linked in.
//!
//! A vector is what it is in CUDA's headers, `struct { float x, y, z, w; }` with its alignment; `f16` is C's
//! `_Float16` and `bf16` `__bf16`.

mod aapcs64;
mod system_v;
#[cfg(test)]
mod tests;

use gridlet_lang::layout::{self, Leaf};
use gridlet_lang::types::{Scalar, Structs, Type};

/// A calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Convention {
    /// CUDA C++'s for device functions: every struct is bytes of its alignment in the `.param` space, for which
    /// LLVM has `byval` (PTX ISA, "Parameter State Space").
    Cuda,
    /// C's on x86-64 but for Windows: System V Application Binary Interface, AMD64 Architecture Processor
    /// Supplement, 3.2.3 "Parameter Passing".
    SystemV,
    /// C's on 64-bit Arm but for Windows and Apple's systems: Procedure Call Standard for the Arm 64-bit
    /// Architecture, 6.8.2 "Parameter passing rules".
    Aapcs64,
}

/// A type that fits a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// An integer of so many bits; 24, 40, 48 and 56 are bytes that a larger register has room for.
    Int(u32),
    /// A pointer.
    Pointer,
    /// A float.
    Float(Scalar),
    /// Several floats in one register.
    Floats(Scalar, u32),
}

/// How a value is passed or returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// By itself: numbers, `bool`, pointers.
    Itself,
    /// As the registers that the bytes from these offsets on are read to. As parameters they are one each, as
    /// a result a struct of them if they are two.
    Pieces(Vec<(u64, Register)>),
    /// As one array of registers, which LLVM keeps together.
    Array {
        /// What each register holds.
        element: Register,
        /// How many.
        count: u32,
        /// The alignment in bytes that it has on the stack, where LLVM has to be told.
        stack_alignment: Option<u32>,
    },
    /// A parameter as a copy on the stack (`byval`), a result in memory that the caller names (`sret`).
    Memory,
    /// As the address of a copy that the function may write to.
    Address,
}

/// How a function is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// By parameter.
    pub(super) parameters: Vec<Passing>,
    /// [`Passing::Itself`] also if there is none.
    pub(super) result: Passing,
}

/// Most bytes of an array that a function of CUDA takes or returns: LLVM takes it apart element by element.
pub(super) const MAX_CUDA_ARRAY_BYTES: u64 = 4096;

/// Whether a type is passed by rules of its own.
pub(super) fn is_aggregate(ty: &Type) -> bool {
    matches!(ty, Type::Struct(_) | Type::Vector(..) | Type::Array(..))
}

impl Convention {
    /// That of C for a target triple of LLVM's; `None` if it is not known here.
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

    /// How a function with these parameters and this result is called.
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
    // LLVM aligns an array to its type's alignment, so that type has to be of integers as wide.
    let array = |ty| {
        let layout = layout::type_layout(ty, structs);
        let count = u32::try_from(layout.size / layout.alignment).unwrap_or(u32::MAX);
        let element = Register::Int(8 * u32::try_from(layout.alignment).unwrap_or(1));
        Passing::Array { element, count, stack_alignment: None }
    };
    // libNVVM raises the alignment of a `byval` parameter to 4, which is not what nvcc defines.
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

/// The numbers and pointers of a type, in ascending order of offset.
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
