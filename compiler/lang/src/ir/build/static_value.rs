//! The initial values of `static` variables as bytes.

use crate::check::tree::{Expr, ExprKind};
use crate::error::{Error, Result};
use crate::float;
use crate::ir::Init;
use crate::types::layout::{field_offset, type_layout};
use crate::types::{Scalar, Structs, Type};

/// The bytes of a value; padding is zero.
pub(super) fn initial_value(value: &Expr, structs: &Structs) -> Result<Init> {
    if value.is_zero() {
        return Ok(Init::Zero);
    }
    let size = type_layout(&value.ty, structs).size;
    let size = usize::try_from(size).map_err(|_| broken())?;
    let mut bytes = vec![0; size];
    write(value, structs, &mut bytes)?;
    Ok(Init::Bytes(bytes))
}

/// Writes a value to the start of `bytes`.
fn write(value: &Expr, structs: &Structs, bytes: &mut [u8]) -> Result<()> {
    let number: [u8; 16] = match (&value.kind, &value.ty) {
        (ExprKind::Int(value), _) => value.to_le_bytes(),
        (ExprKind::Bool(value), _) => u128::from(*value).to_le_bytes(),
        (ExprKind::Float(value), Type::Scalar(Scalar::F32)) => {
            u128::from((*value as f32).to_bits()).to_le_bytes()
        }
        (ExprKind::Float(value), Type::Scalar(Scalar::F16)) => {
            u128::from(float::to_f16(*value).to_bits()).to_le_bytes()
        }
        (ExprKind::Float(value), Type::Scalar(Scalar::Bf16)) => {
            u128::from(float::to_bf16(*value).to_bits()).to_le_bytes()
        }
        (ExprKind::Float(value), _) => u128::from(value.to_bits()).to_le_bytes(),
        (ExprKind::Cast(address), Type::Pointer { .. }) => {
            return write(address, structs, bytes);
        }
        (ExprKind::Aggregate(parts), Type::Struct(id)) => {
            for (at, part) in (0..).zip(parts) {
                write(part, structs, tail(bytes, field_offset(*id, at, structs))?)?;
            }
            return Ok(());
        }
        (ExprKind::Aggregate(parts), Type::Vector(scalar, _)) => {
            for (at, part) in (0..).zip(parts) {
                write(part, structs, tail(bytes, at * scalar.size())?)?;
            }
            return Ok(());
        }
        (ExprKind::Array(parts), Type::Array(element, _)) => {
            let stride = type_layout(element, structs).size;
            for (at, part) in (0..).zip(parts) {
                write(part, structs, tail(bytes, at * stride)?)?;
            }
            return Ok(());
        }
        (ExprKind::ArrayRepeat(part), Type::Array(element, count)) => {
            let stride = type_layout(element, structs).size;
            for at in 0..*count {
                write(part, structs, tail(bytes, at * stride)?)?;
            }
            return Ok(());
        }
        _ => return Err(broken()),
    };
    let size = type_layout(&value.ty, structs).size as usize;
    let (target, number) = (bytes.get_mut(..size), number.get(..size));
    let (Some(target), Some(number)) = (target, number) else { return Err(broken()) };
    target.copy_from_slice(number);
    Ok(())
}

fn tail(bytes: &mut [u8], offset: u64) -> Result<&mut [u8]> {
    usize::try_from(offset).ok().and_then(|offset| bytes.get_mut(offset..)).ok_or_else(broken)
}

fn broken() -> Error {
    Error::internal("ir", "the initial value of a `static` variable is not constant")
}
