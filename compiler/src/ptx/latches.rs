//! One jump back for each loop.
//!
//! A `continue` jumps back from the middle of a loop. Where a value changes only on the other ways back, LLVM makes two nested loops
//! of the loop, and the threads of a warp that continue go round the inner one while the others wait.

use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::llvm_sys::core::{LLVMBasicBlockAsValue, LLVMSetOperand};
use inkwell::module::Module;
use inkwell::values::{AsValueRef, InstructionOpcode};

use super::{loops, unrolling};
use crate::error::{Error, Result};

/// Leads all jumps back of a loop through one block, in functions whose variables are in memory: modules of other compilers may have
/// values that depend on the way back, and stay as they are.
pub(super) fn join<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    for function in module.get_functions() {
        for (head, from) in loops::jumps_back(function) {
            let first = head.get_first_instruction().map(|first| first.get_opcode());
            if from.len() > 1 && first != Some(InstructionOpcode::Phi) {
                join_one(head, &from, context)?;
            }
        }
    }
    Ok(())
}

fn join_one<'ctx>(
    head: BasicBlock<'ctx>,
    from: &[BasicBlock<'ctx>],
    context: &'ctx Context,
) -> Result<()> {
    let hint = context.get_kind_id("llvm.loop");
    let Some(last) = from.last() else { return Ok(()) };
    let latch = context.insert_basic_block_after(*last, "latch");
    let builder = context.create_builder();
    builder.position_at_end(latch);
    let branch = builder
        .build_unconditional_branch(head)
        .map_err(|error| Error::internal("ptx", format!("jumps back: {error}")))?;
    for jump in from.iter().filter_map(|block| block.get_terminator()) {
        if let Some(node) = jump.get_metadata(hint) {
            unrolling::set(branch, node, hint)?;
        }
        for (at, operand) in (0..).zip(jump.get_operands()) {
            if operand.and_then(|operand| operand.block()) == Some(head) {
                // SAFETY: the operand is a block of this function, and so is its replacement.
                unsafe {
                    let latch = LLVMBasicBlockAsValue(latch.as_mut_ptr());
                    LLVMSetOperand(jump.as_value_ref(), at, latch);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::super::loops::module_of;
    use super::join;

    #[test]
    fn jumps_back_lead_through_one_block_with_the_hint() {
        let text = "
            define void @k(i1 %a, i1 %b) {
              br label %head
            head:
              call void @f()
              br i1 %a, label %head, label %rest, !llvm.loop !0
            rest:
              call void @f()
              br i1 %b, label %head, label %end, !llvm.loop !0
            end:
              ret void
            }
            declare void @f()
            !0 = distinct !{!0, !1}
            !1 = !{!\"llvm.loop.unroll.disable\"}";
        let context = Context::create();
        let module = module_of(&context, text);
        join(&module, &context).expect("joined");
        module.verify().expect("a right module");
        insta::assert_snapshot!(module.print_to_string().to_string());
    }
}
