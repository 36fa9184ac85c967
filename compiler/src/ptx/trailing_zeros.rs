//! Trailing zeros for LLVM's back end.
//!
//! PTX counts leading zeros and set bits, but not trailing zeros. The back end writes `llvm.cttz` as `ctpop(~x & (x - 1))`, with a
//! branch around it for zero, though the sum is right for zero too. Where a 64-bit result is compared with 1 it fails (LLVM 22.1:
//! "Copy one register into another with a different width"). Neither happens if the module holds the sum itself.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::{Builder, BuilderError};
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntMathValue};

use crate::error::{Error, Result};

const COUNT: &str = "llvm.cttz.";

/// Replaces `llvm.cttz` of all types by functions that are to be inlined.
///
/// Passes that combine instructions would make `llvm.cttz` of the sum, so none may follow.
pub(super) fn expand(module: &Module<'_>) -> Result<()> {
    for count in module.get_functions() {
        let name = count.get_name().to_string_lossy();
        if let Some(ty) = name.strip_prefix(COUNT) {
            let sum = sum_of(module, count, ty)
                .map_err(|error| Error::internal("ptx", format!("{name}: {error}")))?;
            count.replace_all_uses_with(sum);
        }
    }
    Ok(())
}

/// A function of the same type as `count`, the intrinsic for `ty`.
fn sum_of<'ctx>(
    module: &Module<'ctx>,
    count: FunctionValue<'ctx>,
    ty: &str,
) -> std::result::Result<FunctionValue<'ctx>, BuilderError> {
    let context = module.get_context();
    let sum = format!("gridlet.cttz.{ty}");
    let sum = module.add_function(&sum, count.get_type(), Some(Linkage::Internal));
    let inlined = Attribute::get_named_enum_kind_id("alwaysinline");
    sum.add_attribute(AttributeLoc::Function, context.create_enum_attribute(inlined, 0));
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(sum, "entry"));
    let Some(value) = sum.get_first_param() else { return Err(BuilderError::UnsetPosition) };
    let below = if let BasicTypeEnum::VectorType(ty) = value.get_type() {
        let one = ty.get_element_type().into_int_type().const_all_ones();
        let ones = VectorType::const_vector(&vec![one; ty.get_size() as usize]);
        below(&builder, value.into_vector_value(), ones)?.as_basic_value_enum()
    } else {
        let value = value.into_int_value();
        below(&builder, value, value.get_type().const_all_ones())?.as_basic_value_enum()
    };
    let set_bits = format!("llvm.ctpop.{ty}");
    let set_bits = module.get_function(&set_bits).unwrap_or_else(|| {
        let ty = inkwell::types::BasicType::fn_type(
            &value.get_type(),
            &[value.get_type().into()],
            false,
        );
        module.add_function(&set_bits, ty, None)
    });
    let bits = builder.build_call(set_bits, &[below.into()], "")?;
    let bits: Option<BasicValueEnum<'_>> = bits.try_as_basic_value().basic();
    builder.build_return(bits.as_ref().map(|bits| bits as &dyn BasicValue<'_>))?;
    Ok(sum)
}

/// A number with one bit for each trailing zero of `value`: `~value & (value - 1)`.
fn below<'ctx, T: IntMathValue<'ctx> + Copy>(
    builder: &Builder<'ctx>,
    value: T,
    ones: T,
) -> std::result::Result<T, BuilderError> {
    let others = builder.build_xor(value, ones, "")?;
    let less = builder.build_int_add(value, ones, "")?;
    builder.build_and(others, less, "")
}
