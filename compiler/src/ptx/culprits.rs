//! The intrinsics and functions over which a compiler ends: each is compiled alone, in a child process.

use std::ffi::c_uint;
use std::time::{Duration, Instant};

use inkwell::AddressSpace;
use inkwell::llvm_sys::LLVMFastMathApproxFunc;
use inkwell::llvm_sys::core::{LLVMInsertIntoBuilder, LLVMInstructionClone, LLVMSetOperand};
use inkwell::module::{Linkage, Module};
use inkwell::values::{AsValueRef as _, BasicValueEnum, FunctionValue, InstructionValue};

use super::guard::Ended;
use crate::error::Error;
use crate::nvvm::lacking;
use crate::nvvm::legacy::llvm::{Kind, Value};

/// The time after which no further part is compiled.
const TIME: Duration = Duration::from_secs(20);

/// What to do about an intrinsic or a function that a compiler does not take.
pub(crate) const INSTEAD: &str =
    "use other instructions or inline PTX, or compile with the other back end (`--backend`)";

/// The most calls of an intrinsic that are compiled.
const MOST_CALLS: usize = 16;

/// What is to be said of a function, or of a call of an intrinsic by its number in [`calls`], in a tool's log: [`named`] finds it there.
fn about(symbol: &str, call: Option<usize>, message: &str) -> String {
    let call = call.map_or_else(String::new, |call| format!(" (call {})", call + 1));
    format!("`{symbol}`{call}: {message}")
}

/// The symbol in a line by [`about`], and the number of the call.
pub(crate) fn named(line: &str) -> Option<(&str, Option<usize>)> {
    let (symbol, rest) = line.strip_prefix('`')?.split_once('`')?;
    if rest.starts_with(": ") {
        return Some((symbol, None));
    }
    let (number, _) = rest.strip_prefix(" (call ")?.split_once("): ")?;
    Some((symbol, number.parse::<usize>().ok()?.checked_sub(1)))
}

/// The calls of a function, the first ones first.
pub(crate) fn calls(function: Value<'_>) -> Vec<Value<'_>> {
    let is_call = |user: &Value<'_>| {
        user.kind() == Kind::Instruction && user.operands().last() == Some(&function)
    };
    // LLVM lists the last one first.
    function.users().into_iter().rev().filter(is_call).collect()
}

impl Ended {
    /// An error that a compiler gives, as far as it does not say over what.
    pub(crate) fn refusal(error: &Error) -> Option<Self> {
        let Error::Tool { tool, log, .. } = error else { return None };
        let is_compiler = matches!(*tool, "libNVVM" | "LLVM");
        if !is_compiler
            || log.contains(['`', '@'])
            || log.contains("constraint '")
            || log.contains("inline asm: '")
        {
            return None;
        }
        let line = log.lines().map(str::trim).find(|line| !line.is_empty())?;
        let mut said = line;
        while let Some(rest) = said.strip_prefix("error:").or(said.strip_prefix("Error:")) {
            said = rest.trim();
        }
        Some(Ended { tool, said: said.to_owned(), is_refusal: true })
    }
}

/// Names the intrinsics, or else the functions, over which a compiler ends, or which it refuses, that did so with the module. `ends`
/// tells whether it does so with a part. `None` if no part is at fault by itself.
pub(crate) fn name(
    module: &Module<'_>,
    ended: &Ended,
    ends: impl Fn(&Module<'_>) -> Option<Ended>,
) -> Option<String> {
    let until = Instant::now() + TIME;
    let is_early = |_: &FunctionValue<'_>| Instant::now() < until;
    let verb = format!("{} {}", ended.tool, ended.deed());
    let intrinsics = module.get_functions().filter(|one| is_intrinsic(*one)).take_while(is_early);
    let found = intrinsics.filter_map(|intrinsic| {
        let value = Value::of(&intrinsic);
        let calls = calls(value);
        let ended =
            calls.iter().take(MOST_CALLS).enumerate().find_map(|(at, call)| {
                Some((at, ends(&call_alone(module, intrinsic, *call)?)?.said))
            });
        let (at, said) = ended?;
        let symbol = symbol(intrinsic);
        let is_approximate = calls[at].fast_math() & LLVMFastMathApproxFunc != 0;
        let newer = match lacking::is_newer(&symbol, is_approximate) {
            true => "libNVVM of CUDA 13.5 has it; ",
            false => "",
        };
        let message = format!("{verb} this intrinsic ({said}); {newer}{INSTEAD}");
        Some(about(&symbol, (calls.len() > 1).then_some(at), &message))
    });
    let mut lines: Vec<String> = found.collect();
    if lines.is_empty() {
        let functions = module.get_functions().filter(|one| one.count_basic_blocks() > 0);
        let found = functions.take_while(is_early).filter_map(|function| {
            let said = ends(&alone(module, &symbol(function)))?.said;
            let message = format!("{verb} this function ({said}); {INSTEAD}");
            Some(about(&symbol(function), None, &message))
        });
        lines = found.collect();
    }
    if lines.is_empty() && ended.is_refusal {
        return None;
    }
    if lines.is_empty() {
        return Some(format!(
            "{ended}; leave out parts of it to find the one at fault, or {INSTEAD}"
        ));
    }
    Some(lines.join("\n"))
}

/// What is to be said of the intrinsics that PTX calls as functions, because libNVVM does not know them; `None` if it calls none.
pub(crate) fn unknown(ptx: &str) -> Option<String> {
    let declared = ptx.lines().filter(|line| line.starts_with(".extern .func"));
    let symbols =
        declared.filter_map(|line| line.split(' ').find(|word| word.starts_with("llvm.")));
    let message = "libNVVM does not know this intrinsic; correct its name, or use inline PTX";
    let lines: Vec<String> = symbols.map(|symbol| about(symbol, None, message)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn symbol(function: FunctionValue<'_>) -> String {
    function.get_name().to_string_lossy().into_owned()
}

fn is_intrinsic(function: FunctionValue<'_>) -> bool {
    symbol(function).starts_with("llvm.") && function.count_basic_blocks() == 0
}

/// A module with only a call of an intrinsic, with its constants, and parameters for other arguments. `None` if it cannot stand alone.
fn call_alone<'ctx>(
    module: &Module<'ctx>,
    intrinsic: FunctionValue<'ctx>,
    call: Value<'_>,
) -> Option<Module<'ctx>> {
    let context = module.get_context();
    if call.has_bundles() {
        return None;
    }
    let arguments: Vec<Value<'_>> =
        call.operands().into_iter().take(call.operand_count() as usize - 1).collect();
    let is_kept = |value: &Value<'_>| {
        matches!(value.kind(), Kind::Int | Kind::Real | Kind::Null | Kind::Undefined | Kind::Zero)
    };
    let wanted = intrinsic.get_type().get_param_types();
    if wanted.len() != arguments.len() || wanted.iter().any(|ty| ty.is_metadata_type()) {
        return None;
    }
    let variable = arguments.iter().zip(wanted).filter(|(value, _)| !is_kept(value));
    let mut types: Vec<_> = variable.map(|(_, ty)| ty).collect();
    let result = intrinsic.get_type().get_return_type();
    types.push(context.ptr_type(AddressSpace::default()).into());
    let part = context.create_module("part");
    part.set_triple(&module.get_triple());
    part.set_data_layout(&module.get_data_layout());
    let declared = part.add_function(&symbol(intrinsic), intrinsic.get_type(), None);
    let function = part.add_function("part", context.void_type().fn_type(&types, false), None);
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, ""));
    // SAFETY: the copy of an instruction that is alive, in a block of a function whose parameters have the types of its operands.
    let copy = unsafe {
        let copy = LLVMInstructionClone(call.raw());
        let mut parameter = 0;
        for (at, value) in (0 as c_uint..).zip(&arguments) {
            if !is_kept(value) {
                let given = function.get_nth_param(parameter)?;
                LLVMSetOperand(copy, at, given.as_value_ref());
                parameter += 1;
            }
        }
        LLVMSetOperand(copy, arguments.len() as c_uint, declared.as_value_ref());
        LLVMInsertIntoBuilder(builder.as_mut_ptr(), copy);
        InstructionValue::new(copy).set_debug_location(None);
        copy
    };
    if result.is_some() {
        let place = function.get_last_param()?.into_pointer_value();
        // SAFETY: the instruction is alive, and has a result.
        let value = unsafe { BasicValueEnum::new(copy) };
        builder.build_store(place, value).ok()?;
    }
    builder.build_return(None).ok()?;
    part.verify().is_ok().then_some(part)
}

/// A copy of a module in which only one function, and those that it reaches, can be seen from outside.
fn alone<'ctx>(module: &Module<'ctx>, wanted: &str) -> Module<'ctx> {
    let part = module.clone();
    let is_other = |function: &FunctionValue<'_>| {
        function.count_basic_blocks() > 0 && symbol(*function) != wanted
    };
    for function in part.get_functions().filter(is_other) {
        function.set_call_conventions(0);
        function.set_linkage(Linkage::Internal);
    }
    for list in ["llvm.used", "llvm.compiler.used"] {
        if let Some(list) = part.get_global(list) {
            // SAFETY: nothing uses these lists.
            unsafe { list.delete() };
        }
    }
    part
}
