//! What a module does with a parameter buffer.

use std::collections::HashSet;

use inkwell::llvm_sys::LLVMOpcode;

use super::intrinsics::{is_copy, is_hint};
use super::layout::{Offset, extent, offsets};
use super::variables::copies;
use crate::nvvm::legacy::llvm::{Kind, Value};

/// Bytes of a parameter buffer, from the first to one past the last. Those below 0 lie before it.
pub(super) type Bytes = (i64, i64);

/// The uses of a buffer.
pub(super) struct Uses<'m> {
    /// The stores at constant offsets.
    pub(super) stores: Vec<(Value<'m>, Bytes)>,
    pub(super) launches: Vec<Value<'m>>,
    /// Whether these are all that write to it.
    pub(super) is_whole: bool,
    /// Its comparisons.
    pub(super) tests: Vec<Value<'m>>,
    /// Whether there may be other uses, because it goes through memory, a `phi`, a number or another function.
    pub(super) is_elsewhere: bool,
}

/// The uses of the buffer that a call gives. `launchers` launch it.
pub(super) fn uses<'m>(buffer: Value<'m>, launchers: &[Value<'m>]) -> Uses<'m> {
    use LLVMOpcode::*;

    // An offset is unknown if it is not constant.
    let (mut open, mut seen) = (vec![(buffer, Some(0_i64))], HashSet::new());
    let mut uses = Uses {
        stores: vec![],
        launches: vec![],
        is_whole: true,
        tests: vec![],
        is_elsewhere: false,
    };
    while let Some((address, offset)) = open.pop() {
        if !seen.insert((address, offset)) {
            continue;
        }
        let bytes = |size: Option<u64>| {
            let (first, size) = (offset?, i64::try_from(size?).unwrap_or(i64::MAX));
            Some((first, first.saturating_add(size)))
        };
        for user in address.users() {
            let opcode = (user.kind() == Kind::Instruction).then(|| user.opcode());
            let stored = match opcode {
                Some(LLVMStore) if user.operand(1) == address => {
                    bytes(extent(user.operand(0).ty()).map(|stored| stored.size))
                }
                // The loads of a variable that holds nothing else are the buffer too.
                Some(LLVMStore) => {
                    let copies = copies(user);
                    uses.is_whole &= !copies.is_empty();
                    uses.is_elsewhere |= copies.is_empty();
                    open.extend(copies.into_iter().map(|copy| (copy, offset)));
                    continue;
                }
                Some(LLVMGetElementPtr) if user.operand(0) == address => {
                    open.push((user, offset.and_then(|offset| place(user, offset))));
                    continue;
                }
                Some(LLVMAddrSpaceCast | LLVMBitCast) => {
                    open.push((user, offset));
                    continue;
                }
                Some(LLVMICmp) => {
                    uses.tests.push(user);
                    continue;
                }
                Some(LLVMCall) if launchers.contains(&user.callee()) => {
                    uses.launches.push(user);
                    continue;
                }
                Some(LLVMCall) if is_hint(user) => continue,
                Some(LLVMCall) if is_copy(user, address) => bytes(user.operand(2).unsigned()),
                _ => {
                    uses.is_elsewhere = true;
                    None
                }
            };
            match stored {
                Some(bytes) => uses.stores.push((user, bytes)),
                None => uses.is_whole = false,
            }
        }
    }
    uses
}

/// The offset that a `getelementptr` of constants leads to.
pub(super) fn place(address: Value<'_>, offset: i64) -> Option<i64> {
    offsets(address)?.into_iter().try_fold(offset, |sum, part| match part {
        Offset::Bytes(bytes) => sum.checked_add(bytes),
        Offset::Elements(..) => None,
    })
}
