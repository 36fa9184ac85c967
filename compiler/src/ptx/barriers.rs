//! Loops with barriers, unrolled.
//!
//! LLVM unrolls a loop with a barrier only if its number of iterations is known: in the rounds that are left over, other threads could wait
//! at another barrier. But all threads of a block come to a barrier under the same conditions (docs/errors.md, "divergent-barrier"), so the copies are as
//! right as the loop, and libNVVM unrolls such loops, too.
//!
//! What depends on counters alone is computed before the branches of the loop first, so that the copies share it. LLVM moves back what they
//! do not share.

use std::collections::{BTreeSet, HashSet};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode,
    InstructionValue, PhiValue,
};

use super::loops::{self, Loop, address};

/// The barrier of all threads of a block.
const BARRIER: &str = "llvm.nvvm.barrier.cta.sync.aligned.all";

/// Barriers that LLVM may copy.
pub(super) struct Lifted<'ctx> {
    barrier: FunctionValue<'ctx>,
    /// Those that it may not.
    others: Vec<CallSiteValue<'ctx>>,
}

/// Lets LLVM copy the barriers in some loops; `None` if there are none.
pub(super) fn lift<'ctx>(
    module: &Module<'ctx>,
    context: &'ctx Context,
    loops: &[Loop<'ctx>],
) -> Option<Lifted<'ctx>> {
    let barrier = module.get_function(BARRIER)?;
    let is_inside = |of: &Loop<'ctx>, call: InstructionValue<'ctx>| {
        call.get_parent().is_some_and(|block| of.blocks.contains(&block))
    };
    let calls: Vec<_> =
        loops::instructions(module).filter(|call| loops::callee(*call) == Some(barrier)).collect();
    let with_barrier: Vec<&Loop<'ctx>> =
        loops.iter().filter(|of| calls.iter().any(|call| is_inside(of, *call))).collect();
    if with_barrier.is_empty() {
        return None;
    }
    let builder = context.create_builder();
    with_barrier.iter().for_each(|of| hoist(of, &builder));
    let attribute = context.create_enum_attribute(convergent(), 0);
    let is_other =
        |call: &InstructionValue<'ctx>| !with_barrier.iter().any(|of| is_inside(of, *call));
    let others: Vec<_> = calls
        .into_iter()
        .filter(is_other)
        .filter_map(|call| CallSiteValue::try_from(call).ok())
        .collect();
    others.iter().for_each(|call| call.add_attribute(AttributeLoc::Function, attribute));
    barrier.remove_enum_attribute(AttributeLoc::Function, convergent());
    Some(Lifted { barrier, others })
}

impl Lifted<'_> {
    /// Keeps LLVM from copying barriers again.
    pub(super) fn restore(self, context: &Context) {
        let attribute = context.create_enum_attribute(convergent(), 0);
        self.barrier.add_attribute(AttributeLoc::Function, attribute);
        for call in self.others {
            call.remove_enum_attribute(AttributeLoc::Function, convergent());
        }
    }
}

fn convergent() -> u32 {
    Attribute::get_named_enum_kind_id("convergent")
}

/// Computes what depends on counters alone in the first block of a loop.
fn hoist<'ctx>(of: &Loop<'ctx>, builder: &Builder<'ctx>) {
    let Some(end) = of.head.get_terminator() else { return };
    let inside: BTreeSet<usize> = of.blocks.iter().map(|block| address(*block)).collect();
    let mut early: HashSet<InstructionValue<'ctx>> = HashSet::new();
    let is_early = |early: &HashSet<_>, value: BasicValueEnum<'ctx>| {
        let Some(instruction) = value.as_instruction_value() else { return true };
        let is_outside =
            instruction.get_parent().is_some_and(|block| !inside.contains(&address(block)));
        is_outside || early.contains(&instruction)
    };
    let depends_on_counters = |early: &HashSet<_>, instruction: &InstructionValue<'ctx>| {
        let mut operands = instruction.get_operands().flatten();
        is_plain(*instruction)
            && operands.all(|operand| operand.value().is_some_and(|it| is_early(early, it)))
    };
    for instruction in of.head.get_instructions() {
        if is_counter(instruction, of) || depends_on_counters(&early, &instruction) {
            early.insert(instruction);
        }
    }
    loop {
        let others = of.blocks.iter().filter(|block| **block != of.head);
        let mut instructions = others.flat_map(|block| block.get_instructions());
        let Some(found) = instructions.find(|it| depends_on_counters(&early, it)) else { return };
        found.remove_from_basic_block();
        builder.position_before(&end);
        builder.insert_instruction(&found, None);
        early.insert(found);
    }
}

/// Whether an instruction is a number that a constant is added to in each round.
fn is_counter<'ctx>(instruction: InstructionValue<'ctx>, of: &Loop<'ctx>) -> bool {
    let Ok(phi) = PhiValue::try_from(instruction) else { return false };
    let next = phi.get_incomings().find(|(_, from)| *from == of.latch);
    let next = next.and_then(|(next, _)| loops::instruction(next));
    next.is_some_and(|next| loops::step_of(instruction, next).is_some())
}

/// Whether an instruction computes an integer or an address, whatever its operands.
fn is_plain(instruction: InstructionValue<'_>) -> bool {
    let is_number =
        matches!(instruction.get_type(), AnyTypeEnum::IntType(_) | AnyTypeEnum::PointerType(_));
    let divisor = || instruction.get_operand(1).and_then(|operand| operand.value());
    is_number
        && match instruction.get_opcode() {
            InstructionOpcode::Add
            | InstructionOpcode::Sub
            | InstructionOpcode::Mul
            | InstructionOpcode::And
            | InstructionOpcode::Or
            | InstructionOpcode::Xor
            | InstructionOpcode::Shl
            | InstructionOpcode::LShr
            | InstructionOpcode::AShr
            | InstructionOpcode::ZExt
            | InstructionOpcode::SExt
            | InstructionOpcode::Trunc
            | InstructionOpcode::GetElementPtr => true,
            InstructionOpcode::UDiv
            | InstructionOpcode::URem
            | InstructionOpcode::SDiv
            | InstructionOpcode::SRem => divisor().and_then(loops::constant) > Some(0),
            _ => false,
        }
}
