//! What the rewriting of a module for a compiler needs: calls of a function, and other values in place of instructions.

use inkwell::llvm_sys::core::{LLVMInstructionEraseFromParent, LLVMReplaceAllUsesWith};
use inkwell::values::{AsValueRef as _, BasicValueEnum, FunctionValue, InstructionValue};

use super::legacy::llvm::{Kind, Value};
use crate::error::Error;

/// A rewritten instruction does not have the types that LLVM's verifier has checked.
pub(super) fn bug() -> Error {
    Error::internal("nvvm", "an instruction has unexpected types")
}

/// The instructions that use a function.
pub(super) fn calls_of<'ctx>(function: FunctionValue<'ctx>) -> Vec<InstructionValue<'ctx>> {
    let users = Value::of(&function).users().into_iter();
    let calls = users.filter(|user| user.kind() == Kind::Instruction);
    // SAFETY: instructions of a module that lives as long as the function.
    calls.map(|call| unsafe { InstructionValue::new(call.raw()) }).collect()
}

/// Removes an instruction. `value`, of its type, takes the place of its result.
pub(super) fn replace(instruction: InstructionValue<'_>, value: Option<BasicValueEnum<'_>>) {
    // SAFETY: both are alive and have one type; without a value, the instruction has no result that anything uses.
    unsafe {
        if let Some(value) = value {
            LLVMReplaceAllUsesWith(instruction.as_value_ref(), value.as_value_ref());
        }
        LLVMInstructionEraseFromParent(instruction.as_value_ref());
    }
}
