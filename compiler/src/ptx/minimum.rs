//! `min` and `max` for LLVM's back end.
//!
//! PTX's instructions return the other operand for every NaN, as `llvm.minimumnum` does. `llvm.minnum` may return a NaN for a
//! signalling one, and LLVM makes use of that: of `minnum(minnum(x, sNaN), 2.0)` only `x` is left.

use inkwell::module::Module;

const RENAMED: [(&str, &str); 2] = [("minnum", "minimumnum"), ("maxnum", "maximumnum")];

/// Replaces `llvm.minnum` and `llvm.maxnum` of all types.
pub(super) fn of_numbers(module: &Module<'_>) {
    for function in module.get_functions() {
        let Ok(name) = function.get_name().to_str() else { continue };
        let renamed = RENAMED.iter().find_map(|(from, to)| {
            let ty = name.strip_prefix("llvm.")?.strip_prefix(from)?.strip_prefix('.')?;
            Some(format!("llvm.{to}.{ty}"))
        });
        let Some(renamed) = renamed else { continue };
        let ty = function.get_type();
        let replacement = module
            .get_function(&renamed)
            .unwrap_or_else(|| module.add_function(&renamed, ty, None));
        function.replace_all_uses_with(replacement);
    }
}
