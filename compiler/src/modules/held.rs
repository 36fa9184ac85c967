//! What local variables hold, by bytes: unoptimised code keeps pointers there, and structs with pointers in them.

use inkwell::llvm_sys::LLVMOpcode;

use super::intrinsics::{is_copy, is_copy_from, is_hint};
use super::layout::extent;
use super::uses::{Bytes, place};
use crate::nvvm::legacy::llvm::{Kind, Value};

/// Something that is written to a local variable.
pub(super) struct Held<'m> {
    pub(super) content: Content<'m>,
    /// The bytes of the variable; `None` if they are not known.
    pub(super) bytes: Option<Bytes>,
}

pub(super) enum Content<'m> {
    Value(Value<'m>),
    /// What is at an address.
    Copy(Value<'m>),
    /// Bytes of one value.
    Fill,
}

impl Held<'_> {
    pub(super) fn overlaps(&self, bytes: Bytes) -> bool {
        self.bytes.is_none_or(|own| own.0 < bytes.1 && bytes.0 < own.1)
    }
}

/// The local variable that an address points into, and the byte, if it is known.
pub(super) fn location(address: Value<'_>) -> Option<(Value<'_>, Option<i64>)> {
    use LLVMOpcode::*;

    let (mut address, mut steps) = (address, vec![]);
    while address.kind() == Kind::Instruction {
        match address.opcode() {
            LLVMAlloca => {
                let mut offset = Some(0);
                for step in steps.into_iter().rev() {
                    offset = offset.and_then(|offset| place(step, offset));
                }
                return Some((address, offset));
            }
            LLVMGetElementPtr => steps.push(address),
            LLVMBitCast | LLVMAddrSpaceCast => {}
            _ => return None,
        }
        address = address.operand(0);
    }
    None
}

/// All that is written to a local variable; `None` if its address goes elsewhere.
pub(super) fn contents(variable: Value<'_>) -> Option<Vec<Held<'_>>> {
    use LLVMOpcode::*;

    let (mut open, mut found) = (vec![(variable, Some(0_i64))], vec![]);
    while let Some((address, offset)) = open.pop() {
        let bytes = |size: Option<u64>| {
            let (first, size) = (offset?, i64::try_from(size?).ok()?);
            Some((first, first.checked_add(size)?))
        };
        for user in address.users() {
            if user.kind() != Kind::Instruction {
                return None;
            }
            match user.opcode() {
                LLVMLoad => {}
                LLVMStore if user.operand(0) != address => {
                    let value = user.operand(0);
                    let bytes = bytes(extent(value.ty()).map(|extent| extent.size));
                    found.push(Held { content: Content::Value(value), bytes });
                }
                LLVMGetElementPtr if user.operand(0) == address => {
                    open.push((user, offset.and_then(|offset| place(user, offset))));
                }
                LLVMBitCast | LLVMAddrSpaceCast => open.push((user, offset)),
                LLVMCall if is_hint(user) => {}
                LLVMCall if is_copy(user, address) => {
                    let content = match is_copy_from(user) {
                        true => Content::Copy(user.operand(1)),
                        false => Content::Fill,
                    };
                    found.push(Held { content, bytes: bytes(user.operand(2).unsigned()) });
                }
                LLVMCall if is_copy_from(user) && user.operand(1) == address => {}
                _ => return None,
            }
        }
    }
    Some(found)
}
