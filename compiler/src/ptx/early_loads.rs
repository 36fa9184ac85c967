//! Loads that nothing changes, before the stores of the rounds before them.
//!
//! In a loop that LLVM has unrolled, the loads of a round follow the stores of the round before, and ptxas leaves them there, though
//! `ld.global.nc` may move anywhere. So a thread waits for memory in each round. Where ptxas unrolls itself, it loads for all rounds first.

use std::collections::{BTreeMap, BTreeSet};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{AsValueRef as _, InstructionOpcode, InstructionValue};

use super::loops;

/// The most registers of 32 bits that hold what is loaded early in a block.
const MOST_REGISTERS: u32 = 8;

/// The most instructions that compute an address.
const MOST_STEPS: usize = 16;

/// Moves loads that are marked as invariant, with what computes their addresses, behind the first load of their block, or before the first
/// store.
pub(super) fn hoist(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    let kind = module.get_context().get_kind_id("invariant.load");
    for block in module.get_functions().flat_map(|function| function.get_basic_block_iter()) {
        if !loops::successors(block).contains(&block) {
            continue;
        }
        for (mut behind, moved) in movable(block, kind) {
            for instruction in moved {
                let Some(next) = behind.get_next_instruction() else { break };
                if next != instruction {
                    instruction.remove_from_basic_block();
                    builder.position_before(&next);
                    builder.insert_instruction(&instruction, None);
                }
                behind = instruction;
            }
        }
    }
}

/// The instructions to move, in order, with the one behind which they belong.
fn movable<'ctx>(
    block: BasicBlock<'ctx>,
    kind: u32,
) -> Vec<(InstructionValue<'ctx>, Vec<InstructionValue<'ctx>>)> {
    let instructions: Vec<_> = block.get_instructions().collect();
    let places: BTreeMap<usize, usize> =
        instructions.iter().enumerate().map(|(at, it)| (it.as_value_ref() as usize, at)).collect();
    // Behind which instruction loads may go, and whether there is a store since.
    let (mut place, mut has_stored) = (None, false);
    let (mut registers, mut moved) = (0, BTreeMap::<usize, BTreeSet<usize>>::new());
    for (at, instruction) in instructions.iter().enumerate() {
        match instruction.get_opcode() {
            InstructionOpcode::Store => {
                place = place.or(at.checked_sub(1));
                has_stored = true;
            }
            // It may not return.
            InstructionOpcode::Call if !is_pure(*instruction) => {
                (place, has_stored) = (None, false)
            }
            InstructionOpcode::Load if instruction.get_metadata(kind).is_some() => {
                let behind = *place.get_or_insert(at);
                if !has_stored {
                    continue;
                }
                let others = moved.entry(behind).or_default();
                let Some(of_address) = address(&instructions, &places, at, behind, others) else {
                    continue;
                };
                registers += words(*instruction);
                if registers > MOST_REGISTERS {
                    break;
                }
                others.extend(of_address);
            }
            _ => {}
        }
    }
    let of = |at: usize| instructions[at];
    moved.into_iter().map(|(at, moved)| (of(at), moved.into_iter().map(of).collect())).collect()
}

/// The instructions behind `behind`, up to a load, that have to move with it, itself included; `None` if one of them cannot move.
fn address<'ctx>(
    instructions: &[InstructionValue<'ctx>],
    places: &BTreeMap<usize, usize>,
    load: usize,
    behind: usize,
    moved: &BTreeSet<usize>,
) -> Option<Vec<usize>> {
    let (mut found, mut open) = (vec![], vec![load]);
    while let Some(at) = open.pop() {
        let is_new = at > behind && !moved.contains(&at) && !found.contains(&at);
        if !is_new {
            continue;
        }
        let instruction = instructions[at];
        if found.len() == MOST_STEPS || at != load && !is_arithmetic(instruction) {
            return None;
        }
        found.push(at);
        let values = instruction.get_operands().flatten().filter_map(|operand| operand.value());
        open.extend(
            values.filter_map(|value| places.get(&(value.as_value_ref() as usize)).copied()),
        );
    }
    Some(found)
}

/// Whether an instruction computes a part of an address.
fn is_arithmetic(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode::{
        Add, AddrSpaceCast, And, GetElementPtr, Mul, Or, SExt, Shl, Sub, Trunc, ZExt,
    };
    matches!(
        instruction.get_opcode(),
        Add | AddrSpaceCast | And | GetElementPtr | Mul | Or | SExt | Shl | Sub | Trunc | ZExt
    )
}

/// Whether a call only computes a value.
fn is_pure(call: InstructionValue<'_>) -> bool {
    let memory = Attribute::get_named_enum_kind_id("memory");
    let effects = loops::callee(call)
        .and_then(|callee| callee.get_enum_attribute(AttributeLoc::Function, memory));
    effects.is_some_and(|effects| effects.get_enum_value() == 0)
}

/// The registers of 32 bits that hold a loaded value.
fn words(load: InstructionValue<'_>) -> u32 {
    let of_int = |bits: u32| bits.div_ceil(32);
    match load.get_type() {
        AnyTypeEnum::IntType(ty) => of_int(ty.get_bit_width()),
        AnyTypeEnum::FloatType(ty) => of_int(ty.get_bit_width()),
        AnyTypeEnum::PointerType(_) => 2,
        _ => 4,
    }
}
