//! The loops of LLVM's functions, and how often they run.

use std::collections::{BTreeMap, BTreeSet};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::core::{
    LLVMGetCalledValue, LLVMGetInlineAsmAsmString, LLVMGetNSW, LLVMGetNUW, LLVMIsAInlineAsm,
};
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    AsValueRef, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode,
    InstructionValue, IntValue, PhiValue,
};
#[cfg(test)]
use inkwell::{context::Context, memory_buffer::MemoryBuffer};

use super::graph;

/// A loop with one jump back.
pub(super) struct Loop<'ctx> {
    pub(super) head: BasicBlock<'ctx>,
    /// The only block that jumps back to the head.
    pub(super) latch: BasicBlock<'ctx>,
    /// All blocks, also those of loops inside.
    pub(super) blocks: Vec<BasicBlock<'ctx>>,
    /// Whether no loop is inside, with any number of jumps back.
    pub(super) is_innermost: bool,
}

impl<'ctx> Loop<'ctx> {
    /// The counter with a constant step that the latch compares.
    pub(super) fn counter(&self) -> Option<Counter<'ctx>> {
        let branch = self.latch.get_terminator()?;
        let condition = instruction(branch.get_operand(0)?.value()?)?;
        condition.get_icmp_predicate()?;
        let compared = instruction(condition.get_operand(0)?.value()?)?;
        let counter = match compared.get_opcode() {
            InstructionOpcode::Phi => compared,
            _ => instruction(compared.get_operand(0)?.value()?)?,
        };
        let phi = PhiValue::try_from(counter).ok()?;
        let next = phi.get_incomings().find(|(_, from)| *from == self.latch)?.0;
        let next = instruction(next)?;
        let step = step_of(counter, next)?;
        let is_counter =
            counter.get_parent() == Some(self.head) && [counter, next].contains(&compared);
        // SAFETY: `next` is an addition.
        let is_wrap_free =
            unsafe { LLVMGetNUW(next.as_value_ref()) + LLVMGetNSW(next.as_value_ref()) } != 0;
        let is_bounded = is_wrap_free || step.abs() == 1;
        let is_next = compared == next;
        is_counter.then_some(Counter { branch, condition, phi, step, is_next, is_bounded })
    }

    /// Whether a condition or bits of the counter decide what a round does.
    pub(super) fn differs_by_round(&self) -> bool {
        let Some(counter) = self.counter() else { return false };
        let phi = counter.phi.as_value_ref();
        let inside = self.blocks.iter().flat_map(|block| block.get_instructions());
        let mut tests = inside.filter(|one| {
            let is_test = matches!(
                one.get_opcode(),
                InstructionOpcode::ICmp | InstructionOpcode::And | InstructionOpcode::Switch
            );
            is_test && *one != counter.condition
        });
        tests.any(|test| values(test).any(|value| value.as_value_ref() == phi))
    }

    /// Whether the counter ends at the smaller of some number and a constant that is at most `most`.
    pub(super) fn ends_by(&self, most: i64) -> bool {
        let end = self
            .counter()
            .and_then(|counter| instruction(counter.condition.get_operand(1)?.value()?));
        // LLVM makes the end at least one, as the loop runs at least once.
        let end = end.and_then(|end| match smaller_or_greater(end) {
            Some(("llvm.umax." | "llvm.smax.", number, _)) => instruction(number),
            _ => Some(end),
        });
        end.and_then(smaller_or_greater).is_some_and(|(name, _, constant)| {
            matches!(name, "llvm.umin." | "llvm.smin.") && (0..=most).contains(&constant)
        })
    }

    /// The number of iterations, if the latch compares a counter with a constant for equality, as LLVM writes a loop with a known
    /// number of iterations.
    pub(super) fn iterations(&self) -> Option<u64> {
        let Counter { branch, condition, phi, step, .. } =
            self.counter().filter(|counter| counter.is_next)?;
        let end = constant(condition.get_operand(1)?.value()?)?;
        // The operands of a branch are the condition and, in this order, the targets if it is false and true.
        let goes_on_if = branch.get_operand(2)?.block()? == self.head;
        let predicate = if goes_on_if { IntPredicate::NE } else { IntPredicate::EQ };
        if condition.get_icmp_predicate()? != predicate {
            return None;
        }
        let mut start = None;
        for (value, _) in phi.get_incomings().filter(|(_, from)| *from != self.latch) {
            if start.replace(constant(value)?).is_some() {
                return None;
            }
        }
        let distance = end.checked_sub(start?)?;
        let is_whole = distance.checked_rem(step)? == 0;
        u64::try_from(distance.checked_div(step)?).ok().filter(|times| is_whole && *times > 0)
    }
}

/// A counter of a loop.
pub(super) struct Counter<'ctx> {
    /// The branch back.
    branch: InstructionValue<'ctx>,
    condition: InstructionValue<'ctx>,
    phi: PhiValue<'ctx>,
    step: i64,
    /// Whether the condition is on the counter's next value.
    is_next: bool,
    /// Whether the counter cannot pass its end by wrapping around.
    pub(super) is_bounded: bool,
}

/// The weight of a division of 64 bits.
const LONG_DIVISION: u64 = 60;

/// The weight of an instruction: of libNVVM, which unrolls loops with divisions of 32 bits far, those of 64 bits less.
pub(super) fn weight(instruction: InstructionValue<'_>) -> u64 {
    match instruction.get_opcode() {
        InstructionOpcode::Phi
        | InstructionOpcode::GetElementPtr
        | InstructionOpcode::BitCast
        | InstructionOpcode::AddrSpaceCast => 0,
        InstructionOpcode::SDiv
        | InstructionOpcode::SRem
        | InstructionOpcode::UDiv
        | InstructionOpcode::URem => match instruction.get_type() {
            AnyTypeEnum::IntType(ty) if ty.get_bit_width() > 32 => LONG_DIVISION,
            _ => 4,
        },
        _ => 1,
    }
}

/// The instruction that gives an integer.
pub(super) fn instruction(value: BasicValueEnum<'_>) -> Option<InstructionValue<'_>> {
    match value {
        BasicValueEnum::IntValue(value) => value.as_instruction_value(),
        _ => None,
    }
}

/// As [`instruction`], also of pointers.
pub(super) fn defining(value: BasicValueEnum<'_>) -> Option<InstructionValue<'_>> {
    match value {
        BasicValueEnum::PointerValue(value) => value.as_instruction_value(),
        value => instruction(value),
    }
}

pub(super) fn constant(value: BasicValueEnum<'_>) -> Option<i64> {
    match value {
        BasicValueEnum::IntValue(value) => value.get_sign_extended_constant(),
        _ => None,
    }
}

/// The constant that an instruction adds to a counter.
pub(super) fn step_of<'ctx>(
    counter: InstructionValue<'ctx>,
    sum: InstructionValue<'ctx>,
) -> Option<i64> {
    let is_sum = sum.get_opcode() == InstructionOpcode::Add
        && instruction(sum.get_operand(0)?.value()?) == Some(counter);
    constant(sum.get_operand(1)?.value()?).filter(|_| is_sum)
}

/// The function that an instruction calls.
pub(super) fn callee(call: InstructionValue<'_>) -> Option<FunctionValue<'_>> {
    CallSiteValue::try_from(call).ok()?.get_called_fn_value()
}

/// The operands of a call that gives the smaller or the greater of a number and a constant, after its name.
/// An operand that is an integer.
pub(super) fn integer<'ctx>(of: InstructionValue<'ctx>, operand: u32) -> Option<IntValue<'ctx>> {
    match of.get_operand(operand)?.value()? {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    }
}

/// Whether an instruction is this assembly.
pub(super) fn is_assembly(call: InstructionValue<'_>, expected: &str) -> bool {
    if call.get_opcode() != InstructionOpcode::Call {
        return false;
    }
    // SAFETY: the instruction is a call, and the text belongs to the assembly, which lives as long as the module.
    unsafe {
        let called = LLVMGetCalledValue(call.as_value_ref());
        if LLVMIsAInlineAsm(called).is_null() {
            return false;
        }
        let mut length = 0;
        let text = LLVMGetInlineAsmAsmString(called, &mut length);
        std::slice::from_raw_parts(text.cast::<u8>(), length) == expected.as_bytes()
    }
}

fn smaller_or_greater(
    call: InstructionValue<'_>,
) -> Option<(&'static str, BasicValueEnum<'_>, i64)> {
    const NAMES: [&str; 4] = ["llvm.umin.", "llvm.smin.", "llvm.umax.", "llvm.smax."];
    let callee = callee(call)?;
    let name = callee.get_name().to_str().ok()?;
    let name = NAMES.into_iter().find(|start| name.starts_with(start))?;
    Some((name, call.get_operand(0)?.value()?, constant(call.get_operand(1)?.value()?)?))
}

/// The targets of a block's terminator.
pub(super) fn successors<'ctx>(block: BasicBlock<'ctx>) -> Vec<BasicBlock<'ctx>> {
    let Some(terminator) = block.get_terminator() else { return vec![] };
    terminator.get_operands().flatten().filter_map(|operand| operand.block()).collect()
}

/// What tells a block from others.
pub(super) fn address(block: BasicBlock<'_>) -> usize {
    block.as_mut_ptr() as usize
}

/// What tells a value from others.
pub(super) fn key(value: &impl AsValueRef) -> usize {
    value.as_value_ref() as usize
}

/// The operands of an instruction that are values.
pub(super) fn values<'ctx>(
    of: InstructionValue<'ctx>,
) -> impl Iterator<Item = BasicValueEnum<'ctx>> {
    of.get_operands().flatten().filter_map(|operand| operand.value())
}

/// The values of a block that depend on the way there.
pub(super) fn phis<'ctx>(block: BasicBlock<'ctx>) -> Vec<PhiValue<'ctx>> {
    block.get_instructions().map_while(|phi| PhiValue::try_from(phi).ok()).collect()
}

/// A module of a test.
#[cfg(test)]
pub(super) fn module_of<'ctx>(context: &'ctx Context, text: &str) -> Module<'ctx> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "k");
    context.create_module_from_ir(buffer).expect("a module")
}

/// The instructions of all functions.
pub(super) fn instructions<'ctx>(
    module: &Module<'ctx>,
) -> impl Iterator<Item = InstructionValue<'ctx>> {
    module.get_functions().flat_map(instructions_of)
}

/// The instructions of a function.
pub(super) fn instructions_of<'ctx>(
    function: FunctionValue<'ctx>,
) -> impl Iterator<Item = InstructionValue<'ctx>> {
    function.get_basic_block_iter().flat_map(|block| block.get_instructions())
}

/// The blocks of a function, by number, with the jumps between them.
struct Flow<'ctx> {
    blocks: Vec<BasicBlock<'ctx>>,
    before: Vec<Vec<usize>>,
    /// Jumps back, by the block that they lead to.
    latches: BTreeMap<usize, BTreeSet<usize>>,
}

impl<'ctx> Flow<'ctx> {
    fn of(function: FunctionValue<'ctx>) -> Flow<'ctx> {
        let blocks: Vec<BasicBlock<'ctx>> = function.get_basic_block_iter().collect();
        let numbers: BTreeMap<usize, usize> =
            blocks.iter().enumerate().map(|(at, block)| (address(*block), at)).collect();
        let number = |block: &BasicBlock<'ctx>| numbers.get(&address(*block)).copied();
        let next: Vec<Vec<usize>> = blocks
            .iter()
            .map(|block| successors(*block).iter().filter_map(number).collect())
            .collect();
        Flow { blocks, before: graph::predecessors(&next), latches: graph::jumps_back(&next) }
    }
}

/// The jumps back of each loop: the block that they lead to, and those that they come from.
pub(super) fn jumps_back<'ctx>(
    function: FunctionValue<'ctx>,
) -> Vec<(BasicBlock<'ctx>, Vec<BasicBlock<'ctx>>)> {
    let Flow { blocks, latches, .. } = Flow::of(function);
    let of = |(head, from): (usize, BTreeSet<usize>)| {
        (blocks[head], from.into_iter().map(|block| blocks[block]).collect())
    };
    latches.into_iter().map(of).collect()
}

/// The loops of a function that have one jump back and one entry.
pub(super) fn find<'ctx>(function: FunctionValue<'ctx>) -> Vec<Loop<'ctx>> {
    let Flow { blocks, before, latches } = Flow::of(function);
    let of = |(&head, from): (&usize, &BTreeSet<usize>)| {
        let latch = *from.first().filter(|_| from.len() == 1)?;
        let inside = graph::natural_loop(head, latch, &before);
        // A loop that is entered elsewhere, too.
        if head != 0 && inside.contains(&0) {
            return None;
        }
        let is_innermost =
            inside.iter().all(|block| *block == head || !latches.contains_key(block));
        let inside = inside.into_iter().map(|block| blocks[block]).collect();
        Some(Loop { head: blocks[head], latch: blocks[latch], blocks: inside, is_innermost })
    };
    latches.iter().filter_map(of).collect()
}
