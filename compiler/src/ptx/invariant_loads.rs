//! Loads through pointers that a kernel with `#[noalias]` only reads through.
//!
//! LLVM's back end reads these by `ld.global.nc`, but looks for them when loops are unrolled. Where it has peeled rounds off a loop, a pointer
//! may come from nowhere, `poison`, on a way that is never taken, and then the back end gives up.

use std::collections::BTreeSet;

use inkwell::AtomicOrdering;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    AsValueRef as _, BasicValue as _, BasicValueEnum, FunctionValue, InstructionOpcode,
    InstructionValue,
};

use super::loops;
use super::nvptx::is_kernel;
use crate::error::{Error, Result};

/// How many values an address may be computed from.
const MOST_STEPS: usize = 64;

/// Marks the loads, so that their copies are marked, too.
pub(super) fn mark<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    let kind = context.get_kind_id("invariant.load");
    for kernel in module.get_functions().filter(is_kernel) {
        let parameters = read_only_parameters(kernel);
        if parameters.is_empty() {
            continue;
        }
        let loads = loops::instructions_of(kernel).filter(|load| is_plain(*load));
        for load in loads.filter(|load| reads_only(*load, &parameters)) {
            load.set_metadata(context.metadata_node(&[]), kind)
                .map_err(|error| Error::internal("ptx", format!("invariant.load: {error}")))?;
        }
    }
    Ok(())
}

/// The pointers among a kernel's parameters that nothing else leads to and that nothing is written through.
fn read_only_parameters(kernel: FunctionValue<'_>) -> BTreeSet<usize> {
    let has = |at, name| {
        let kind = Attribute::get_named_enum_kind_id(name);
        kernel.get_enum_attribute(AttributeLoc::Param(at), kind).is_some()
    };
    let parameters = (0..).zip(kernel.get_param_iter());
    let parameters = parameters.filter(|(at, _)| has(*at, "noalias") && has(*at, "readonly"));
    parameters.map(|(_, parameter)| parameter.as_value_ref() as usize).collect()
}

fn is_plain(load: InstructionValue<'_>) -> bool {
    load.get_opcode() == InstructionOpcode::Load
        && load.get_volatile() == Ok(false)
        && load.get_atomic_ordering() == Ok(AtomicOrdering::NotAtomic)
}

/// Whether the address of a load comes from such parameters alone.
fn reads_only(load: InstructionValue<'_>, parameters: &BTreeSet<usize>) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<_> =
        load.get_operand(0).and_then(|address| address.value()).into_iter().collect();
    while let Some(address) = open.pop() {
        let BasicValueEnum::PointerValue(address) = address else { return false };
        let id = address.as_value_ref() as usize;
        if parameters.contains(&id) || address.is_undef() || !seen.insert(id) {
            continue;
        }
        let Some(from) = address.as_instruction_value().filter(|_| seen.len() < MOST_STEPS) else {
            return false;
        };
        let value = |at: u32| from.get_operand(at).and_then(|operand| operand.value());
        match from.get_opcode() {
            InstructionOpcode::GetElementPtr | InstructionOpcode::AddrSpaceCast => {
                open.extend(value(0))
            }
            InstructionOpcode::Select => open.extend([value(1), value(2)].into_iter().flatten()),
            InstructionOpcode::Phi => {
                open.extend(from.get_operands().filter_map(|operand| operand?.value()));
            }
            _ => return false,
        }
    }
    true
}
