//! What libdevice asks of a compilation: `__nvvm_reflect("__CUDA_PREC_SQRT")` is 1 where square roots are rounded correctly.
//!
//! LLVM answers two such questions itself, `__CUDA_ARCH` and `__CUDA_FTZ`, and any other with 0. libNVVM's answers follow its options
//! `-prec-sqrt` and `-prec-div`.

use inkwell::module::Module;
use inkwell::values::{AnyValue, AnyValueEnum, BasicValue, InstructionOpcode};

use crate::nvvm::legacy::llvm;

/// The questions whether results are rounded correctly.
const PRECISION: [&[u8]; 2] = [b"__CUDA_PREC_DIV\0", b"__CUDA_PREC_SQRT\0"];

/// Answers whether divisions and square roots are rounded correctly.
pub(super) fn answer_precision(module: &Module<'_>, is_exact: bool) {
    let questions = llvm::Module::new(module).variables().into_iter().filter(|variable| {
        let text = variable.initializer().and_then(llvm::Value::string);
        text.is_some_and(|text| PRECISION.contains(&text))
    });
    let names: Vec<Vec<u8>> = questions.filter_map(llvm::Value::name).collect();
    let global = |name: &Vec<u8>| module.get_global(str::from_utf8(name).ok()?);
    for question in names.iter().filter_map(global) {
        let mut next = question.as_pointer_value().get_first_use();
        while let Some(one) = next {
            next = one.get_next_use();
            // A call, by its result.
            if let AnyValueEnum::IntValue(asked) = one.get_user().as_any_value_enum()
                && let Some(call) = asked.as_instruction()
                && call.get_opcode() == InstructionOpcode::Call
            {
                asked.replace_all_uses_with(asked.get_type().const_int(u64::from(is_exact), false));
                call.erase_from_basic_block();
            }
        }
    }
}
