//! Unrolls the innermost loops of LLVM's NVPTX target further.
//!
//! LLVM unrolls a loop with a known number of iterations up to 75 instructions there, libNVVM up to about 200. So after LLVM's own
//! unrolling, such a loop gets the hint to be unrolled up to libNVVM's size, by a factor that leaves no remainder.
//!
//! Where only the run shows the number, as of a loop from `thread_idx.x` up to a size in steps of 256, LLVM itself does not unroll here
//! (`nvptx.rs` sets its options): it would by 2 or by 8, and ptxas again. libNVVM unrolls four times, or twice, and such a loop gets that hint. But
//! where a counter could wrap, no number is known, and LLVM would keep an exit in each copy: ptxas unrolls better then. It unrolls the others
//! worse: LLVM's back end makes the counter start one step early, perhaps below zero, so ptxas runs the first round alone.
//!
//! Loops with a hint in the program stay as that hint says.

use std::collections::BTreeMap;
use std::ptr;

use inkwell::basic_block::BasicBlock;
use inkwell::context::{Context, ContextRef};
use inkwell::llvm_sys::LLVMValueKind;
use inkwell::llvm_sys::core::{LLVMGetMDNodeNumOperands, LLVMGetMDNodeOperands, LLVMGetValueKind};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, InstructionValue, MetadataValue};

use super::loops::{self, Loop, successors, weight};
use crate::codegen::{hint, loop_node};
use crate::error::{Error, Result};

/// Maximum number of instructions of an unrolled loop.
const MAX_INSTRUCTIONS: u64 = 220;

/// Maximum number of instructions of a loop that is unrolled fully, as of libNVVM 13.0.
const MAX_FULL: u64 = 400;

/// The same for short bodies: of long ones, the copies share less, and need more registers.
const MAX_FULL_OF_SHORT: u64 = 800;

/// The same for few rounds of which conditions on the counter make different code: the four quadrants of an image filter took 1.13 of nvcc's time as
/// a loop that only ptxas unrolled, now 1.03. For other loops that is too many: an interpolation took 1.11 with 600.
const MAX_FULL_OF_FEW: u64 = 640;
const FEW_ROUNDS: u64 = 4;

/// The most instructions of a short body.
const SHORT_BODY: u64 = 70;

/// How far loops are unrolled whose number of iterations only the run shows: as far as their size allows.
const OPEN_FACTORS: [u32; 2] = [4, 2];

/// Maximum number of iterations of a short rest.
const SHORT_REST: i64 = 8;

/// The operand of `llvm.loop` that marks loops with a hint in the program. LLVM replaces the hint, but keeps other operands.
const HAS_HINT: &str = "gridlet.hint";

/// The operand of `llvm.loop` that marks loops over a short rest.
const IS_SHORT: &str = "gridlet.short";

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

/// Keeps LLVM from unrolling loops over a short rest, until [`release_short`]: those that end by some number or a small constant,
/// whichever is smaller. Each copy would have an exit, before which the loads of the next could not start, as they can in ptxas's.
pub(super) fn hold_short<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    let kind = context.get_kind_id("llvm.loop");
    let mark = context.metadata_node(&[context.metadata_string(IS_SHORT).into()]);
    for found in module.get_functions().flat_map(loops::find) {
        let Some(latch) = found.latch.get_terminator() else { continue };
        let has_node = latch.get_metadata(kind).is_some_and(|node| !operands(node).is_empty());
        if found.is_innermost && !has_node && found.ends_by(SHORT_REST) {
            set(latch, loop_node(context, &[hint(context, "disable", None), mark]), kind)?;
        }
    }
    Ok(())
}

/// Takes back what [`hold_short`] has noted.
pub(super) fn release_short<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    let kind = context.get_kind_id("llvm.loop");
    for terminator in terminators(module) {
        if terminator.get_metadata(kind).is_some_and(|node| has(node, IS_SHORT)) {
            set(terminator, loop_node(context, &[]), kind)?;
        }
    }
    Ok(())
}

/// Asks for loops to be unrolled further.
pub(super) fn unroll_more<'ctx>(
    module: &Module<'ctx>,
    context: &'ctx Context,
) -> Result<Vec<Loop<'ctx>>> {
    let kind = context.get_kind_id("llvm.loop");
    let mut asked = vec![];
    for function in module.get_functions() {
        for found in loops::find(function).into_iter().filter(|found| found.is_innermost) {
            let Some(latch) = found.latch.get_terminator() else { continue };
            if latch.get_metadata(kind).is_some_and(|node| has(node, HAS_HINT)) {
                continue;
            }
            // LLVM marks the loops that it has unrolled, and their remainders.
            let is_left = latch.get_metadata(kind).is_some_and(|node| !operands(node).is_empty());
            let open = || open_factor(&found).filter(|_| !is_left);
            let hint = match factor(&found).or_else(open) {
                _ if is_short(&found) => hint(context, "full", None),
                Some(factor) => hint(context, "count", Some(factor)),
                None => continue,
            };
            set(latch, loop_node(context, &[hint]), kind)?;
            asked.push(found);
        }
    }
    Ok(asked)
}

/// Asks for a loop to be unrolled fully, unless the program has a hint. Whether it was asked.
pub(super) fn ask_full<'ctx>(of: &Loop<'ctx>, context: ContextRef<'ctx>) -> Result<bool> {
    let kind = context.get_kind_id("llvm.loop");
    let Some(latch) = of.latch.get_terminator().filter(|_| !has_hint(of, kind)) else {
        return Ok(false);
    };
    let full = context.metadata_string("llvm.loop.unroll.full").into();
    set(latch, loop_node(context, &[context.metadata_node(&[full])]), kind)?;
    Ok(true)
}

/// The operand of `llvm.loop` that marks loops that LLVM may unroll as often as they run at most.
const IS_BOUNDED: &str = "gridlet.bounded";

/// Asks for a loop to be unrolled as often as it runs at most, if LLVM finds out how often that is, unless the program has a hint or it was
/// asked for more. Whether it was asked.
pub(super) fn ask_bounded<'ctx>(of: &Loop<'ctx>, context: ContextRef<'ctx>) -> Result<bool> {
    let kind = context.get_kind_id("llvm.loop");
    let Some(latch) = of.latch.get_terminator().filter(|_| node_of(of, kind).is_none()) else {
        return Ok(false);
    };
    let name = |text: &str| context.metadata_node(&[context.metadata_string(text).into()]);
    let words = [name("llvm.loop.unroll.enable"), name(IS_BOUNDED)];
    set(latch, loop_node(context, &words), kind)?;
    Ok(true)
}

/// Takes back what was asked of loops that LLVM has not unrolled, for example because it found no bound. How many there are.
pub(super) fn forget_bounded<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<usize> {
    let kind = context.get_kind_id("llvm.loop");
    let mut left = 0;
    for terminator in terminators(module) {
        if terminator.get_metadata(kind).is_some_and(|node| has(node, IS_BOUNDED)) {
            set(terminator, loop_node(context, &[]), kind)?;
            left += 1;
        }
    }
    Ok(left)
}

/// Whether the program says how a loop is to be unrolled.
pub(super) fn has_hint(of: &Loop<'_>, kind: u32) -> bool {
    node_of(of, kind).is_some_and(|node| has(node, HAS_HINT))
}

/// The node that has what is said of a loop. `kind`: of the metadata `llvm.loop`.
pub(super) fn node_of<'ctx>(of: &Loop<'ctx>, kind: u32) -> Option<MetadataValue<'ctx>> {
    of.latch.get_terminator()?.get_metadata(kind)
}

/// The names of a loop's node: its operands that consist of one string.
pub(super) fn names(node: MetadataValue<'_>) -> Vec<String> {
    let name = |operand| match parts(operand).as_slice() {
        [text] if text.is_string() => {
            Some(String::from_utf8_lossy(text.get_string_value()?).into_owned())
        }
        _ => None,
    };
    operands(node).into_iter().filter_map(name).collect()
}

/// Removes what LLVM notes of loops that it has unrolled as asked, so that ptxas may unroll them, too. The loops for the rounds that are left
/// over keep it: they run at most three times, and ptxas unrolls loops by four.
pub(super) fn forget<'ctx>(module: &Module<'ctx>, context: &'ctx Context) -> Result<()> {
    let kind = context.get_kind_id("llvm.loop");
    for terminator in terminators(module) {
        let is_left = terminator.get_parent().is_some_and(is_left_over);
        if !is_left && terminator.get_metadata(kind).is_some_and(|node| !has(node, HAS_HINT)) {
            set(terminator, loop_node(context, &[]), kind)?;
        }
    }
    Ok(())
}

/// Whether a block is of a loop for the rounds that are left over: LLVM ends the names of its blocks so.
fn is_left_over(block: BasicBlock<'_>) -> bool {
    let name = block.get_name().to_string_lossy();
    name.split('.').any(|part| part.starts_with("epil") || part.starts_with("prol"))
}

fn terminators<'ctx>(module: &Module<'ctx>) -> impl Iterator<Item = InstructionValue<'ctx>> {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    blocks.filter_map(|block| block.get_terminator())
}

/// Gives a jump back a loop's node.
pub(super) fn set<'ctx>(
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
    names(node).iter().any(|one| one == name)
}

/// The largest factor that keeps the loop within the limit and divides the number of iterations.
fn factor(of: &Loop<'_>) -> Option<u32> {
    // LLVM counts neither the branch back nor its condition more than once.
    let size = size(of).saturating_sub(2).max(1);
    let iterations = of.iterations()?;
    let mut factor = 1;
    while size * factor * 2 + 2 <= MAX_INSTRUCTIONS && iterations % (factor * 2) == 0 {
        factor *= 2;
    }
    (factor > 1).then_some(u32::try_from(factor).ok()?)
}

/// Whether a loop with a known number of iterations is short enough to be unrolled fully.
fn is_short(of: &Loop<'_>) -> bool {
    let size = size(of).saturating_sub(2).max(1);
    of.iterations().is_some_and(|iterations| {
        let limit = match iterations {
            _ if size <= SHORT_BODY => MAX_FULL_OF_SHORT,
            ..=FEW_ROUNDS if of.differs_by_round() => MAX_FULL_OF_FEW,
            _ => MAX_FULL,
        };
        size.saturating_mul(iterations) <= limit
    })
}

/// The factor for a loop with a constant step and one exit, whose number of iterations only the run shows.
fn open_factor(of: &Loop<'_>) -> Option<u32> {
    let is_exit =
        |block: &&BasicBlock<'_>| successors(**block).iter().any(|next| !of.blocks.contains(next));
    let exits: Vec<_> = of.blocks.iter().filter(is_exit).collect();
    let is_open = exits == [&of.latch] && of.iterations().is_none();
    of.counter().filter(|counter| is_open && counter.is_bounded && !of.ends_by(SHORT_REST))?;
    let size = size(of);
    OPEN_FACTORS.into_iter().find(|factor| size * u64::from(*factor) <= MAX_INSTRUCTIONS)
}

/// The size in machine code, roughly.
pub(super) fn size(of: &Loop<'_>) -> u64 {
    of.blocks.iter().flat_map(|block| block.get_instructions()).map(weight).sum()
}
