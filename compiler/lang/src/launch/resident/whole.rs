//! Copies of kernels for warps whose lanes all have a thread.
//!
//! The scheduler says which lanes of a mask run a warp operation (`warps.rs`), because a warp of the resident kernel may have lanes
//! without a thread of the block. That takes a load, and for a mask that is not a constant ptxas adds code that takes longer than the
//! operation itself. But in most warps all lanes have a thread, and in most kernels no thread returns before others come to a warp
//! operation. Such warps run a copy of the kernel whose warp operations stay as they are.

use super::bodies::{copy_functions, redirect_calls};
use super::plan::{Blocks, Plan, takes_mask};
use crate::ir::graph::CallGraph;
use crate::ir::{Function, FunctionId, Module};

/// Copies the bodies of the plan's kernels that have warp operations, and the functions with such operations that they may call.
/// `own` are the functions that only the plan's kernels call; their warp operations have not been rewritten yet.
pub(super) fn copy(module: &mut Module, plan: &Plan, own: &[FunctionId]) {
    let calls = CallGraph::of(module);
    let mut is_own = vec![false; module.functions.len()];
    own.iter().for_each(|id| is_own[id.index()] = true);
    let has = |function: &Function| function.instructions.iter().any(|inst| takes_mask(&inst.kind));
    // The functions of the scheduler, which these call by now, keep theirs.
    let with_masks = calls.may_reach(|id| is_own[id.index()] && has(module.function(id)));
    let mut starts = vec![false; module.functions.len()];
    let kernels = module.kernels.iter().zip(&plan.nests).zip(&plan.early_in_warps);
    for ((kernel, _), _) in kernels.filter(|((_, nests), early)| **nests && **early != Blocks::All)
    {
        starts[kernel.body.index()] = true;
    }
    let reached = calls.reached_from(&starts);
    let copied = own.iter().copied().filter(|id| with_masks[id.index()] && reached[id.index()]);
    let copies = copy_functions(module, copied, ".whole");
    let all: Vec<FunctionId> = copies.values().copied().collect();
    redirect_calls(module, &all, &copies);
    for kernel in &mut module.kernels {
        kernel.whole = copies.get(&kernel.body).copied();
    }
}
