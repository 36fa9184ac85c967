//! What libNVVM knows in the modern dialect by another name or in another form: intrinsics that LLVM 22 renames when it reads a module,
//! absolute values, of which libNVVM knows only its own, PTX in assembly (`assembly`), and atomic operations (`atomics`).

use inkwell::llvm_sys::core::LLVMInstructionEraseFromParent;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue};

use super::build::calls_of;
use super::{assembly, atomics};
use crate::error::{Error, Result};

/// Same arguments, another name. libNVVM 13.0 refuses the names on the left, or calls them as if they were functions.
const RENAMED: [(&str, &str); 12] = [
    ("llvm.fabs.f32", "llvm.nvvm.fabs.f"),
    ("llvm.fabs.f64", "llvm.nvvm.fabs.d"),
    ("llvm.nvvm.barrier.cta.sync.aligned.all", "llvm.nvvm.barrier.n"),
    ("llvm.nvvm.barrier.cta.sync.all", "llvm.nvvm.barrier.sync"),
    ("llvm.nvvm.barrier.cta.sync.count", "llvm.nvvm.barrier.sync.cnt"),
    ("llvm.nvvm.ex2.approx.f32", "llvm.nvvm.ex2.approx.f"),
    ("llvm.nvvm.ex2.approx.ftz.f32", "llvm.nvvm.ex2.approx.ftz.f"),
    ("llvm.nvvm.fabs.f32", "llvm.nvvm.fabs.f"),
    ("llvm.nvvm.fabs.f64", "llvm.nvvm.fabs.d"),
    ("llvm.nvvm.fabs.ftz.f32", "llvm.nvvm.fabs.ftz.f"),
    ("llvm.trunc.f32", "llvm.nvvm.trunc.f"),
    ("llvm.trunc.f64", "llvm.nvvm.trunc.d"),
];

/// Intrinsics that libNVVM 13.0 and 13.5 refuse on all types. They are [`TO_EVEN`] where nothing changes how numbers are rounded.
const ROUNDING: [&str; 2] = ["llvm.nearbyint.", "llvm.rint."];

const TO_EVEN: &str = "llvm.roundeven.";

/// Whether an intrinsic has another name for libNVVM.
pub(super) fn is_renamed(symbol: &str) -> bool {
    RENAMED.iter().any(|(new, _)| *new == symbol)
}

/// Marks of where a variable is used. Since LLVM 22 they lack the argument that libNVVM 13.0 expects, which ends the process without it.
const LIFETIMES: [&str; 2] = ["llvm.lifetime.start.", "llvm.lifetime.end."];

fn is_lifetime(function: FunctionValue<'_>) -> bool {
    let name = function.get_name().to_string_lossy();
    LIFETIMES.iter().any(|known| name.starts_with(known))
}

/// Whether a module uses a name or a form that libNVVM lacks.
pub(super) fn are_new(module: &Module<'_>) -> bool {
    atomics::is_needed(module, atomics::Compiler::LibNvvm)
        || assembly::is_needed(module)
        || RENAMED.iter().any(|(new, _)| module.get_function(new).is_some())
        || module
            .get_functions()
            .any(|function| to_even(function).is_some() || is_lifetime(function))
}

/// The name of the intrinsic that does the same as one of [`ROUNDING`].
fn to_even(function: FunctionValue<'_>) -> Option<String> {
    let name = function.get_name().to_string_lossy();
    let types = ROUNDING.iter().find_map(|known| name.strip_prefix(known))?;
    Some(format!("{TO_EVEN}{types}"))
}

/// Gives all intrinsics the names that libNVVM knows, and removes marks that it cannot read.
pub(super) fn make_old(module: &Module<'_>) -> Result<()> {
    atomics::write(module, atomics::Compiler::LibNvvm)?;
    assembly::write(module)?;
    whole_block_barriers(module)?;
    for marks in module.get_functions().filter(|one| is_lifetime(*one)).collect::<Vec<_>>() {
        for call in calls_of(marks) {
            // SAFETY: a mark has no result that anything could use.
            unsafe { LLVMInstructionEraseFromParent(call.as_value_ref()) };
        }
        // SAFETY: a declaration that nothing uses.
        unsafe { marks.delete() };
    }
    let rounding = module.get_functions().filter_map(|one| Some((one, to_even(one)?)));
    let renamed =
        RENAMED.iter().filter_map(|(new, old)| Some((module.get_function(new)?, (*old).into())));
    for (function, old) in rounding.chain(renamed).collect::<Vec<(_, String)>>() {
        // Two names may have the same old one.
        match module.get_function(&old) {
            Some(known) => {
                function.replace_all_uses_with(known);
                // SAFETY: a declaration that nothing uses.
                unsafe { function.delete() };
            }
            None => function.as_global_value().set_name(&old),
        }
    }
    Ok(())
}

/// Replaces the calls for barrier 0 by `llvm.nvvm.barrier0`, which has no argument.
fn whole_block_barriers(module: &Module<'_>) -> Result<()> {
    let Some(function) = module.get_function("llvm.nvvm.barrier.cta.sync.aligned.all") else {
        return Ok(());
    };
    let context = module.get_context();
    let builder = context.create_builder();
    for call in calls_of(function) {
        let barrier = call.get_operand(0).and_then(|operand| operand.value());
        let barrier = barrier.filter(|barrier| barrier.is_int_value());
        if barrier.and_then(|barrier| barrier.into_int_value().get_zero_extended_constant())
            != Some(0)
        {
            continue;
        }
        let name = "llvm.nvvm.barrier0";
        let target = module.get_function(name).unwrap_or_else(|| {
            module.add_function(name, context.void_type().fn_type(&[], false), None)
        });
        builder.position_before(&call);
        builder
            .build_call(target, &[], "")
            .map_err(|error| Error::internal("nvvm", error.to_string()))?;
        // SAFETY: a barrier has no result that anything could use.
        unsafe { LLVMInstructionEraseFromParent(call.as_value_ref()) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::{are_new, make_old};

    #[test]
    fn two_names_of_one_function_become_its_old_name() {
        let text = "\
declare float @llvm.fabs.f32(float)
declare float @llvm.nvvm.fabs.f32(float)
define float @f(float %x) {
  %a = call float @llvm.fabs.f32(float %x)
  %b = call float @llvm.nvvm.fabs.f32(float %a)
  ret float %b
}
";
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "a.ll");
        let module = context.create_module_from_ir(buffer).unwrap();
        assert!(are_new(&module));
        make_old(&module).unwrap();
        let text = module.print_to_string().to_string();
        assert_eq!(text.matches("call float @llvm.nvvm.fabs.f(float").count(), 2, "{text}");
        assert!(!are_new(&module), "{text}");
    }
}
