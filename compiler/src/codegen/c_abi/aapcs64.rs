//! C on 64-bit Arm. Up to four floats of one type are passed in as many registers, other values of
//! up to 16 bytes in one or two general registers, and larger values by address.

use super::{Passing, Register, Signature, is_aggregate, parts};
use gridlet_lang::layout;
use gridlet_lang::types::{Scalar, Structs, Type};

pub(super) fn signature(parameters: &[Type], result: &Type, structs: &Structs) -> Signature {
    Signature {
        parameters: parameters.iter().map(|ty| parameter(ty, structs)).collect(),
        result: returned(result, structs),
    }
}

fn parameter(ty: &Type, structs: &Structs) -> Passing {
    if !is_aggregate(ty) {
        return Passing::Itself;
    }
    // The standard uses the members' alignment; a vector's alignment is an addition of its own
    // type.
    let natural = match ty {
        Type::Vector(scalar, _) => scalar.size(),
        _ => layout::type_layout(ty, structs).alignment,
    };
    if let Some((element, count)) = homogeneous(ty, structs) {
        let stack_alignment = Some(if natural >= 16 { 16 } else { 8 });
        return Passing::Array { element: Register::Float(element), count, stack_alignment };
    }
    match layout::type_layout(ty, structs).size {
        0..=8 => Passing::Pieces(vec![(0, Register::Int(64))]),
        9..=16 if natural >= 16 => Passing::Pieces(vec![(0, Register::Int(128))]),
        9..=16 => two_words(),
        _ => Passing::Address,
    }
}

fn returned(ty: &Type, structs: &Structs) -> Passing {
    if !is_aggregate(ty) {
        return Passing::Itself;
    }
    if let Some((element, count)) = homogeneous(ty, structs) {
        let element = Register::Float(element);
        return Passing::Array { element, count, stack_alignment: None };
    }
    let layout = layout::type_layout(ty, structs);
    match layout.size {
        0..=8 => Passing::Pieces(vec![(0, Register::Int(8 * layout.size as u32))]),
        9..=16 if layout.alignment >= 16 => Passing::Pieces(vec![(0, Register::Int(128))]),
        9..=16 => two_words(),
        _ => Passing::Memory,
    }
}

fn two_words() -> Passing {
    Passing::Array { element: Register::Int(64), count: 2, stack_alignment: None }
}

/// The type and number of the members of a "homogeneous floating-point aggregate": one to four
/// floats of one size, without padding, and nothing else.
fn homogeneous(ty: &Type, structs: &Structs) -> Option<(Scalar, u32)> {
    let parts: Vec<_> = parts(ty, structs).take(5).collect();
    let first = parts.first()?.float()?;
    let is_alike = parts.iter().all(|part| part.float().is_some() && part.size() == first.size());
    let is_full = layout::type_layout(ty, structs).size == first.size() * parts.len() as u64;
    (parts.len() <= 4 && is_alike && is_full).then_some((first, parts.len() as u32))
}
