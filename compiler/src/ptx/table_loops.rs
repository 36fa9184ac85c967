//! Unrolls loops that count through tables of constants, for libNVVM.
//!
//! ptxas never knows what a table in global memory holds. Where it unrolls a loop, each entry is still loaded, and waits in a register. In a
//! loop that libNVVM unrolls fully, entries are constants in instructions. libNVVM does so for local arrays that get into registers that way, but
//! does not see it where an index is one of several functions of the counter. So a copy shows these loops, as in `shift_counts.rs`, and
//! the module itself gets hints.

use std::collections::BTreeSet;

use inkwell::context::ContextRef;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::MetadataValue;

use super::loops::{self, Loop};
use super::nvptx::{run, target_machine};
use super::{PtxOptions, local_arrays, unrolling};
use crate::codegen::loop_node;
use crate::error::Result;
use gridlet_lang::arch::CudaArch;

/// Begins the name of a loop, before its number.
const NUMBER: &str = "gridlet.loop.";

/// A copy of the module with hints; `None` if no loop needs one.
///
/// # Errors
/// `Tool` if LLVM refuses to optimise the module.
pub(crate) fn unroll<'ctx>(
    module: &Module<'ctx>,
    arch: CudaArch,
    options: &PtxOptions,
) -> Result<Option<Module<'ctx>>> {
    let is_array = |ty: AnyTypeEnum<'_>| ty.is_array_type();
    let mut globals = module.get_globals();
    let has_table = globals.any(|global| global.is_constant() && is_array(global.get_value_type()));
    let context = module.get_context();
    let kind = context.get_kind_id("llvm.loop");
    if !has_table || open_loops(module, kind).is_empty() {
        return Ok(None);
    }
    let trial = module.clone();
    for (number, of) in open_loops(&trial, kind).iter().enumerate() {
        say(of, context, kind, &format!("{NUMBER}{number}"))?;
    }
    let machine = target_machine(arch, options, "")?;
    run(&trial, &machine, local_arrays::SIMPLIFY)?;
    let wanted: BTreeSet<usize> = local_arrays::loops_to_unroll(&trial, &machine)?
        .into_iter()
        .filter(local_arrays::reads_table)
        .filter_map(|of| number_of(unrolling::node_of(&of, kind)?))
        .collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    let copy = module.clone();
    let loops = open_loops(&copy, kind);
    for (_, of) in loops.iter().enumerate().filter(|(at, _)| wanted.contains(at)) {
        unrolling::ask_full(of, context)?;
    }
    Ok(Some(copy))
}

/// The loops of which the program says nothing.
fn open_loops<'ctx>(module: &Module<'ctx>, kind: u32) -> Vec<Loop<'ctx>> {
    let all = module.get_functions().flat_map(loops::find);
    all.filter(|of| unrolling::node_of(of, kind).is_none()).collect()
}

/// Gives a loop a node with a name.
fn say(of: &Loop<'_>, context: ContextRef<'_>, kind: u32, name: &str) -> Result<()> {
    let Some(latch) = of.latch.get_terminator() else { return Ok(()) };
    let name = context.metadata_node(&[context.metadata_string(name).into()]);
    unrolling::set(latch, loop_node(context, &[name]), kind)
}

fn number_of(node: MetadataValue<'_>) -> Option<usize> {
    let names = unrolling::names(node);
    names.iter().find_map(|name| name.strip_prefix(NUMBER)?.parse().ok())
}
