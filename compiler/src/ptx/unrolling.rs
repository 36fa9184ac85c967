//! Unrolls the innermost loops of LLVM's NVPTX target further.
//!
//! LLVM unrolls a loop with a known number of iterations up to 75 instructions there, libNVVM up to about 200. So after LLVM's own
//! unrolling, such a loop gets the hint to be unrolled up to libNVVM's size, by a factor that leaves no remainder.
//!
//! Where only the run shows the number, as of a loop from `thread_idx.x` up to a size in steps of 256, LLVM does not unroll if it takes many
//! instructions to compute. libNVVM unrolls four times, and such a loop gets that hint. But where a counter could wrap, no number is
//! known, and LLVM would keep an exit in each copy: ptxas unrolls better then. ptxas unrolls it worse: LLVM's back end makes
//! the counter start one step early, perhaps below zero, so ptxas runs the first round alone.
//!
//! Loops with a hint in the program stay as that hint says.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMValueKind;
use inkwell::llvm_sys::core::{
    LLVMGetMDNodeNumOperands, LLVMGetMDNodeOperands, LLVMGetNSW, LLVMGetNUW, LLVMGetValueKind,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    AsValueRef, BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue,
    MetadataValue, PhiValue,
};

use crate::codegen::{hint, loop_node};
use crate::error::{Error, Result};

/// Maximum number of instructions of an unrolled loop.
const MAX_INSTRUCTIONS: u64 = 220;

/// How far loops are unrolled whose number of iterations only the run shows.
const OPEN_FACTOR: u32 = 4;

/// The operand of `llvm.loop` that marks loops with a hint in the program. LLVM replaces the hint, but keeps other operands.
const HAS_HINT: &str = "gridlet.hint";

/// Marks the loops that have hints, before LLVM's own unrolling.
pub(super) fn mark_hints<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    let kind = context.get_kind_id("llvm.loop");
    // All back edges of a loop share a node.
    let mut marked: BTreeMap<usize, MetadataValue<'ctx>> = BTreeMap::new();
    for terminator in terminators(module) {
        let Some(node) = terminator.get_metadata(kind) else { continue };
        let marked = *marked.entry(node.as_value_ref() as usize).or_insert_with(|| {
            let mark = context.metadata_node(&[context.metadata_string(HAS_HINT).into()]);
            let operands = operands(node).into_iter().chain([mark]);
            loop_node(context, &operands.collect::<Vec<_>>())
        });
        set(terminator, marked, kind)?;
    }
    Ok(())
}

/// Asks for loops to be unrolled further. Whether there are any.
pub(super) fn unroll_more<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<bool> {
    let kind = context.get_kind_id("llvm.loop");
    let mut any = false;
    for function in module.get_functions() {
        for found in innermost_loops(function) {
            let Some(latch) = found.latch.get_terminator() else { continue };
            if latch.get_metadata(kind).is_some_and(|node| has(node, HAS_HINT)) {
                continue;
            }
            // LLVM marks the loops that it has unrolled, and their remainders.
            let is_left = latch.get_metadata(kind).is_some_and(|node| !operands(node).is_empty());
            let open = || found.open_factor().filter(|_| !is_left);
            let Some(factor) = found.factor().or_else(open) else { continue };
            let node = loop_node(context, &[hint(context, "count", Some(factor))]);
            set(latch, node, kind)?;
            any = true;
        }
    }
    Ok(any)
}

/// Removes what LLVM notes of loops that it has unrolled as asked, so that ptxas may unroll them, too.
pub(super) fn forget<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    let kind = context.get_kind_id("llvm.loop");
    for terminator in terminators(module) {
        if terminator.get_metadata(kind).is_some_and(|node| !has(node, HAS_HINT)) {
            set(terminator, loop_node(context, &[]), kind)?;
        }
    }
    Ok(())
}

fn terminators<'ctx>(module: &Module<'ctx>) -> impl Iterator<Item = InstructionValue<'ctx>> {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    blocks.filter_map(|block| block.get_terminator())
}

fn set<'ctx>(
    terminator: InstructionValue<'ctx>,
    node: MetadataValue<'ctx>,
    kind: u32,
) -> Result<()> {
    terminator
        .set_metadata(node, kind)
        .map_err(|error| Error::internal("ptx", format!("llvm.loop: {error}")))
}

/// The operands of a loop's node, but for the node itself and nodes without operands, in which LLVM would look for the first.
fn operands(node: MetadataValue<'_>) -> Vec<MetadataValue<'_>> {
    let is_hint = |part: &MetadataValue<'_>| {
        let is_empty = part.get_node_size() == Some(0);
        !is_empty && part.as_value_ref() != node.as_value_ref()
    };
    parts(node).into_iter().filter(is_hint).collect()
}

/// The operands of a node that are metadata. Other compilers' modules may have null among them.
fn parts(node: MetadataValue<'_>) -> Vec<MetadataValue<'_>> {
    if !node.is_node() {
        return vec![];
    }
    // SAFETY: the value is a node, and the buffer has room for all its operands. Those that are kept are metadata of the same
    // context.
    unsafe {
        let count = LLVMGetMDNodeNumOperands(node.as_value_ref()) as usize;
        let mut parts: Vec<LLVMValueRef> = vec![ptr::null_mut(); count];
        LLVMGetMDNodeOperands(node.as_value_ref(), parts.as_mut_ptr());
        let is_metadata = |part: &LLVMValueRef| {
            !part.is_null()
                && LLVMGetValueKind(*part) == LLVMValueKind::LLVMMetadataAsValueValueKind
        };
        parts.into_iter().filter(is_metadata).map(|part| MetadataValue::new(part)).collect()
    }
}

/// Whether a loop's node has an operand of this name.
fn has(node: MetadataValue<'_>, name: &str) -> bool {
    operands(node).into_iter().any(|operand| match parts(operand).as_slice() {
        [text] if text.is_string() => text.get_string_value() == Some(name.as_bytes()),
        _ => false,
    })
}

/// A loop without another one inside.
struct Innermost<'ctx> {
    head: BasicBlock<'ctx>,
    /// The only block that jumps back to the head.
    latch: BasicBlock<'ctx>,
    blocks: Vec<BasicBlock<'ctx>>,
}

impl<'ctx> Innermost<'ctx> {
    /// The largest factor that keeps the loop within the limit and divides the number of iterations.
    fn factor(&self) -> Option<u32> {
        // LLVM counts neither the branch back nor its condition more than once.
        let size = self.size().saturating_sub(2).max(1);
        let iterations = self.iterations()?;
        let mut factor = 1;
        while size * factor * 2 + 2 <= MAX_INSTRUCTIONS && iterations % (factor * 2) == 0 {
            factor *= 2;
        }
        (factor > 1).then_some(u32::try_from(factor).ok()?)
    }

    /// The factor for a loop with a constant step and one exit, whose number of iterations only the run shows.
    fn open_factor(&self) -> Option<u32> {
        let is_exit = |block: &&BasicBlock<'ctx>| {
            successors(**block).iter().any(|next| !self.blocks.contains(next))
        };
        let exits: Vec<_> = self.blocks.iter().filter(is_exit).collect();
        let is_open = exits == [&self.latch] && self.iterations().is_none();
        self.counter().filter(|counter| is_open && counter.is_bounded)?;
        let size = self.size() * u64::from(OPEN_FACTOR);
        (size <= MAX_INSTRUCTIONS).then_some(OPEN_FACTOR)
    }

    /// The size in machine code, roughly.
    fn size(&self) -> u64 {
        let instructions = self.blocks.iter().flat_map(|block| block.get_instructions());
        instructions.map(weight).sum()
    }

    /// The counter with a constant step that the latch compares.
    fn counter(&self) -> Option<Counter<'ctx>> {
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
        let next = instruction(next).filter(|next| next.get_opcode() == InstructionOpcode::Add)?;
        let step = constant(next.get_operand(1)?.value()?)?;
        let is_counter = counter.get_parent() == Some(self.head)
            && [counter, next].contains(&compared)
            && instruction(next.get_operand(0)?.value()?) == Some(counter);
        // SAFETY: `next` is an addition.
        let is_wrap_free =
            unsafe { LLVMGetNUW(next.as_value_ref()) + LLVMGetNSW(next.as_value_ref()) } != 0;
        let is_bounded = is_wrap_free || step.abs() == 1;
        let is_next = compared == next;
        is_counter.then_some(Counter { branch, condition, phi, step, is_next, is_bounded })
    }

    /// The number of iterations, if the latch compares a counter with a constant for equality, as LLVM writes a loop with a known
    /// number of iterations.
    fn iterations(&self) -> Option<u64> {
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
        let distance = u64::try_from(end.checked_sub(start?)?).ok()?;
        let step = u64::try_from(step).ok().filter(|step| *step > 0)?;
        distance.is_multiple_of(step).then_some(distance / step)
    }
}

/// A counter of a loop.
struct Counter<'ctx> {
    /// The branch back.
    branch: InstructionValue<'ctx>,
    condition: InstructionValue<'ctx>,
    phi: PhiValue<'ctx>,
    step: i64,
    /// Whether the condition is on the counter's next value.
    is_next: bool,
    /// Whether the counter cannot pass its end by wrapping around.
    is_bounded: bool,
}

/// The weight of an instruction: of libNVVM, which unrolls loops with divisions of 32 bits far, those of 64 bits less.
fn weight(instruction: InstructionValue<'_>) -> u64 {
    match instruction.get_opcode() {
        InstructionOpcode::Phi
        | InstructionOpcode::GetElementPtr
        | InstructionOpcode::BitCast
        | InstructionOpcode::AddrSpaceCast => 0,
        InstructionOpcode::SDiv
        | InstructionOpcode::SRem
        | InstructionOpcode::UDiv
        | InstructionOpcode::URem => match instruction.get_type() {
            AnyTypeEnum::IntType(ty) if ty.get_bit_width() > 32 => 60,
            _ => 4,
        },
        _ => 1,
    }
}

fn instruction(value: BasicValueEnum<'_>) -> Option<InstructionValue<'_>> {
    match value {
        BasicValueEnum::IntValue(value) => value.as_instruction_value(),
        _ => None,
    }
}

fn constant(value: BasicValueEnum<'_>) -> Option<i64> {
    match value {
        BasicValueEnum::IntValue(value) => value.get_sign_extended_constant(),
        _ => None,
    }
}

/// The targets of a block's terminator.
fn successors<'ctx>(block: BasicBlock<'ctx>) -> Vec<BasicBlock<'ctx>> {
    let Some(terminator) = block.get_terminator() else { return vec![] };
    terminator.get_operands().flatten().filter_map(|operand| operand.block()).collect()
}

/// The loops of a function that have one latch and contain no other loop.
fn innermost_loops<'ctx>(function: FunctionValue<'ctx>) -> Vec<Innermost<'ctx>> {
    let blocks: Vec<BasicBlock<'ctx>> = function.get_basic_block_iter().collect();
    let numbers: BTreeMap<usize, usize> =
        blocks.iter().enumerate().map(|(at, block)| (block.as_mut_ptr() as usize, at)).collect();
    let number = |block: &BasicBlock<'ctx>| numbers.get(&(block.as_mut_ptr() as usize)).copied();
    let next: Vec<Vec<usize>> =
        blocks.iter().map(|block| successors(*block).iter().filter_map(number).collect()).collect();
    let mut before = vec![vec![]; blocks.len()];
    for (from, targets) in next.iter().enumerate() {
        targets.iter().for_each(|to| before[*to].push(from));
    }
    // Jumps back, by the block that they lead to.
    let mut latches: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let (mut is_open, mut is_seen) = (vec![false; blocks.len()], vec![false; blocks.len()]);
    let mut path = if blocks.is_empty() { vec![] } else { vec![(0, 0)] };
    while let Some((block, at)) = path.last_mut() {
        if *at == 0 {
            (is_open[*block], is_seen[*block]) = (true, true);
        }
        match next[*block].get(*at) {
            None => {
                is_open[*block] = false;
                path.pop();
            }
            Some(&to) => {
                *at += 1;
                if is_open[to] {
                    latches.entry(to).or_default().insert(*block);
                } else if !is_seen[to] {
                    path.push((to, 0));
                }
            }
        }
    }
    let heads: BTreeSet<usize> = latches.keys().copied().collect();
    let of = |(&head, latches): (&usize, &BTreeSet<usize>)| {
        let latch = *latches.first().filter(|_| latches.len() == 1)?;
        let (mut inside, mut open) = (BTreeSet::from([head]), vec![latch]);
        while let Some(block) = open.pop() {
            // A loop inside, or one that is entered elsewhere.
            if block != head && (heads.contains(&block) || block == 0) {
                return None;
            }
            if inside.insert(block) {
                open.extend(&before[block]);
            }
        }
        let inside = inside.into_iter().map(|block| blocks[block]).collect();
        Some(Innermost { head: blocks[head], latch: blocks[latch], blocks: inside })
    };
    latches.iter().filter_map(of).collect()
}
