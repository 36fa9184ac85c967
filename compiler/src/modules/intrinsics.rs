//! Calls of LLVM's intrinsics that only copy, or do nothing.

use crate::nvvm::legacy::llvm::{Kind, Value};

/// Calls that have no effect of their own on values or memory: the intrinsics' names.
const HINTS: [&str; 3] = ["llvm.assume", "llvm.lifetime.start", "llvm.lifetime.end"];

/// Calls that write to their first argument. The last one writes a value, the others copy.
const COPIES: [&str; 3] = ["llvm.memcpy", "llvm.memmove", "llvm.memset"];

/// Whether a call has no effect on values or memory.
pub(super) fn is_hint(call: Value<'_>) -> bool {
    is_one_of(call, &HINTS)
}

/// Whether a call copies or fills memory at an address.
pub(super) fn is_copy(call: Value<'_>, to: Value<'_>) -> bool {
    is_one_of(call, &COPIES) && call.operand(0) == to
}

/// Whether a call copies memory from an address, its second operand.
pub(super) fn is_copy_from(call: Value<'_>) -> bool {
    is_one_of(call, &COPIES[..2])
}

fn is_one_of(call: Value<'_>, intrinsics: &[&str]) -> bool {
    let callee = call.callee();
    let name = (callee.kind() == Kind::Function).then(|| callee.intrinsic()).flatten();
    name.is_some_and(|name| intrinsics.contains(&name.as_str()))
}
