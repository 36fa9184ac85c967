//! Moves out of loops what LLVM's own pipeline leaves there.
//!
//! Unrolling makes the indices of local arrays constants after LLVM has moved what it could. An element that a loop reads and writes then
//! stays in memory, and ptxas keeps the whole array there: a flood fill on rows of a board took 2.4 times as long as nvcc's. And nothing
//! moves out of a loop past the trap for a divisor of zero, which may not return, as far as LLVM knows. For this one pass it returns:
//! longer, and LLVM could take what follows, a division by zero, for proof that the trap is never reached.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::{CallSiteValue, FunctionValue};

use super::nvptx::refused;
use super::{local_arrays, loops};
use crate::codegen::TRAP;
use crate::error::Result;

/// Moves it. `unrolled`: whether loops were unrolled since LLVM's pipeline.
pub(super) fn hoist(
    module: &Module<'_>,
    machine: &TargetMachine,
    context: &Context,
    unrolled: bool,
) -> Result<()> {
    let kind = Attribute::get_named_enum_kind_id("willreturn");
    let returns = context.create_enum_attribute(kind, 0);
    for function in module.get_functions() {
        let traps = traps_in_loops(function);
        if traps.is_empty() && !(unrolled && local_arrays::has_elements_in_loops(function)) {
            continue;
        }
        traps.iter().for_each(|trap| trap.add_attribute(AttributeLoc::Function, returns));
        let moved = function.run_passes("loop-mssa(licm)", machine, PassBuilderOptions::create());
        // The pass moves no trap, and copies none.
        traps.iter().for_each(|trap| trap.remove_enum_attribute(AttributeLoc::Function, kind));
        moved.map_err(|message| refused("optimising", message.to_string()))?;
    }
    Ok(())
}

fn traps_in_loops<'ctx>(function: FunctionValue<'ctx>) -> Vec<CallSiteValue<'ctx>> {
    let mut found = vec![];
    for of in loops::find(function) {
        let inside = of.blocks.iter().flat_map(|block| block.get_instructions());
        let traps = inside
            .filter(|one| loops::is_assembly(*one, TRAP))
            .filter_map(|trap| CallSiteValue::try_from(trap).ok());
        // Loops contain each other.
        for trap in traps {
            if !found.contains(&trap) {
                found.push(trap);
            }
        }
    }
    found
}
