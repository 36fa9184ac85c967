//! Loads, stores and parts of values: the only file that moves values between registers and memory.
//!
//! A wide value ([`Carrier::Memory`]) is a pointer to a copy in the frame. The defining instruction
//! fills the copy, and nothing writes it afterwards; when the instruction runs again, in a loop,
//! all uses of the previous value are past, because its definition dominates them.

use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValue, BasicValueEnum, InstructionValue, IntValue, PointerValue};

use super::bug;
use super::function::{FunctionEmitter, set_alignment};
use super::instruction::pointee;
use super::types::Carrier;
use super::values::{int, pointer};
use crate::error::Result;
use gridlet_lang::ir::{Const, InstKind, Operand};
use gridlet_lang::types::{Scalar, Type};

/// How many fields and elements an address is followed through.
const MOST_STEPS: u32 = 8;

/// The alignment of a part of something aligned.
fn alignment_at(alignment: u32, offset: u64) -> u32 {
    match offset {
        0 => alignment,
        _ => alignment.min(1 << offset.trailing_zeros().min(31)),
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// The alignment that an address certainly has, in bytes: that of the type it points to, or more in a struct or an array whose
    /// alignment is greater.
    pub(super) fn alignment_of(&self, address: &Operand) -> Result<u32> {
        // On the CPU, fields of a value that is not aligned can be accessed, as `--check` reports.
        let steps = if self.cx.cpu().is_some() { 0 } else { MOST_STEPS };
        self.alignment_over(address, steps)
    }

    fn alignment_over(&self, address: &Operand, steps: u32) -> Result<u32> {
        let ty = self.type_of(address);
        let own = self.cx.alignment(pointee(&ty)?);
        let Some(steps) = steps.checked_sub(1) else { return Ok(own) };
        let around = match self.kind(address) {
            Some(InstKind::FieldAddress { base, index }) => {
                let around = self.type_of(base);
                let (_, offset) = self.cx.part(pointee(&around)?, u64::from(*index))?;
                alignment_at(self.alignment_over(base, steps)?, offset)
            }
            Some(InstKind::ElementAddress { base, .. }) => {
                alignment_at(self.alignment_over(base, steps)?, self.cx.size(pointee(&ty)?))
            }
            _ => own,
        };
        Ok(around.max(own))
    }

    /// `base + offset` bytes.
    pub(super) fn offset(
        &self,
        base: PointerValue<'ctx>,
        offset: u64,
        name: &str,
    ) -> Result<PointerValue<'ctx>> {
        if offset == 0 {
            return Ok(base);
        }
        let bytes = self.cx.int_type(64).const_int(offset, false);
        // SAFETY: inkwell marks this unsafe because LLVM accepts any indices; one i64 into an i8 is
        // well-typed.
        Ok(unsafe { self.build().build_in_bounds_gep(self.cx.int_type(8), base, &[bytes], name)? })
    }

    /// Reads a `ty` from `base + offset` bytes. `is_frozen` promises that nothing writes there
    /// during the value's lifetime, so that a wide value needs no copy.
    pub(super) fn load_part(
        &self,
        base: PointerValue<'ctx>,
        offset: u64,
        ty: &Type,
        name: &str,
        is_frozen: bool,
    ) -> Result<BasicValueEnum<'ctx>> {
        self.load_aligned(base, offset, self.cx.alignment(ty), ty, name, is_frozen)
    }

    /// As [`Self::load_part`], from a place of this alignment, of at least that of the type.
    pub(super) fn load_aligned(
        &self,
        base: PointerValue<'ctx>,
        offset: u64,
        alignment: u32,
        ty: &Type,
        name: &str,
        is_frozen: bool,
    ) -> Result<BasicValueEnum<'ctx>> {
        match self.cx.carrier(ty) {
            Carrier::Nothing => Ok(self.cx.pointer_type().const_null().into()),
            Carrier::Memory => {
                let from = self.offset(base, offset, name)?;
                if is_frozen {
                    return Ok(from.into());
                }
                let copy = self.temporary(self.cx.size(ty), self.cx.alignment(ty), name)?;
                self.copy(copy, from, ty)?;
                Ok(copy.into())
            }
            Carrier::Registers => match whole_type(self.cx.value_type(ty)?, ty) {
                Some(whole) => {
                    let address = self.offset(base, offset, "")?;
                    self.load_leaf(address, alignment, ty, whole, name)
                }
                None => {
                    let mut value = self.undefined(ty)?;
                    for index in 0..self.cx.part_count(ty) {
                        let (part, at) = self.cx.part(ty, index)?;
                        let aligned = alignment_at(alignment, at);
                        let loaded =
                            self.load_aligned(base, offset + at, aligned, &part, "", is_frozen)?;
                        value = self.insert(value, loaded, index, name)?;
                    }
                    Ok(value)
                }
            },
        }
    }

    /// Reads what one load of LLVM reads.
    pub(super) fn load_leaf(
        &self,
        address: PointerValue<'ctx>,
        alignment: u32,
        ty: &Type,
        whole: BasicTypeEnum<'ctx>,
        name: &str,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (is_bool, is_word) = (*ty == Type::BOOL, self.is_word(ty));
        let memory = match (is_bool, is_word) {
            (true, _) => self.cx.int_type(8).into(),
            (_, true) => self.cx.int_type(32).into(),
            _ => whole,
        };
        let loaded = if is_bool || is_word { "" } else { name };
        let value = self.build().build_load(memory, address, loaded)?;
        if let Some(load) = value.as_instruction_value() {
            set_alignment(load, alignment)?;
            if self.is_invariant.get() {
                self.mark_invariant(load)?;
            }
        }
        Ok(match (is_bool, is_word) {
            (true, _) => self.byte_to_bool(int(value)?, name)?.into(),
            (_, true) => self.build().build_bit_cast(value, whole, name)?,
            _ => value,
        })
    }

    /// Says that nothing writes what a load reads while kernels run.
    pub(super) fn mark_invariant(&self, load: InstructionValue<'ctx>) -> Result<()> {
        let kind = self.cx.context.get_kind_id("invariant.load");
        load.set_metadata(self.cx.context.metadata_node(&[]), kind)
            .map_err(|error| bug(format!("invariant.load: {error}")))
    }

    /// Writes `value`, of type `ty`, to `base + offset` bytes.
    pub(super) fn store_part(
        &self,
        base: PointerValue<'ctx>,
        offset: u64,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
    ) -> Result<()> {
        self.store_aligned(base, offset, self.cx.alignment(ty), value, ty)
    }

    /// As [`Self::store_part`], to a place of this alignment, of at least that of the type.
    pub(super) fn store_aligned(
        &self,
        base: PointerValue<'ctx>,
        offset: u64,
        alignment: u32,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
    ) -> Result<()> {
        match self.cx.carrier(ty) {
            Carrier::Nothing => Ok(()),
            Carrier::Memory => self.copy(self.offset(base, offset, "")?, pointer(value)?, ty),
            Carrier::Registers => match whole_type(value.get_type(), ty) {
                Some(_) => {
                    let value = if *ty == Type::BOOL {
                        let byte = self.cx.int_type(8);
                        self.build().build_int_z_extend(int(value)?, byte, "")?.into()
                    } else if self.is_word(ty) {
                        self.build().build_bit_cast(value, self.cx.int_type(32), "")?
                    } else {
                        value
                    };
                    let address = self.offset(base, offset, "")?;
                    let store = self.build().build_store(address, value)?;
                    set_alignment(store, alignment)
                }
                None => {
                    for index in 0..self.cx.part_count(ty) {
                        let (part, at) = self.cx.part(ty, index)?;
                        let element = self.extract(value, index, "")?;
                        let aligned = alignment_at(alignment, at);
                        self.store_aligned(base, offset + at, aligned, element, &part)?;
                    }
                    Ok(())
                }
            },
        }
    }

    /// A byte in memory as a `bool`: true unless 0.
    pub(super) fn byte_to_bool(&self, byte: IntValue<'ctx>, name: &str) -> Result<IntValue<'ctx>> {
        let zero = byte.get_type().const_zero();
        Ok(self.build().build_int_compare(inkwell::IntPredicate::NE, byte, zero, name)?)
    }

    fn copy(&self, to: PointerValue<'ctx>, from: PointerValue<'ctx>, ty: &Type) -> Result<()> {
        let size = self.cx.int_type(64).const_int(self.cx.size(ty), false);
        let alignment = self.cx.alignment(ty);
        self.build().build_memcpy(to, alignment, from, alignment, size)?;
        Ok(())
    }

    /// Field, element or lane `index` of a value in registers.
    fn extract(
        &self,
        value: BasicValueEnum<'ctx>,
        index: u64,
        name: &str,
    ) -> Result<BasicValueEnum<'ctx>> {
        let at = index as u32;
        Ok(match value {
            BasicValueEnum::StructValue(value) => {
                self.build().build_extract_value(value, at, name)?
            }
            BasicValueEnum::ArrayValue(value) => {
                self.build().build_extract_value(value, at, name)?
            }
            BasicValueEnum::VectorValue(value) => {
                let lane = self.cx.int_type(32).const_int(index, false);
                self.build().build_extract_element(value, lane, name)?
            }
            other => return Err(bug(format!("{other} has no parts"))),
        })
    }

    /// `value` with field, element or lane `index` replaced.
    pub(super) fn insert(
        &self,
        value: BasicValueEnum<'ctx>,
        part: BasicValueEnum<'ctx>,
        index: u64,
        name: &str,
    ) -> Result<BasicValueEnum<'ctx>> {
        let at = index as u32;
        Ok(match value {
            BasicValueEnum::StructValue(value) => {
                self.build().build_insert_value(value, part, at, name)?.into_struct_value().into()
            }
            BasicValueEnum::ArrayValue(value) => {
                self.build().build_insert_value(value, part, at, name)?.into_array_value().into()
            }
            BasicValueEnum::VectorValue(value) => {
                let lane = self.cx.int_type(32).const_int(index, false);
                self.build().build_insert_element(value, part, lane, name)?.into()
            }
            other => return Err(bug(format!("{other} has no parts"))),
        })
    }

    fn undefined(&self, ty: &Type) -> Result<BasicValueEnum<'ctx>> {
        Ok(match self.cx.value_type(ty)? {
            BasicTypeEnum::StructType(ty) => ty.get_undef().into(),
            BasicTypeEnum::ArrayType(ty) => ty.get_undef().into(),
            BasicTypeEnum::VectorType(ty) => ty.get_undef().into(),
            other => return Err(bug(format!("{other} has no parts"))),
        })
    }

    /// Part `index` of a value of type `ty`.
    pub(super) fn part_of(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
        index: u32,
        name: &str,
    ) -> Result<BasicValueEnum<'ctx>> {
        let index = u64::from(index);
        let (part, offset) = self.cx.part(ty, index)?;
        match self.cx.carrier(ty) {
            Carrier::Registers => self.extract(value, index, name),
            Carrier::Memory => self.load_part(pointer(value)?, offset, &part, name, true),
            Carrier::Nothing => Ok(self.cx.pointer_type().const_null().into()),
        }
    }

    /// A value of type `ty` from all its parts.
    pub(super) fn aggregate(
        &self,
        parts: &[BasicValueEnum<'ctx>],
        ty: &Type,
    ) -> Result<BasicValueEnum<'ctx>> {
        if parts.len() as u64 != self.cx.part_count(ty) {
            return Err(bug("an aggregate with the wrong number of parts"));
        }
        match self.cx.carrier(ty) {
            Carrier::Nothing => Ok(self.cx.pointer_type().const_null().into()),
            Carrier::Registers => {
                let mut value = self.undefined(ty)?;
                for (index, &part) in parts.iter().enumerate() {
                    value = self.insert(value, part, index as u64, "")?;
                }
                Ok(value)
            }
            Carrier::Memory => {
                let copy = self.temporary(self.cx.size(ty), self.cx.alignment(ty), "aggregate")?;
                for (index, &value) in parts.iter().enumerate() {
                    let (part, offset) = self.cx.part(ty, index as u64)?;
                    self.store_part(copy, offset, value, &part)?;
                }
                Ok(copy.into())
            }
        }
    }

    /// The value of a constant.
    pub(super) fn constant(&self, constant: &Const) -> Result<BasicValueEnum<'ctx>> {
        Ok(match constant {
            Const::Bool(value) => self.cx.int_type(1).const_int(u64::from(*value), false).into(),
            Const::Int(scalar, value) => {
                let bits = scalar.bits();
                let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
                self.cx.int_type(bits).const_int(*value as u64 & mask, false).into()
            }
            Const::Float(scalar, value) if self.cx.is_bits(*scalar) => {
                self.narrow_constant(*value, *scalar).into()
            }
            Const::Float(scalar, value) => self.cx.float_type(*scalar).const_float(*value).into(),
            Const::Zero(ty) => match self.cx.carrier(ty) {
                Carrier::Nothing | Carrier::Registers => self.cx.value_type(ty)?.const_zero(),
                Carrier::Memory => {
                    let copy = self.temporary(self.cx.size(ty), self.cx.alignment(ty), "zero")?;
                    let zero = self.cx.int_type(8).const_zero();
                    let size = self.cx.int_type(64).const_int(self.cx.size(ty), false);
                    self.build().build_memset(copy, self.cx.alignment(ty), zero, size)?;
                    copy.into()
                }
            },
        })
    }
}

/// The LLVM type that loads or stores a value in one instruction; `None` if it must go part by
/// part. A vector of 3 takes 3 elements in memory but 4 in LLVM; a vector of `bool` takes a byte
/// per lane in memory but a bit in LLVM.
fn whole_type<'ctx>(value_type: BasicTypeEnum<'ctx>, ty: &Type) -> Option<BasicTypeEnum<'ctx>> {
    match ty {
        Type::Scalar(_) | Type::Pointer { .. } | Type::Stream => Some(value_type),
        Type::Vector(scalar, 2 | 4) if *scalar != Scalar::Bool => {
            Some(value_type.as_basic_type_enum())
        }
        _ => None,
    }
}
