//! Moves out of loops what LLVM's own pipeline leaves there.
//!
//! Unrolling makes the indices of local arrays constants after LLVM has moved what it could. An element that a loop reads and writes then
//! stays in memory, and ptxas keeps the whole array there: a flood fill on rows of a board took 2.4 times as long as nvcc's.
//!
//! And LLVM moves no load to before a loop past the trap for a divisor of zero, which may not return, as far as it knows. If it knew that the
//! trap does, it would move divisions, too, and conclude from them that the divisor is not zero: the trap would be gone. So loads of what
//! nothing writes meanwhile move here, and nothing else.

use std::collections::BTreeSet;

use inkwell::basic_block::BasicBlock;
use inkwell::context::ContextRef;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};

use super::local_arrays;
use super::loops::{self, Loop, address, successors};
use super::nvptx::refused;
use crate::codegen::TRAP;
use crate::error::Result;

/// Moves it. `unrolled`: whether loops were unrolled since LLVM's pipeline.
pub(super) fn hoist(module: &Module<'_>, machine: &TargetMachine, unrolled: bool) -> Result<()> {
    for function in module.get_functions() {
        if unrolled && local_arrays::has_elements_in_loops(function) {
            function
                .run_passes("loop-mssa(licm)", machine, PassBuilderOptions::create())
                .map_err(|message| refused("optimising", message.to_string()))?;
        }
        let mut loops = loops::find(function);
        // From inner loops to those around them.
        loops.sort_by_key(|of| of.blocks.len());
        for of in &loops {
            hoist_loads(function, of, module.get_context());
        }
    }
    Ok(())
}

/// Loads before a loop with traps what each of its rounds loads from the same place.
fn hoist_loads<'ctx>(function: FunctionValue<'ctx>, of: &Loop<'ctx>, context: ContextRef<'ctx>) {
    let is_trap = |one: InstructionValue<'ctx>| loops::is_assembly(one, TRAP);
    let mut inside = of.blocks.iter().flat_map(|block| block.get_instructions());
    if !inside.any(is_trap) {
        return;
    }
    let Some(end) = entry(function, of).and_then(|block| block.get_terminator()) else { return };
    let builder = context.create_builder();
    for block in of.blocks.iter().filter(|block| is_reached(of, **block)) {
        for load in block.get_instructions().filter(|one| is_unchanged(*one, of)) {
            load.remove_from_basic_block();
            builder.position_before(&end);
            builder.insert_instruction(&load, None);
        }
    }
}

/// The only block from which a loop is entered, if it leads nowhere else.
fn entry<'ctx>(function: FunctionValue<'ctx>, of: &Loop<'ctx>) -> Option<BasicBlock<'ctx>> {
    let is_before = |block: &BasicBlock<'ctx>| {
        !of.blocks.contains(block) && successors(*block).contains(&of.head)
    };
    let before: Vec<_> = function.get_basic_block_iter().filter(is_before).collect();
    let [only] = before[..] else { return None };
    (successors(only) == [of.head]).then_some(only)
}

/// Whether each round comes to a block, if no trap before it stops the grid.
fn is_reached<'ctx>(of: &Loop<'ctx>, block: BasicBlock<'ctx>) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([address(of.head)]), vec![of.head]);
    while let Some(before) = open.pop() {
        let mut calls = before.get_instructions().filter(may_stay);
        if calls.next().is_some() {
            return false;
        }
        if before == block {
            continue;
        }
        for next in successors(before) {
            if next == of.head || !of.blocks.contains(&next) {
                return false;
            }
            if seen.insert(address(next)) {
                open.push(next);
            }
        }
    }
    true
}

/// Whether an instruction may keep a thread from going on: a call of anything but an intrinsic or the trap for a divisor.
fn may_stay(one: &InstructionValue<'_>) -> bool {
    let is_intrinsic =
        |callee: FunctionValue<'_>| callee.get_name().to_bytes().starts_with(b"llvm.");
    one.get_opcode() == InstructionOpcode::Call
        && !loops::callee(*one).is_some_and(is_intrinsic)
        && !loops::is_assembly(*one, TRAP)
}

/// Whether an instruction loads what nothing writes, from an address that the loop does not compute.
fn is_unchanged<'ctx>(one: InstructionValue<'ctx>, of: &Loop<'ctx>) -> bool {
    let kind = one.get_parent().map(|block| block.get_context().get_kind_id("invariant.load"));
    let is_computed = |value| {
        let from = loops::defining(value).and_then(|from| from.get_parent());
        from.is_some_and(|block| of.blocks.contains(&block))
    };
    one.get_opcode() == InstructionOpcode::Load
        && one.get_volatile() == Ok(false)
        && kind.is_some_and(|kind| one.get_metadata(kind).is_some())
        && !loops::values(one).any(is_computed)
}
