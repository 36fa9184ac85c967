//! Copies of kernels for warps whose lanes all have a thread.
//!
//! The scheduler says which lanes of a mask run a warp operation (`warps.rs`), because a warp of the resident kernel may have lanes
//! without a thread of the block. That takes a load, and for a mask that is not a constant ptxas adds code that takes longer than the
//! operation itself. But in most warps all lanes have a thread, and in most kernels no thread returns before others come to a warp
//! operation. Such warps run a copy of the kernel whose warp operations stay as they are.
//!
//! Likewise a barrier of a block that may have any size, and from which threads may be missing, takes more than that of a block that is
//! as large as a worker, which is one instruction. Kernels with barriers that are launched with such blocks have a copy for them that
//! keeps its barriers, too.

use super::bodies::{copy_functions, redirect_calls};
use super::plan::{Blocks, Plan, takes_mask};
use crate::builtins::Builtin;
use crate::ir::graph::CallGraph;
use crate::ir::{Function, FunctionId, InstKind, Module};

/// Copies the bodies of the kernels that [fill a worker](Plan::fills_worker), and the functions with barriers or warp operations that they
/// may call. `own` are the functions that only the plan's kernels call, and nothing in them has been rewritten. Gives the copies.
pub(super) fn copy_for_workers(
    module: &mut Module,
    plan: &Plan,
    own: &[FunctionId],
) -> Vec<FunctionId> {
    copy(module, own, &plan.fills_worker, |kind| takes_mask(kind) || is_barrier(kind), ".worker")
}

/// The same for warps: copies the bodies of other kernels that have warp operations, which have not been rewritten yet.
pub(super) fn copy_for_warps(module: &mut Module, plan: &Plan, own: &[FunctionId]) {
    let kernels = plan.nests.iter().zip(&plan.early_in_warps).zip(&plan.fills_worker);
    let chosen: Vec<bool> = kernels
        .map(|((nests, early), fills_worker)| *nests && *early != Blocks::All && !fills_worker)
        .collect();
    copy(module, own, &chosen, takes_mask, ".whole");
}

/// Whether an instruction is a barrier of a block.
fn is_barrier(kind: &InstKind) -> bool {
    let is = |builtin| matches!(builtin, Builtin::SyncThreads | Builtin::SyncThreadsReduce(_));
    matches!(kind, InstKind::Builtin { builtin, .. } if is(*builtin))
}

/// Copies the bodies of the `chosen` kernels that may come to an instruction that `keeps` means, with the functions on the way.
fn copy(
    module: &mut Module,
    own: &[FunctionId],
    chosen: &[bool],
    keeps: impl Fn(&InstKind) -> bool,
    suffix: &str,
) -> Vec<FunctionId> {
    let calls = CallGraph::of(module);
    let mut is_own = vec![false; module.functions.len()];
    own.iter().for_each(|id| is_own[id.index()] = true);
    let has = |function: &Function| function.instructions.iter().any(|inst| keeps(&inst.kind));
    // The functions of the scheduler, which these call by now, keep theirs.
    let keeping = calls.may_reach(|id| is_own[id.index()] && has(module.function(id)));
    let mut starts = vec![false; module.functions.len()];
    for (kernel, _) in module.kernels.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
        starts[kernel.body.index()] = true;
    }
    let reached = calls.reached_from(&starts);
    let copied = own.iter().copied().filter(|id| keeping[id.index()] && reached[id.index()]);
    let copies = copy_functions(module, copied, suffix);
    let all: Vec<FunctionId> = copies.values().copied().collect();
    redirect_calls(module, &all, &copies);
    for (kernel, _) in module.kernels.iter_mut().zip(chosen).filter(|(_, chosen)| **chosen) {
        kernel.whole = copies.get(&kernel.body).copied();
    }
    all
}
