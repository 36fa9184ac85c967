//! Counts of 64-bit shifts that are small anyway, for libNVVM.
//!
//! The language takes the count of a shift modulo the width, so there is a mask at each shift. Shifts of 32 bits do the same on GPUs, and
//! ptxas drops the mask. Shifts of 64 bits do not. LLVM 22 knows the ranges of more numbers than libNVVM, for example of `32 - 8 * k` where the
//! unsigned `k` counts to 4. So the module itself loses the masks that a copy of it shows to be superfluous. libNVVM does not get LLVM's code: optimised
//! twice, some becomes slower (docs/measurements.md, "Plain kernels beside nvcc's").

use std::collections::BTreeMap;

use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::ContextRef;
use inkwell::llvm_sys::core::LLVMReplaceAllUsesWith;
use inkwell::module::Module;
use inkwell::values::{
    AsValueRef as _, FunctionValue, InstructionOpcode, InstructionValue, IntValue,
};

use super::loops::integer;
use super::nvptx::{run, target_machine};
use super::{PtxOptions, loops};
use crate::error::{Error, Result};
use gridlet_lang::arch::CudaArch;

/// What the ranges need: functions that know their callers, values instead of variables, loops with their test at the end.
const PASSES: &str = "always-inline,function(sroa,instsimplify,simplifycfg,loop-simplify,lcssa,correlated-propagation,\
    loop(loop-rotate),correlated-propagation)";

/// The width of the shifts.
const WIDTH: u32 = 64;

/// A function that the copy calls with the number of a shift and whether its count is below the width.
const PROBE: &str = "gridlet.is_below_width";

/// How LLVM encodes that a function accesses only memory that nothing else accesses (`llvm/Support/ModRef.h`): so its calls stay, and keep
/// nothing else from moving.
const INACCESSIBLE_MEMORY: u64 = 0b1100;

/// A copy of the module without the masks that change nothing; `None` if there are none.
///
/// # Errors
/// `Tool` if LLVM refuses to optimise the module.
pub(crate) fn unmask<'ctx>(
    module: &Module<'ctx>,
    arch: CudaArch,
    options: &PtxOptions,
) -> Result<Option<Module<'ctx>>> {
    if masks(module).next().is_none() {
        return Ok(None);
    }
    let trial = module.clone();
    ask(&trial)?;
    let machine = target_machine(arch, options, "")?;
    run(&trial, &machine, PASSES)?;
    let small = answers(&trial);
    if !small.values().any(|is_small| *is_small) {
        return Ok(None);
    }
    let copy = module.clone();
    for (number, (mask, count)) in masks(&copy).enumerate().collect::<Vec<_>>() {
        if small.get(&(number as u64)) == Some(&true) {
            // SAFETY: both are integers of one type in one module.
            unsafe { LLVMReplaceAllUsesWith(mask.as_value_ref(), count.as_value_ref()) };
        }
    }
    Ok(Some(copy))
}

/// The masks of a module's shifts, and what they mask.
fn masks<'ctx>(
    module: &Module<'ctx>,
) -> impl Iterator<Item = (InstructionValue<'ctx>, IntValue<'ctx>)> {
    loops::instructions(module).filter_map(mask_of)
}

/// The mask of a shift's count, and what it masks.
fn mask_of<'ctx>(
    shift: InstructionValue<'ctx>,
) -> Option<(InstructionValue<'ctx>, IntValue<'ctx>)> {
    use InstructionOpcode::{AShr, And, LShr, SExt, Shl, Trunc, ZExt};
    if !matches!(shift.get_opcode(), AShr | LShr | Shl)
        || integer(shift, 0)?.get_type().get_bit_width() != WIDTH
    {
        return None;
    }
    let mut count = loops::instruction(integer(shift, 1)?.into())?;
    while matches!(count.get_opcode(), SExt | Trunc | ZExt) {
        count = loops::instruction(integer(count, 0)?.into())?;
    }
    let masked = integer(count, 0)?;
    let is_mask = count.get_opcode() == And
        && loops::constant(integer(count, 1)?.into()) == Some(i64::from(WIDTH) - 1);
    (is_mask && !masked.is_const()).then_some((count, masked))
}

/// Calls [`PROBE`] before each mask.
fn ask(module: &Module<'_>) -> Result<()> {
    let context: ContextRef<'_> = module.get_context();
    let (number_type, flag_type) = (context.i64_type(), context.bool_type());
    let ty = context.void_type().fn_type(&[number_type.into(), flag_type.into()], false);
    let probe = module.add_function(PROBE, ty, None);
    for (name, value) in [("memory", INACCESSIBLE_MEMORY), ("nounwind", 0), ("willreturn", 0)] {
        let kind = Attribute::get_named_enum_kind_id(name);
        probe.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, value));
    }
    let builder = context.create_builder();
    let failed = |error| Error::internal("ptx", format!("counts of shifts: {error}"));
    for (number, (mask, count)) in masks(module).enumerate().collect::<Vec<_>>() {
        builder.position_before(&mask);
        let width = count.get_type().const_int(WIDTH.into(), false);
        let is_below =
            builder.build_int_compare(IntPredicate::ULT, count, width, "").map_err(failed)?;
        let number = number_type.const_int(number as u64, false);
        builder.build_call(probe, &[number.into(), is_below.into()], "").map_err(failed)?;
    }
    Ok(())
}

/// By number, whether the count is below the width wherever the shift is now. Nothing, if LLVM has merged calls with several numbers.
fn answers(module: &Module<'_>) -> BTreeMap<u64, bool> {
    let mut answers = BTreeMap::new();
    let is_probe = |call: &InstructionValue<'_>| {
        let callee = loops::callee(*call);
        callee.is_some_and(|it: FunctionValue<'_>| it.get_name().to_bytes() == PROBE.as_bytes())
    };
    let calls = loops::instructions(module)
        .filter(|one| one.get_opcode() == InstructionOpcode::Call)
        .filter(is_probe);
    for call in calls {
        let operand = |at| integer(call, at).and_then(IntValue::get_zero_extended_constant);
        let Some(number) = operand(0) else { return BTreeMap::new() };
        *answers.entry(number).or_insert(true) &= operand(1) == Some(1);
    }
    answers
}

#[cfg(test)]
mod tests {
    use gridlet_lang::arch::CudaArch;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::{PROBE, unmask};
    use crate::ptx::PtxOptions;

    /// A loop over `k` from 0 up to a limit that shifts by a count computed from it, as codegen writes it.
    fn with_count(count: &str) -> String {
        format!(
            "target triple = \"nvptx64-nvidia-cuda\"
            define i64 @f(i64 %x, i32 %n, i32 %limit) {{
            entry:
              %k = alloca i32
              %sum = alloca i64
              store i32 0, ptr %k
              store i64 0, ptr %sum
              br label %head
            head:
              %k1 = load i32, ptr %k
              %goes_on = icmp ult i32 %k1, 5
              br i1 %goes_on, label %body, label %end
            body:
              %k2 = load i32, ptr %k
              {count}
              %masked = and i32 %count, 63
              %wide = zext i32 %masked to i64
              %shifted = lshr i64 %x, %wide
              %old = load i64, ptr %sum
              %new = add i64 %old, %shifted
              store i64 %new, ptr %sum
              %next = add i32 %k2, 1
              store i32 %next, ptr %k
              br label %head
            end:
              %result = load i64, ptr %sum
              ret i64 %result
            }}"
        )
    }

    /// The text of the module without masks, if there are some to remove.
    fn unmasked(text: &str) -> Option<String> {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "a.ll");
        let module = context.create_module_from_ir(buffer).expect("a right module");
        let arch = CudaArch::DEFAULT;
        let options = PtxOptions { opt_level: 3, fast_math: false, line_info: false, debug: false };
        let copy = unmask(&module, arch, &options).expect("LLVM takes it")?;
        Some(copy.print_to_string().to_string())
    }

    #[test]
    fn masks_of_small_counts_are_removed() {
        let text = unmasked(&with_count("%eight = mul i32 %k2, 8\n  %count = sub i32 32, %eight"))
            .unwrap();
        assert!(text.contains("zext i32 %count to i64"), "{text}");
        assert!(!text.contains(PROBE) && text.contains("alloca"), "{text}");
    }

    #[test]
    fn masks_that_may_change_a_count_stay() {
        for count in [
            // Up to 64, down to -8, any, and a loop's counter without its limit.
            "%count = mul i32 %k2, 16",
            "%eight = mul i32 %k2, 8\n  %count = sub i32 24, %eight",
            "%count = add i32 %k2, %n",
            "%count = xor i32 %limit, 64",
        ] {
            assert_eq!(unmasked(&with_count(count)), None, "{count}");
        }
        // Shifts of 32 bits take their counts so.
        let narrow = with_count("%count = add i32 %k2, 1")
            .replace("i64", "i32")
            .replace("zext i32 %masked to i32", "add i32 %masked, 0");
        assert_eq!(unmasked(&narrow.replace("63", "31")), None);
    }
}
