//! `--fast-math` in LLVM's back end. libNVVM has options for it, and codegen chooses the approximate functions.

use inkwell::attributes::AttributeLoc;
use inkwell::module::{FlagBehavior, Module};

/// Makes a module, with libdevice if it needs that, take subnormal `f32` for zero.
pub(super) fn apply(module: &Module<'_>) {
    let context = module.get_context();
    // libdevice asks by `__nvvm_reflect("__CUDA_FTZ")`.
    let one = context.i32_type().const_int(1, false);
    module.add_basic_value_flag("nvvm-reflect-ftz", FlagBehavior::Override, one);
    let zeros =
        context.create_string_attribute("denormal-fp-math-f32", "preserve-sign,preserve-sign");
    for function in module.get_functions().filter(|function| function.count_basic_blocks() > 0) {
        function.add_attribute(AttributeLoc::Function, zeros);
    }
}
