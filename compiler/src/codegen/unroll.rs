//! Loop hints: the metadata `llvm.loop` on the branches back to a loop's header (LLVM Language
//! Reference, "llvm.loop.unroll.*"; NVVM IR accepts the same).

use std::cell::RefCell;
use std::collections::BTreeMap;

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::core::{LLVMMDNodeInContext2, LLVMMetadataAsValue, LLVMValueAsMetadata};
use inkwell::llvm_sys::debuginfo::{LLVMMetadataReplaceAllUsesWith, LLVMTemporaryMDNode};
use inkwell::llvm_sys::prelude::LLVMMetadataRef;
use inkwell::values::{AsValueRef, BasicMetadataValueEnum, InstructionValue, MetadataValue};

use super::bug;
use super::context::ModuleContext;
use super::function::FunctionEmitter;
use crate::error::Result;
use gridlet_lang::ir::{BlockId, Unroll};

/// The nodes of a function's loops: all back edges of a loop must share one node.
pub(super) type LoopNodes<'ctx> = RefCell<BTreeMap<BlockId, MetadataValue<'ctx>>>;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Marks the branch at a block's end if it is the back edge of a loop with an unroll hint.
    pub(super) fn mark_loop(
        &self,
        branch: InstructionValue<'ctx>,
        from: BlockId,
        targets: impl Iterator<Item = BlockId>,
    ) -> Result<()> {
        // Only back edges go against the order of blocks.
        for to in targets.filter(|to| *to <= from) {
            let head = self.function.blocks.get(to.index());
            let Some(unroll) = head.and_then(|head| head.unroll) else { continue };
            if unroll == Unroll::Known && self.cx.cpu().is_some() {
                continue;
            }
            let known = self.loops.borrow().get(&to).copied();
            let node = match known {
                Some(node) => node,
                None => {
                    let node = self.cx.loop_node(unroll);
                    self.loops.borrow_mut().insert(to, node);
                    node
                }
            };
            let kind = self.cx.context.get_kind_id("llvm.loop");
            branch.set_metadata(node, kind).map_err(|error| bug(format!("llvm.loop: {error}")))?;
        }
        Ok(())
    }
}

impl<'ctx> ModuleContext<'ctx, '_> {
    fn loop_node(&self, unroll: Unroll) -> MetadataValue<'ctx> {
        let hint = match unroll {
            Unroll::Full => hint(self.context, "full", None),
            Unroll::Known => hint(self.context, "runtime.disable", None),
            Unroll::Count(1) => hint(self.context, "disable", None),
            Unroll::Count(count) => hint(self.context, "count", Some(count)),
        };
        loop_node(self.context, &[hint])
    }
}

/// The hint `llvm.loop.unroll.NAME`.
pub(crate) fn hint<'ctx>(
    context: &'ctx Context,
    name: &str,
    number: Option<u32>,
) -> MetadataValue<'ctx> {
    let mut operands: Vec<BasicMetadataValueEnum<'ctx>> =
        vec![context.metadata_string(&format!("llvm.loop.unroll.{name}")).into()];
    let number = number.map(|number| context.i32_type().const_int(u64::from(number), false));
    operands.extend(number.map(BasicMetadataValueEnum::from));
    context.metadata_node(&operands)
}

/// A self-referential node, which gives a loop its identity, with operands.
pub(crate) fn loop_node<'ctx>(
    context: impl AsContextRef<'ctx>,
    operands: &[MetadataValue<'ctx>],
) -> MetadataValue<'ctx> {
    let context = context.as_ctx_ref();
    // SAFETY: all values are of this living context. The temporary node is freed when all its uses are
    // replaced, and is not used after. The result is a node, which is what `MetadataValue` holds.
    unsafe {
        let own: LLVMMetadataRef = LLVMTemporaryMDNode(context, std::ptr::null_mut(), 0);
        let operands = operands.iter().map(|operand| LLVMValueAsMetadata(operand.as_value_ref()));
        let mut operands: Vec<LLVMMetadataRef> = std::iter::once(own).chain(operands).collect();
        let node = LLVMMDNodeInContext2(context, operands.as_mut_ptr(), operands.len());
        LLVMMetadataReplaceAllUsesWith(own, node);
        MetadataValue::new(LLVMMetadataAsValue(context, node))
    }
}
