//! Constants: as operands, and as the initial bytes of variables.

use gridlet_lang::ir::{Const, Init, InstKind, Operand};
use gridlet_lang::operators::BinaryOp;
use gridlet_lang::types::{Scalar, Type};
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::LLVMConstRealGetDouble;

use super::Step;
use super::body::Body;
use crate::modules::kernels::name;
use crate::modules::layout::{extent, field_offset, pointer};
use crate::nvvm::legacy::llvm::{Kind, Shape, Value};

impl<'m> Body<'_, 'm> {
    /// A value as an operand.
    pub(super) fn operand(&mut self, value: Value<'m>) -> Step<Operand> {
        if let Some(known) = self.values.get(&value) {
            return Ok(known.clone());
        }
        match value.kind() {
            Kind::Instruction | Kind::Parameter => Err("a value that is used before it".into()),
            Kind::Function => super::kernel_address(self.importer, value),
            Kind::Variable => match self.importer.address(value)? {
                Some((id, ty)) => Ok(self.cast(Operand::Global(id), &ty, &pointer())),
                None => Ok(self.dynamic_shared()),
            },
            Kind::Null | Kind::Undefined | Kind::Zero => {
                let ty = self.type_of(value)?;
                Ok(Operand::Const(match ty {
                    Type::Scalar(Scalar::Bool) => Const::Bool(false),
                    Type::Scalar(scalar) if scalar.is_integer() => Const::Int(scalar, 0),
                    Type::Scalar(scalar) => Const::Float(scalar, 0.0),
                    other => Const::Zero(other),
                }))
            }
            Kind::Int => match self.type_of(value)? {
                Type::Scalar(Scalar::Bool) => {
                    Ok(Operand::Const(Const::Bool(value.unsigned() == Some(1))))
                }
                Type::Scalar(scalar) => {
                    Ok(Body::number(scalar, value.unsigned().unwrap_or_default()))
                }
                _ => Err("this constant".into()),
            },
            Kind::Real => {
                let scalar = self.type_of(value)?.as_scalar().ok_or("this constant")?;
                let number = real(value);
                if !number.is_nan() {
                    return Ok(Operand::Const(Const::Float(scalar, number)));
                }
                // The IR's constants are numbers. As in the language, one NaN is as good as another.
                let zero = || Operand::Const(Const::Float(scalar, 0.0));
                Ok(self.emit(InstKind::Binary(BinaryOp::Div, zero(), zero()), Type::Scalar(scalar)))
            }
            Kind::Aggregate => {
                let ty = self.type_of(value)?;
                let mut parts = vec![];
                while let Some(part) = value.element(parts.len() as u32) {
                    parts.push(self.operand(part)?);
                }
                Ok(self.emit(InstKind::Aggregate(parts), ty))
            }
            Kind::Expression => match value.constant_opcode() {
                LLVMOpcode::LLVMGetElementPtr => self.element_address(value),
                opcode @ (LLVMOpcode::LLVMBitCast
                | LLVMOpcode::LLVMAddrSpaceCast
                | LLVMOpcode::LLVMPtrToInt
                | LLVMOpcode::LLVMIntToPtr) => {
                    let inner = value.operand(0);
                    let (from, to) = (self.type_of(inner)?, self.type_of(value)?);
                    let inner = self.operand(inner)?;
                    self.convert(opcode, inner, &from, &to)
                }
                _ => Err("this constant".into()),
            },
            _ => Err("this constant".into()),
        }
    }
}

fn real(value: Value<'_>) -> f64 {
    let mut is_inexact = 0;
    // SAFETY: it is a constant of a floating type, and the integer lives through the call.
    unsafe { LLVMConstRealGetDouble(value.raw(), &mut is_inexact) }
}

/// The initial value of a variable of `size` bytes.
pub(super) fn initial_value(value: Value<'_>, size: u64) -> Step<Init> {
    if matches!(value.kind(), Kind::Zero | Kind::Undefined | Kind::Null) {
        return Ok(Init::Zero);
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|error| error.to_string())?];
    write(value, &mut bytes)?;
    Ok(Init::Bytes(bytes))
}

fn write(value: Value<'_>, to: &mut [u8]) -> Step<()> {
    let mut put = |bytes: &[u8]| {
        let room = to.get_mut(..bytes.len()).ok_or("a value larger than its variable")?;
        room.copy_from_slice(bytes);
        Ok(())
    };
    match value.kind() {
        Kind::Zero | Kind::Undefined | Kind::Null => Ok(()),
        Kind::Int => {
            let size = extent(value.ty()).map_or(0, |extent| extent.size.min(8)) as usize;
            let number = value.unsigned().ok_or("an integer of more than 64 bits")?;
            put(&number.to_le_bytes()[..size])
        }
        Kind::Real => match value.ty().shape() {
            Shape::Float => put(&(real(value) as f32).to_le_bytes()),
            Shape::Double => put(&real(value).to_le_bytes()),
            _ => Err("the initial value of a variable with 16-bit numbers".into()),
        },
        Kind::Aggregate => {
            let ty = value.ty();
            let mut at = 0;
            while let Some(part) = value.element(at) {
                let size = extent(part.ty()).ok_or("an initial value of this type")?;
                let offset = match ty.shape() {
                    Shape::Struct => field_offset(ty, at as usize),
                    _ => Some(u64::from(at) * size.size),
                };
                let offset = offset.ok_or("an initial value of this type")? as usize;
                write(part, to.get_mut(offset..).ok_or("an initial value of this type")?)?;
                at += 1;
            }
            Ok(())
        }
        Kind::Variable | Kind::Function | Kind::Expression => {
            Err(format!("the address `@{}` in an initial value", name(value)))
        }
        _ => Err("an initial value of this type".into()),
    }
}
