//! Addresses in memory that only one thread or block can reach.

use std::collections::HashMap;

use inkwell::llvm_sys::LLVMOpcode;

use super::kernels::Parameter;
use super::variables::{accesses, variable};
use crate::nvvm::legacy::llvm::{Kind, Shape, Value};

/// The address space of memory of a block.
const SHARED: u32 = 3;

/// The address space of memory of a thread.
const LOCAL: u32 = 5;

/// The memory that a value, or a part of it, certainly points to, or is the number of an address in.
fn pointed(value: Value<'_>) -> Option<&'static str> {
    find(value, &mut HashMap::new())
}

/// The memory that an argument of a launch certainly points to, if a child grid cannot reach it. The number of an address counts where
/// the child uses it as an address.
pub(super) fn passed(argument: Value<'_>, parameter: &Parameter<'_>) -> Option<&'static str> {
    let is_address = || match parameter.ty.shape() {
        Shape::Pointer(_) => true,
        _ => parameter.value.users().into_iter().any(|user| {
            user.kind() == Kind::Instruction && user.opcode() == LLVMOpcode::LLVMIntToPtr
        }),
    };
    pointed(argument).filter(|_| !is_number(argument) || is_address())
}

fn is_number(value: Value<'_>) -> bool {
    matches!(value.ty().shape(), Shape::Int(_))
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
        LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast | LLVMFreeze | LLVMIntToPtr => {
            find(value.operand(0), known)
        }
        LLVMPtrToInt if matches!(value.ty().shape(), Shape::Int(64)) => {
            find(value.operand(0), known)
        }
        LLVMAdd | LLVMSub if value.operand(1).unsigned().is_some() => find(value.operand(0), known),
        LLVMInsertValue => {
            let part = Some(value.operand(1)).filter(|part| !is_number(*part));
            part.and_then(|part| find(part, known)).or_else(|| find(value.operand(0), known))
        }
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
