//! The loads that may find different values in different threads, although all of them load from one address.
//!
//! Without a data race, that takes a store by a third thread that happens after the load of one thread and before that of
//! another. A barrier of all threads cannot put it there, as all threads load between the same two barriers. So the second
//! thread must have synchronised with some threads only: by an acquire load, a fence, `sync_warp` or an external function,
//! since the last barrier.

use crate::builtins::{Builtin, Order, WaitsFor};
use crate::ir::graph::CallGraph;
use crate::ir::{FunctionId, InstKind, Module};

/// By function and instruction, whether it is a load that such an operation may precede without a barrier between.
pub(super) fn unordered(module: &Module) -> Vec<Vec<bool>> {
    let synchronises = CallGraph::of(module).may_reach(|id| {
        module.function(id).instructions.iter().any(|inst| orders_some_threads(&inst.kind))
    });
    let mut found: Vec<Vec<bool>> =
        module.functions.iter().map(|function| vec![false; function.instructions.len()]).collect();
    // Kernels begin ordered; other functions begin as they are called.
    let mut begins = vec![false; module.functions.len()];
    let mut open: Vec<usize> = (0..module.functions.len()).collect();
    while let Some(at) = open.pop() {
        let calls = walk(module, FunctionId(at as u32), begins[at], &synchronises, &mut found[at]);
        for callee in calls {
            if !std::mem::replace(&mut begins[callee.index()], true) {
                open.push(callee.index());
            }
        }
    }
    found
}

fn orders_some_threads(kind: &InstKind) -> bool {
    match kind {
        InstKind::CallExtern { .. } => true,
        InstKind::Builtin { builtin, .. } => matches!(
            builtin,
            Builtin::Fence(_) | Builtin::SyncWarp | Builtin::AtomicLoad(Order::Acquire, _)
        ),
        _ => false,
    }
}

/// Marks the loads of a function. Gives the functions that it calls after such an operation.
fn walk(
    module: &Module,
    id: FunctionId,
    begins: bool,
    synchronises: &[bool],
    found: &mut [bool],
) -> Vec<FunctionId> {
    let function = module.function(id);
    let mut calls = Vec::new();
    let mut begun = vec![false; function.blocks.len()];
    if let Some(first) = begun.first_mut() {
        *first = begins;
    }
    let mut open: Vec<usize> = (0..function.blocks.len()).collect();
    while let Some(at) = open.pop() {
        let mut unordered = begun[at];
        for &inst in &function.blocks[at].instructions {
            let kind = &function.instructions[inst.index()].kind;
            match kind {
                InstKind::Load(_) => found[inst.index()] |= unordered,
                InstKind::Call { function: callee, .. } => {
                    if unordered {
                        calls.push(*callee);
                    }
                    unordered |= synchronises[callee.index()];
                }
                InstKind::Builtin { builtin, .. }
                    if builtin.properties().waits == WaitsFor::Block =>
                {
                    unordered = false;
                }
                kind => unordered |= orders_some_threads(kind),
            }
        }
        if unordered {
            for to in function.blocks[at].terminator.successors() {
                if !std::mem::replace(&mut begun[to.index()], true) {
                    open.push(to.index());
                }
            }
        }
    }
    calls
}
