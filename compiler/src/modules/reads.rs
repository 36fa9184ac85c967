//! Whether a module reads the status of a launch.
//!
//! It does if the status, or a value that is computed from it, decides a branch or a `switch` with several targets, is an argument of a call of
//! another module's function, or is written to memory where others may find it. A local variable is not such memory: what
//! counts there is whether the values that are loaded from it are read. A function of the module reads an argument if it reads
//! its parameter, and what it returns is read if a caller reads it, or if nothing calls it. Arithmetic, comparisons, `select`
//! and `phi` compute values.

use std::collections::HashSet;

use inkwell::llvm_sys::LLVMOpcode;

use super::intrinsics::{is_copy, is_copy_from, is_hint};
use super::runtime::calls;
use super::variables::variable;
use crate::nvvm::legacy::llvm::{Kind, Value};

/// Whether the module reads the result of a call.
pub(super) fn is_read(call: Value<'_>) -> bool {
    let (mut open, mut seen) = (vec![call], HashSet::from([call]));
    while let Some(value) = open.pop() {
        for user in value.users() {
            let Some(computed) = computed(value, user) else { return true };
            open.extend(computed.into_iter().filter(|one| seen.insert(*one)));
        }
    }
    false
}

/// The values that a user computes from a value; `None` if it reads the value.
fn computed<'m>(value: Value<'m>, user: Value<'m>) -> Option<Vec<Value<'m>>> {
    use LLVMOpcode::*;

    if user.kind() != Kind::Instruction {
        return None;
    }
    match user.opcode() {
        LLVMStore if user.operand(1) == value => None,
        LLVMStore => loads(variable(user.operand(1))?),
        LLVMCall if is_hint(user) => Some(vec![]),
        // Which way it goes makes no difference.
        LLVMBr | LLVMSwitch if has_one_target(user) => Some(vec![]),
        LLVMCall => parameters(value, user),
        LLVMRet => {
            let function = user.function()?;
            let calls = calls(function);
            // Others may call it.
            let is_known = !calls.is_empty() && calls.len() == function.users().len();
            is_known.then_some(calls)
        }
        LLVMAdd | LLVMSub | LLVMMul | LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem | LLVMShl
        | LLVMLShr | LLVMAShr | LLVMAnd | LLVMOr | LLVMXor | LLVMFAdd | LLVMFSub | LLVMFMul
        | LLVMFDiv | LLVMFNeg | LLVMTrunc | LLVMZExt | LLVMSExt | LLVMUIToFP | LLVMSIToFP
        | LLVMFPToUI | LLVMFPToSI | LLVMFPTrunc | LLVMFPExt | LLVMIntToPtr | LLVMPtrToInt
        | LLVMBitCast | LLVMICmp | LLVMFCmp | LLVMPHI | LLVMSelect | LLVMFreeze
        | LLVMExtractValue | LLVMInsertValue | LLVMExtractElement | LLVMInsertElement
        | LLVMShuffleVector | LLVMGetElementPtr | LLVMLoad => Some(vec![user]),
        _ => None,
    }
}

/// The loads of a local variable, and of those that it is copied to; `None` if its address or a copy goes elsewhere.
fn loads(local: Value<'_>) -> Option<Vec<Value<'_>>> {
    use LLVMOpcode::*;

    let (mut open, mut seen, mut found) = (vec![local], HashSet::from([local]), vec![]);
    while let Some(address) = open.pop() {
        for user in address.users() {
            if user.kind() != Kind::Instruction {
                return None;
            }
            let next = match user.opcode() {
                LLVMLoad => {
                    found.push(user);
                    continue;
                }
                LLVMStore if user.operand(0) != address => continue,
                LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast => user,
                LLVMCall if is_hint(user) => continue,
                LLVMCall if is_copy_from(user) && user.operand(1) == address => {
                    variable(user.operand(0))?
                }
                LLVMCall if is_copy(user, address) => continue,
                _ => return None,
            };
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    Some(found)
}

/// Whether all ways of a branch or a `switch` lead to one block.
pub(super) fn has_one_target(branch: Value<'_>) -> bool {
    let targets = branch.successors();
    targets.iter().all(|target| Some(target) == targets.first())
}

/// The parameters that get a value in a call of a function of the module.
fn parameters<'m>(value: Value<'m>, call: Value<'m>) -> Option<Vec<Value<'m>>> {
    let callee = call.callee();
    let is_own = callee.kind() == Kind::Function
        && !callee.is_declaration()
        && call.call_type() == callee.value_type()
        && !callee.value_type().is_variadic();
    let parameters = is_own.then(|| callee.parameters())?;
    let passed = (0..).zip(parameters).filter(|(at, _)| call.operand(*at) == value);
    Some(passed.map(|(_, parameter)| parameter).collect())
}
