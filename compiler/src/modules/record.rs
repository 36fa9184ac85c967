//! The variable with the record of lost launches, which a module may name itself in order to read it.

use gridlet_lang::launch::LOST_LAUNCH_RECORD;
use inkwell::AddressSpace;
use inkwell::llvm_sys::core::{LLVMConstNull, LLVMGlobalGetValueType, LLVMSetInitializer};
use inkwell::module::{Linkage, Module};
use inkwell::values::{AsValueRef as _, GlobalValue};

use super::GLOBAL;
use super::kernels::name;
use super::layout::extent;
use crate::nvvm::legacy::llvm::{self, Kind, Shape, Value};

/// The size of the record in bytes: four words.
const BYTES: u64 = 16;

/// Whether a variable is the record as Gridlet defines it, or a declaration of that.
pub(super) fn is_record(variable: Value<'_>) -> bool {
    let is_zero = |value: Value<'_>| value.is_zero() || value.kind() == Kind::Undefined;
    name(variable) == LOST_LAUNCH_RECORD
        && variable.ty().shape() == Shape::Pointer(u32::from(GLOBAL))
        && extent(variable.value_type()).is_some_and(|extent| extent.size == BYTES)
        && !variable.is_global_constant()
        && variable.initializer().is_none_or(is_zero)
}

/// Makes a definition in the module a declaration, so that the functions that write the record can bring theirs along. Gives
/// whether the module names the record.
pub(super) fn open(module: &Module<'_>) -> bool {
    let Some(record) = own(module) else { return false };
    record.set_linkage(Linkage::External);
    // SAFETY: the variable is one of this module, and LLVM takes NULL for none.
    unsafe { LLVMSetInitializer(record.as_value_ref(), std::ptr::null_mut()) };
    true
}

/// Defines the record in a module that is linked into a program, which may define it too.
pub(super) fn share(module: &Module<'_>) {
    define(module);
    let record = own(module);
    record.into_iter().for_each(|record| record.set_linkage(Linkage::WeakAny));
}

/// Defines the record, unless the module does.
pub(super) fn define(module: &Module<'_>) {
    if module.get_global(LOST_LAUNCH_RECORD).is_some_and(|known| known.get_initializer().is_some())
    {
        return;
    }
    let words = module.get_context().i32_type().array_type(4);
    let record = own(module).unwrap_or_else(|| {
        module.add_global(words, Some(AddressSpace::from(GLOBAL)), LOST_LAUNCH_RECORD)
    });
    let raw = record.as_value_ref();
    // SAFETY: the variable is one of this module, and its type, four words in some form, has a zero.
    unsafe { LLVMSetInitializer(raw, LLVMConstNull(LLVMGlobalGetValueType(raw))) };
    record.set_linkage(Linkage::External);
    record.set_externally_initialized(true);
}

fn own<'ctx>(module: &Module<'ctx>) -> Option<GlobalValue<'ctx>> {
    let record = module.get_global(LOST_LAUNCH_RECORD)?;
    is_record(llvm::Value::of(&record)).then_some(record)
}
