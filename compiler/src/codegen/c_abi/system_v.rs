//! C on x86-64. A value of up to two eightbytes is passed in the registers of its eightbytes'
//! classes, if enough are free for the whole value; all others are passed on the stack.

use super::{Part, Passing, Register, Signature, is_aggregate, parts};
use gridlet_lang::layout;
use gridlet_lang::types::{Scalar, Structs, Type};

/// Free parameter registers.
struct Free {
    /// `rdi`, `rsi`, `rdx`, `rcx`, `r8`, `r9`.
    general: usize,
    /// `xmm0` to `xmm7`.
    vector: usize,
}

pub(super) fn signature(parameters: &[Type], result: &Type, structs: &Structs) -> Signature {
    let mut free = Free { general: 6, vector: 8 };
    let result = match is_aggregate(result) {
        false => Passing::Itself,
        true => pieces(result, structs).map_or(Passing::Memory, Passing::Pieces),
    };
    // The address of the result is passed like a first parameter.
    if result == Passing::Memory {
        free.general -= 1;
    }
    let parameters = parameters.iter().map(|ty| {
        if !is_aggregate(ty) {
            let is_float = ty.as_scalar().is_some_and(Scalar::is_float);
            let left = if is_float { &mut free.vector } else { &mut free.general };
            *left = left.saturating_sub(1);
            return Passing::Itself;
        }
        let Some(pieces) = pieces(ty, structs) else { return Passing::Memory };
        let is_general =
            |piece: &&(u64, Register)| matches!(piece.1, Register::Int(_) | Register::Pointer);
        let general = pieces.iter().filter(is_general).count();
        let vector = pieces.len() - general;
        if general > free.general || vector > free.vector {
            let size = layout::type_layout(ty, structs).size;
            // With no register free, the stack copy looks like an integer's, and clang passes it as
            // one.
            return match free.general == 0 && size <= 8 {
                true => Passing::Pieces(vec![(0, Register::Int(8 * size as u32))]),
                false => Passing::Memory,
            };
        }
        free.general -= general;
        free.vector -= vector;
        Passing::Pieces(pieces)
    });
    Signature { parameters: parameters.collect(), result }
}

/// The registers of a type's eightbytes; `None` if it has more than two, which are passed in memory.
fn pieces(ty: &Type, structs: &Structs) -> Option<Vec<(u64, Register)>> {
    let size = layout::type_layout(ty, structs).size;
    if size > 16 {
        return None;
    }
    let parts: Vec<Part> = parts(ty, structs).collect();
    let starts = (0..size).step_by(8);
    Some(starts.map(|start| (start, register(&parts, start, size))).collect())
}

/// The register type for the eightbyte at `start` of a type of `size` bytes: of class INTEGER if it
/// contains anything but floats, else of class SSE. Alignment keeps every part within one
/// eightbyte.
fn register(parts: &[Part], start: u64, size: u64) -> Register {
    let within = |part: &&Part| (start..start + 8).contains(&part.offset);
    let at = |offset: u64| parts.iter().find(|part| part.offset == offset);
    if parts.iter().filter(within).all(|part| part.float().is_some()) {
        let float = |offset| at(offset).and_then(|part| part.float());
        return floats(float, start, size);
    }
    let rest = Register::Int(8 * (size - start).min(8) as u32);
    match at(start) {
        Some(Part { scalar: None, .. }) => Register::Pointer,
        // If only padding follows, the register needs no more bits than the part.
        Some(first) if first.float().is_none() && parts.iter().filter(within).count() == 1 => {
            Register::Int(8 * first.size() as u32)
        }
        _ => rest,
    }
}

/// The floats of an eightbyte as clang loads them. `float` returns the float at an offset, if there
/// is one. A `bf16` goes into the register as `f16`: without AVX512-BF16, LLVM passes a `bfloat` by way of `f32`, and rounds it by
/// `__truncsfbf2`, which GCC 12's library lacks.
fn floats(float: impl Fn(u64) -> Option<Scalar>, start: u64, size: u64) -> Register {
    let float = |offset| {
        float(offset).map(|scalar| if scalar == Scalar::Bf16 { Scalar::F16 } else { scalar })
    };
    let Some(first) = float(start).filter(|first| *first != Scalar::F64) else {
        return Register::Float(Scalar::F64);
    };
    let is_short = |scalar: Scalar| scalar.size() == 2;
    let has_upper_half = size - start > 4;
    let upper_half = if has_upper_half { float(start + 4) } else { None };
    let mut second = if size - start > first.size() { float(start + first.size()) } else { None };
    if second.is_none() && is_short(first) {
        second = upper_half;
    }
    match second {
        None => Register::Float(first),
        Some(Scalar::F32) if first == Scalar::F32 => Register::Floats(Scalar::F32, 2),
        Some(second) if is_short(first) && is_short(second) && upper_half.is_none() => {
            Register::Floats(first, 2)
        }
        Some(second) if is_short(first) && is_short(second) => Register::Floats(first, 4),
        Some(_) => Register::Floats(Scalar::F16, 4),
    }
}
