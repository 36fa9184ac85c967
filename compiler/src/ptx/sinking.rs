//! Moves computations to where their results are needed.
//!
//! LLVM's `sink` moves what only one branch uses into that branch. It also moves a computation behind branches that all lead to its new
//! place. That saves nothing, and there ptxas cannot compute it beside what was near it before.

use std::collections::{BTreeMap, BTreeSet};

use inkwell::basic_block::BasicBlock;
use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use inkwell::types::{AnyType as _, AnyTypeEnum};
use inkwell::values::{BasicValueEnum, InstructionOpcode, InstructionValue};

use super::loops::{self, address, key, successors, values};
use super::nvptx::run;
use crate::error::{Error, Result};

/// Sinks all but loads, which would start later, and what every way reaches.
pub(super) fn sink(module: &Module<'_>, machine: &TargetMachine) -> Result<()> {
    let loads = hold_loads(module)?;
    let places: Vec<_> = loops::instructions(module)
        .filter_map(|instruction| Some((instruction, instruction.get_parent()?)))
        .collect();
    run(module, machine, "function(sink)")?;
    loads.into_iter().try_for_each(|load| set_volatile(load, false))?;
    take_back(module, &places);
    Ok(())
}

/// Makes loads volatile, so that they stay where they are.
fn hold_loads<'ctx>(module: &Module<'ctx>) -> Result<Vec<InstructionValue<'ctx>>> {
    let loads = loops::instructions(module).filter(|instruction| {
        instruction.get_opcode() == InstructionOpcode::Load
            && instruction.get_volatile() == Ok(false)
    });
    let loads: Vec<_> = loads.collect();
    loads.iter().try_for_each(|load| set_volatile(*load, true))?;
    Ok(loads)
}

fn set_volatile(load: InstructionValue<'_>, volatile: bool) -> Result<()> {
    load.set_volatile(volatile)
        .map_err(|error| Error::internal("ptx", format!("volatile: {error}")))
}

/// Moves computations of floats back to their blocks, from places that every way from there reaches. `places` has them in the order of
/// the program.
fn take_back<'ctx>(module: &Module<'ctx>, places: &[(InstructionValue<'ctx>, BasicBlock<'ctx>)]) {
    let mut known = BTreeMap::new();
    let mut moved: BTreeMap<usize, bool> = BTreeMap::new();
    let floats = of_floats(places.iter().map(|(instruction, _)| *instruction));
    for (instruction, before) in places {
        let Some(now) = instruction.get_parent().filter(|now| now != before) else { continue };
        let is_always = *known
            .entry((address(*before), address(now)))
            .or_insert_with(|| always_reaches(*before, now));
        moved.insert(key(instruction), is_always && floats.contains(&key(instruction)));
    }
    // What stays in its new place cannot be an operand in the former one.
    let is_kept = |operand: &BasicValueEnum<'ctx>, moved: &BTreeMap<usize, bool>| {
        moved.get(&key(operand)) == Some(&false)
    };
    let mut is_done = false;
    while !is_done {
        is_done = true;
        for (instruction, _) in places {
            if moved.get(&key(instruction)) == Some(&true)
                && values(*instruction).any(|operand| is_kept(&operand, &moved))
            {
                moved.insert(key(instruction), false);
                is_done = false;
            }
        }
    }
    let builder = module.get_context().create_builder();
    for (instruction, before) in places {
        let returns = moved.get(&key(instruction)) == Some(&true);
        if let Some(place) = before.get_terminator().filter(|_| returns) {
            instruction.remove_from_basic_block();
            builder.position_before(&place);
            builder.insert_instruction(instruction, None);
        }
    }
}

/// The instructions that compute with floats, or with integers that are made of floats: bits of them, for example. Other integers
/// are mostly addresses and counters, which ptxas moves itself.
fn of_floats<'ctx>(instructions: impl Iterator<Item = InstructionValue<'ctx>>) -> BTreeSet<usize> {
    let is_float = |ty: AnyTypeEnum<'_>| matches!(ty, AnyTypeEnum::FloatType(_));
    let mut found = BTreeSet::new();
    for instruction in instructions {
        let mut operands = values(instruction).map(|operand| {
            is_float(operand.get_type().as_any_type_enum()) || found.contains(&key(&operand))
        });
        if is_float(instruction.get_type()) || operands.any(|is_of_floats| is_of_floats) {
            found.insert(key(&instruction));
        }
    }
    found
}

/// The most blocks between an instruction and where it sinks that are looked at.
const MOST_BLOCKS: usize = 200;

/// Whether every way from one block leads to another, before it ends or comes back.
fn always_reaches(from: BasicBlock<'_>, to: BasicBlock<'_>) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(block) = open.pop() {
        let next = successors(block);
        if next.is_empty() || next.contains(&from) || seen.len() > MOST_BLOCKS {
            return false;
        }
        open.extend(next.into_iter().filter(|next| *next != to && seen.insert(address(*next))));
    }
    true
}

#[cfg(test)]
mod tests {
    use gridlet_lang::arch::CudaArch;
    use inkwell::context::Context;

    use super::super::PtxOptions;
    use super::super::loops::module_of;
    use super::super::nvptx::target_machine;
    use super::sink;

    #[test]
    fn floats_sink_only_where_some_way_does_not_need_them() {
        let text = "
            define float @f(float %a, i32 %n, i1 %c, ptr %p) {
            entry:
              %always = fmul float %a, %a
              %bits = bitcast float %always to i32
              %shifted = shl i32 %bits, 1
              %sometimes = fmul float %a, 3.0
              %integer = mul i32 %n, %n
              br i1 %c, label %then, label %join
            then:
              store float %sometimes, ptr %p
              br label %join
            join:
              %number = sitofp i32 %integer to float
              %other = sitofp i32 %shifted to float
              %sum = fadd float %always, %number
              %both = fadd float %sum, %other
              ret float %both
            }";
        let context = Context::create();
        let module = module_of(&context, text);
        let machine =
            target_machine(CudaArch::DEFAULT, &PtxOptions::default(), "").expect("a machine");
        sink(&module, &machine).expect("sunk");
        module.verify().expect("a right module");
        insta::assert_snapshot!(module.print_to_string().to_string());
    }
}
