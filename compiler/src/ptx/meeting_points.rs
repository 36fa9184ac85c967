//! Removes the marks of meeting points (`codegen/flags.rs`), when LLVM changes the way from block to block no more.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Module;
use inkwell::values::{CallSiteValue, InstructionValue};

use super::loops;
use crate::codegen::MEETING;

/// Removes all marks.
pub(super) fn remove(module: &Module<'_>) {
    let convergent = Attribute::get_named_enum_kind_id("convergent");
    // Empty assembly of a program keeps the compiler from moving accesses of memory. It is not convergent.
    let is_mark = |one: &InstructionValue<'_>| {
        loops::is_assembly(*one, MEETING)
            && CallSiteValue::try_from(*one).is_ok_and(|call| {
                call.get_enum_attribute(AttributeLoc::Function, convergent).is_some()
            })
    };
    for mark in loops::instructions(module).filter(is_mark).collect::<Vec<_>>() {
        if mark.get_first_use().is_none() {
            mark.erase_from_basic_block();
        }
    }
}
