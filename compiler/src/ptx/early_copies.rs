//! Copies of values before they change.
//!
//! In `last = x; x += step;` the new `x` takes the register of the old one if that was copied before. LLVM's back end (22.1) copies at the
//! end of a block, where the new value needs another register, and copies that at the loop's end. Where only some ways through a
//! loop change `x`, the others copy it, too. ptxas keeps these copies.

use std::collections::{BTreeMap, BTreeSet};

use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::llvm_sys::core::LLVMSetOperand;
use inkwell::module::Module;
use inkwell::types::{AnyType as _, AnyTypeEnum, BasicType as _};
use inkwell::values::{
    AsValueRef, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, PhiValue,
};

use super::loops::{address, key, phis, values};
use crate::error::{Error, Result};

/// Copies the old values first, by assembly: LLVM would remove any other copy.
pub(super) fn add<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    let builder = context.create_builder();
    for block in module.get_functions().flat_map(|function| function.get_basic_block_iter()) {
        let phis = phis(block);
        if phis.len() > 1 {
            add_before(&phis, &builder, context)
                .map_err(|error| Error::internal("ptx", format!("copy: {error}")))?;
        }
    }
    Ok(())
}

/// Copies the old values of variables that the block of these `phi`s joins.
fn add_before<'ctx>(
    phis: &[PhiValue<'ctx>],
    builder: &Builder<'ctx>,
    context: &'ctx Context,
) -> std::result::Result<(), BuilderError> {
    // By block before and value, which `phi`s get it from there, and where in the list of their operands.
    let mut copied: BTreeMap<(usize, usize), Vec<(PhiValue<'ctx>, u32)>> = BTreeMap::new();
    for phi in phis {
        for (at, (value, from)) in (0..).zip(phi.get_incomings()) {
            copied.entry((address(from), key(&value))).or_default().push((*phi, at));
        }
    }
    for variable in phis {
        // Its values on the ways that do not change it.
        let mut held: BTreeSet<usize> =
            variable.get_incomings().map(|(value, _)| key(&value)).collect();
        held.insert(key(variable));
        for (new, from) in variable.get_incomings() {
            let new = new.as_instruction_value().filter(|new| {
                new.get_parent() == Some(from) && new.get_opcode() != InstructionOpcode::Phi
            });
            let Some(new) = new else { continue };
            for old in values(new).filter(|old| held.contains(&key(old))) {
                let Some(copies) = copied.remove(&(address(from), key(&old))) else { continue };
                let Some(copy) = copy_before(builder, context, new, old)? else { continue };
                for (phi, at) in copies {
                    // SAFETY: the operands of a `phi` are its values, in this order, and the copy has the type of the old value.
                    unsafe { LLVMSetOperand(phi.as_value_ref(), at, copy.as_value_ref()) };
                }
            }
        }
    }
    Ok(())
}

/// A copy of a number before an instruction.
fn copy_before<'ctx>(
    builder: &Builder<'ctx>,
    context: &'ctx Context,
    place: InstructionValue<'ctx>,
    old: BasicValueEnum<'ctx>,
) -> std::result::Result<Option<BasicValueEnum<'ctx>>, BuilderError> {
    let ty = old.get_type();
    let (word, register) = match ty.as_any_type_enum() {
        AnyTypeEnum::IntType(ty) => match ty.get_bit_width() {
            32 => ("b32", "r"),
            64 => ("b64", "l"),
            _ => return Ok(None),
        },
        AnyTypeEnum::FloatType(ty) => match ty.get_bit_width() {
            32 => ("f32", "f"),
            64 => ("f64", "d"),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let function = ty.fn_type(&[ty.into()], false);
    let assembly = context.create_inline_asm(
        function,
        format!("mov.{word} $0, $1;"),
        format!("={register},{register}"),
        false,
        false,
        None,
        false,
    );
    builder.position_before(&place);
    let call = builder.build_indirect_call(function, assembly, &[old.into()], "old")?;
    Ok(call.try_as_basic_value().basic())
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::super::loops::module_of;
    use super::add;

    #[test]
    fn old_values_are_copied_before_they_change() {
        let text = "
            define float @walk(float %dx, float %dy, i1 %first, i1 %done) {
            entry:
              br label %head
            head:
              %x = phi float [ 0.0, %entry ], [ %x.next, %join ]
              %y = phi float [ 0.0, %entry ], [ %y.next, %join ]
              br i1 %first, label %left, label %right
            left:
              %x.sum = fadd float %x, %dx
              br label %join
            right:
              %y.sum = fadd float %y, %dy
              br label %join
            join:
              %x.next = phi float [ %x.sum, %left ], [ %x, %right ]
              %y.next = phi float [ %y, %left ], [ %y.sum, %right ]
              %last = phi float [ %x, %left ], [ %y, %right ]
              br i1 %done, label %exit, label %head
            exit:
              ret float %last
            }
            define i32 @apart(i32 %n, i1 %done) {
            entry:
              br label %head
            head:
              %i = phi i32 [ 0, %entry ], [ %i.next, %head ]
              %k = phi i32 [ 0, %entry ], [ %n, %head ]
              %i.next = add i32 %i, 1
              br i1 %done, label %exit, label %head
            exit:
              ret i32 %k
            }";
        let context = Context::create();
        let module = module_of(&context, text);
        add(&module, &context).expect("copies");
        module.verify().expect("a right module");
        insta::assert_snapshot!(module.print_to_string().to_string());
    }
}
