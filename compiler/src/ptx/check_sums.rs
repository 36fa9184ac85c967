//! Check sums (CRC) a byte at a time, for libNVVM.
//!
//! LLVM knows loops that compute a cyclic redundancy check bit by bit, and replaces them by loops that look up a table, a byte at a time
//! (LLVM 22, `HashRecognize`). libNVVM does not. So functions with such a loop pass through LLVM first. All other functions stay as
//! they are: optimised twice, some become slower (docs/measurements.md, "Plain kernels beside nvcc's").

use inkwell::AddressSpace;
use inkwell::llvm_sys::core::LLVMGetAggregateElement;
use inkwell::module::{Linkage, Module};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::{
    AsValueRef as _, BasicValueEnum, FunctionValue, GlobalValue, InstructionOpcode,
    InstructionValue, IntValue,
};

use super::PtxOptions;
use super::nvptx::{refused, target_machine};
use crate::error::Result;
use gridlet_lang::arch::CudaArch;

/// What the recognition needs: values instead of variables, loops with their test at the end, `select` instead of branches.
const PASSES: &str = "sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate),simplifycfg,early-cse,\
    instcombine<no-verify-fixpoint>,loop(loop-idiom)";

/// How LLVM names its tables.
const TABLE: &str = ".crctable";

/// Global memory: libNVVM takes no variables without an address space.
const GLOBAL: u16 = 1;

/// A copy of the module in which loops of check sums look up tables; `None` if there are none.
///
/// # Errors
/// `Tool` if LLVM refuses to optimise the module.
pub(crate) fn by_bytes<'ctx>(
    module: &Module<'ctx>,
    arch: CudaArch,
    options: &PtxOptions,
) -> Result<Option<Module<'ctx>>> {
    let candidates: Vec<String> =
        module.get_functions().filter(|it| may_be(*it)).map(name_of).collect();
    if candidates.is_empty() {
        return Ok(None);
    }
    let machine = target_machine(arch, options, "")?;
    let trial = module.clone();
    let mut found = Vec::new();
    for name in &candidates {
        let before = tables(&trial).count();
        optimise(&trial, name, &machine)?;
        if tables(&trial).count() > before {
            found.push(name);
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let copy = if found.len() == candidates.len() {
        trial
    } else {
        let copy = module.clone();
        for name in found {
            optimise(&copy, name, &machine)?;
        }
        copy
    };
    for table in tables(&copy).collect::<Vec<_>>() {
        into_global_memory(&copy, table);
    }
    Ok(Some(copy))
}

/// Whether a function shifts by one bit and has an exclusive or, as each such loop does.
fn may_be(function: FunctionValue<'_>) -> bool {
    let instructions = || {
        let blocks = function.get_basic_block_iter();
        blocks.flat_map(|block| block.get_instructions())
    };
    let shifts_by_one = |it: InstructionValue<'_>| {
        let is_shift = matches!(it.get_opcode(), InstructionOpcode::LShr | InstructionOpcode::Shl);
        is_shift && constant(it, 1) == Some(1)
    };
    instructions().any(shifts_by_one)
        && instructions().any(|it| it.get_opcode() == InstructionOpcode::Xor)
}

/// An operand that is a constant integer.
fn constant(instruction: InstructionValue<'_>, operand: u32) -> Option<u64> {
    match instruction.get_operand(operand)?.value()? {
        BasicValueEnum::IntValue(value) => value.get_zero_extended_constant(),
        _ => None,
    }
}

fn name_of(function: FunctionValue<'_>) -> String {
    function.get_name().to_string_lossy().into_owned()
}

fn optimise(module: &Module<'_>, function: &str, machine: &TargetMachine) -> Result<()> {
    let Some(function) = module.get_function(function) else { return Ok(()) };
    function
        .run_passes(PASSES, machine, PassBuilderOptions::create())
        .map_err(|message| refused("optimising", message.to_string()))
}

fn tables<'ctx>(module: &Module<'ctx>) -> impl Iterator<Item = GlobalValue<'ctx>> {
    module.get_globals().filter(|it| it.get_name().to_string_lossy().starts_with(TABLE))
}

/// Moves a table to global memory. Tables of the same name are equal, also in two compilations of a program (`splice`).
fn into_global_memory<'ctx>(module: &Module<'ctx>, table: GlobalValue<'ctx>) {
    let Some(values) = table.get_initializer() else { return };
    // One of these entries is the polynomial, from which all others follow.
    let [second, middle] = [1, 128].map(|at| entry(values, at));
    let bits =
        values.get_type().into_array_type().get_element_type().into_int_type().get_bit_width();
    let name = format!("gridlet_$_check_sums_{bits}_{second:x}_{middle:x}");
    let moved = module.get_global(&name).unwrap_or_else(|| {
        let space = Some(AddressSpace::from(GLOBAL));
        let moved = module.add_global(values.get_type(), space, &name);
        moved.set_initializer(&values);
        moved.set_constant(true);
        moved.set_linkage(Linkage::Internal);
        moved
    });
    let pointer = table.as_pointer_value();
    let generic = moved.as_pointer_value().const_address_space_cast(pointer.get_type());
    pointer.replace_all_uses_with(generic);
    // SAFETY: nothing refers to the table any more.
    unsafe { table.delete() };
}

/// An entry of a table.
fn entry(table: BasicValueEnum<'_>, at: u32) -> u64 {
    // SAFETY: LLVM's tables are constant arrays of 256 integers.
    let value = unsafe { IntValue::new(LLVMGetAggregateElement(table.as_value_ref(), at)) };
    value.get_zero_extended_constant().unwrap_or_default()
}
