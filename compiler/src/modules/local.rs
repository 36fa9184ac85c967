//! Addresses in memory that only one thread or block can reach.

use std::collections::HashMap;

use inkwell::llvm_sys::LLVMOpcode;

use super::variables::{accesses, variable};
use crate::nvvm::legacy::llvm::{Kind, Shape, Value};

/// The address space of memory of a block.
const SHARED: u32 = 3;

/// The address space of memory of a thread.
const LOCAL: u32 = 5;

/// The memory that a value, or a part of it, certainly points to, if a child grid cannot reach it.
pub(super) fn pointed(value: Value<'_>) -> Option<&'static str> {
    find(value, &mut HashMap::new())
}

/// Answers by value. One whose answer is still open, in a loop, is unknown.
type Known<'m> = HashMap<Value<'m>, Option<&'static str>>;

fn find<'m>(value: Value<'m>, known: &mut Known<'m>) -> Option<&'static str> {
    if let Some(found) = known.get(&value) {
        return *found;
    }
    known.insert(value, None);
    let found = look(value, known);
    known.insert(value, found);
    found
}

fn look<'m>(value: Value<'m>, known: &mut Known<'m>) -> Option<&'static str> {
    use LLVMOpcode::*;

    if let Shape::Pointer(space @ (SHARED | LOCAL)) = value.ty().shape() {
        return Some(if space == SHARED { "shared memory" } else { "a local variable" });
    }
    let opcode = match value.kind() {
        Kind::Instruction => value.opcode(),
        Kind::Expression => value.constant_opcode(),
        _ => return None,
    };
    match opcode {
        LLVMAlloca => Some("a local variable"),
        LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast | LLVMFreeze => {
            find(value.operand(0), known)
        }
        LLVMInsertValue => find(value.operand(1), known).or_else(|| find(value.operand(0), known)),
        LLVMSelect => all(&[value.operand(1), value.operand(2)], known),
        LLVMPHI => {
            let incoming: Vec<_> = value.incoming().into_iter().map(|(one, _)| one).collect();
            all(&incoming, known)
        }
        // Unoptimised code keeps pointers in variables.
        LLVMLoad => all(&accesses(variable(value.operand(0))?)?.stored, known),
        _ => None,
    }
}

/// What all of some values point to.
fn all<'m>(values: &[Value<'m>], known: &mut Known<'m>) -> Option<&'static str> {
    let mut found = values.iter().map(|value| find(*value, known));
    let first = found.next()??;
    found.all(|other| other.is_some()).then_some(first)
}
