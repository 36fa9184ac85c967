//! Copies of kernels for warps whose lanes all have a thread.
//!
//! The scheduler says which lanes of a mask run a warp operation (`warps.rs`), because a warp of the resident kernel may have lanes
//! without a thread of the block. That takes a load, and for a mask that is not a constant ptxas adds code that takes longer than the
//! operation itself. But in most warps all lanes have a thread, and in most kernels no thread returns before others come to a warp
//! operation. Such warps run a copy of the kernel whose warp operations stay as they are.

use std::collections::BTreeMap;

use super::plan::{Blocks, Plan, takes_mask};
use crate::ir::graph::CallGraph;
use crate::ir::{Function, FunctionId, InstKind, Module};

/// By function, whether it is one of `own` that has warp operations, or may call such a function.
pub(super) fn with_masks(module: &Module, own: &[FunctionId]) -> Vec<bool> {
    let has = |function: &Function| function.instructions.iter().any(|inst| takes_mask(&inst.kind));
    let may = CallGraph::of(module).may_reach(|id| has(module.function(id)));
    let mut with = vec![false; module.functions.len()];
    own.iter().for_each(|id| with[id.index()] = may[id.index()]);
    with
}

/// Copies the bodies of the plan's kernels, and those functions `with_masks` that they may call. Warp operations have not been
/// rewritten yet.
pub(super) fn copy(module: &mut Module, plan: &Plan, with_masks: &[bool]) {
    let kernels = module.kernels.iter().zip(&plan.nests).zip(&plan.early_in_warps);
    let mut open: Vec<FunctionId> = kernels
        .filter(|((_, nests), early)| **nests && **early != Blocks::All)
        .map(|((kernel, _), _)| kernel.body)
        .filter(|body| with_masks[body.index()])
        .collect();
    let mut copies = BTreeMap::new();
    while let Some(id) = open.pop() {
        if copies.contains_key(&id) {
            continue;
        }
        let mut copy = module.function(id).clone();
        copy.name.push_str(".whole");
        open.extend(calls(&copy).filter(|called| with_masks[called.index()]));
        copies.insert(id, FunctionId(module.functions.len() as u32));
        module.functions.push(copy);
    }
    for copy in copies.values() {
        for inst in &mut module.functions[copy.index()].instructions {
            if let InstKind::Call { function, .. } = &mut inst.kind
                && let Some(copy) = copies.get(function)
            {
                *function = *copy;
            }
        }
    }
    for kernel in &mut module.kernels {
        kernel.whole = copies.get(&kernel.body).copied();
    }
}

fn calls(function: &Function) -> impl Iterator<Item = FunctionId> {
    function.instructions.iter().filter_map(|inst| match &inst.kind {
        InstKind::Call { function, .. } => Some(*function),
        _ => None,
    })
}
