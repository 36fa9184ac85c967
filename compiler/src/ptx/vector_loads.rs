//! Loads of whole vectors.
//!
//! Vectors are structs in our modules. LLVM loads each field of a struct alone, and moves a load to the only block that uses its
//! result. Where one field decides whether another is used, that makes two accesses of memory in turn.

use inkwell::builder::{Builder, BuilderError};
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicTypeEnum, VectorType};
use inkwell::values::{
    AggregateValueEnum, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue,
};

use super::loops;
use crate::error::{Error, Result};

/// Makes loads of structs loads of vectors, where the fields are alike and the alignment is that of the vector.
pub(super) fn join(module: &Module<'_>) -> Result<()> {
    let builder = module.get_context().create_builder();
    for load in loops::instructions(module).collect::<Vec<_>>() {
        let Some(ty) = vector_of(load) else { continue };
        join_one(&builder, load, ty)
            .map_err(|error| Error::internal("ptx", format!("vector load: {error}")))?;
    }
    Ok(())
}

/// The vector of the fields of a struct that is loaded.
fn vector_of<'ctx>(load: InstructionValue<'ctx>) -> Option<VectorType<'ctx>> {
    let AnyTypeEnum::StructType(ty) = load.get_type() else { return None };
    if load.get_opcode() != InstructionOpcode::Load || load.get_volatile() != Ok(false) {
        return None;
    }
    let count = ty.count_fields();
    let field = ty.get_field_type_at_index(0)?;
    let is_alike = ty.get_field_types_iter().all(|one| one == field);
    let (vector, bits) = match field {
        BasicTypeEnum::IntType(ty) => (ty.vec_type(count), ty.get_bit_width()),
        BasicTypeEnum::FloatType(ty) => (ty.vec_type(count), ty.get_bit_width()),
        _ => return None,
    };
    let is_aligned = load.get_alignment().is_ok_and(|bytes| bytes * 8 >= count * bits);
    (is_alike && is_aligned && matches!((count, bits), (2, 32 | 64) | (4, 32))).then_some(vector)
}

fn join_one<'ctx>(
    builder: &Builder<'ctx>,
    load: InstructionValue<'ctx>,
    ty: VectorType<'ctx>,
) -> std::result::Result<(), BuilderError> {
    let address = load.get_operand(0).and_then(|operand| operand.value());
    let (Some(BasicValueEnum::PointerValue(address)), AnyTypeEnum::StructType(whole)) =
        (address, load.get_type())
    else {
        return Ok(());
    };
    builder.position_before(&load);
    let vector = builder.build_load(ty, address, "vector")?.into_vector_value();
    if let (Some(new), Ok(alignment)) = (vector.as_instruction_value(), load.get_alignment()) {
        let _ = new.set_alignment(alignment);
    }
    let mut whole: AggregateValueEnum<'ctx> = whole.get_undef().into();
    for at in 0..ty.get_size() {
        let index = ty.get_context().i32_type().const_int(u64::from(at), false);
        let field = builder.build_extract_element(vector, index, "field")?;
        whole = builder.build_insert_value(whole, field, at, "whole")?;
    }
    if let Some(whole) = whole.into_struct_value().as_instruction_value() {
        load.replace_all_uses_with(&whole);
        load.erase_from_basic_block();
    }
    Ok(())
}
