//! Addresses of the device runtime's functions: a launch through one is seen by nobody, and has no record if it fails.

use gridlet_lang::launch::cdp::symbols::RuntimeFunction;
use inkwell::llvm_sys::LLVMOpcode;

use super::check::Finding;
use super::kernels::name;
use crate::nvvm::legacy::llvm::{Kind, Value};

/// Uses of the functions that launch other than calls and comparisons.
pub(super) fn check<'m>(declared: &[(Value<'m>, RuntimeFunction)]) -> Vec<Finding<'m>> {
    let launching = declared.iter().filter(|(_, known)| {
        matches!(known, RuntimeFunction::LaunchDevice | RuntimeFunction::GetParameterBuffer)
    });
    let finding = |function: Value<'m>| {
        let at = function.users().into_iter().find(|user| is_address(function, *user))?;
        Some(Finding {
            at: Some(if at.kind() == Kind::Instruction { at } else { function }),
            message: format!(
                "the address of `{0}` is used; a launch through it is neither checked nor recorded if it fails: call `{0}` \
                 by its name",
                name(function)
            ),
        })
    };
    launching.filter_map(|(function, _)| finding(*function)).collect()
}

fn is_address<'m>(function: Value<'m>, user: Value<'m>) -> bool {
    if user.kind() != Kind::Instruction {
        // A table or an expression, but not `llvm.used`, which keeps functions.
        return !is_only_kept(user);
    }
    match user.opcode() {
        LLVMOpcode::LLVMICmp => false,
        LLVMOpcode::LLVMCall => user.callee() != function || user.arguments().contains(&function),
        _ => true,
    }
}

/// Whether a constant is only a part of `llvm.used` or `llvm.compiler.used`, or of nothing.
fn is_only_kept(constant: Value<'_>) -> bool {
    if constant.kind() == Kind::Variable {
        return matches!(&*name(constant), "llvm.used" | "llvm.compiler.used");
    }
    constant.kind() != Kind::Instruction && constant.users().into_iter().all(is_only_kept)
}
