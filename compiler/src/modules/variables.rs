//! Local variables (`alloca`) in which unoptimised code keeps its values.

use inkwell::llvm_sys::LLVMOpcode;

use super::intrinsics::is_hint;
use crate::nvvm::legacy::llvm::{Kind, Value};

/// The local variable that an address points into.
pub(super) fn variable(mut address: Value<'_>) -> Option<Value<'_>> {
    while address.kind() == Kind::Instruction {
        match address.opcode() {
            LLVMOpcode::LLVMAlloca => return Some(address),
            LLVMOpcode::LLVMGetElementPtr
            | LLVMOpcode::LLVMBitCast
            | LLVMOpcode::LLVMAddrSpaceCast => address = address.operand(0),
            _ => return None,
        }
    }
    None
}

/// The accesses to a local variable.
#[derive(Default)]
pub(super) struct Accesses<'m> {
    pub(super) loads: Vec<Value<'m>>,
    /// The values that are stored.
    pub(super) stored: Vec<Value<'m>>,
}

/// All accesses to a local variable; `None` if its address goes elsewhere.
pub(super) fn accesses(variable: Value<'_>) -> Option<Accesses<'_>> {
    use LLVMOpcode::*;

    let (mut open, mut found) = (vec![variable], Accesses::default());
    while let Some(address) = open.pop() {
        for user in address.users() {
            if user.kind() != Kind::Instruction {
                return None;
            }
            match user.opcode() {
                LLVMLoad => found.loads.push(user),
                LLVMStore if user.operand(0) != address => found.stored.push(user.operand(0)),
                LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast => open.push(user),
                LLVMCall if is_hint(user) => {}
                _ => return None,
            }
        }
    }
    Some(found)
}

/// The loads that give back what a store writes, because nothing else is stored in the variable.
pub(super) fn copies(store: Value<'_>) -> Vec<Value<'_>> {
    let (value, address) = (store.operand(0), store.operand(1));
    let known = Some(address).filter(|address| is_variable(*address)).and_then(accesses);
    match known {
        Some(known) if known.stored.iter().all(|stored| *stored == value) => {
            known.loads.into_iter().filter(|load| load.operand(0) == address).collect()
        }
        _ => vec![],
    }
}

/// The value that a load gives back, if it is known; otherwise the value itself.
pub(super) fn source(mut value: Value<'_>) -> Value<'_> {
    while value.kind() == Kind::Instruction
        && value.opcode() == LLVMOpcode::LLVMLoad
        && is_variable(value.operand(0))
        && let Some(known) = accesses(value.operand(0))
        && let Some(first) = known.stored.first().copied()
        && known.stored.iter().all(|stored| *stored == first)
        && first.ty() == value.ty()
    {
        value = first;
    }
    value
}

fn is_variable(address: Value<'_>) -> bool {
    address.kind() == Kind::Instruction && address.opcode() == LLVMOpcode::LLVMAlloca
}
