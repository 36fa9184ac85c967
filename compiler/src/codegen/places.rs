//! The order of the instructions of a block on GPUs.
//!
//! An assignment computes its place before its value, but nothing can tell if the place is only an address. libNVVM
//! keeps the order of the two, and ptxas schedules loads around it: with the address of the place between the loads, a stencil took
//! 16 % longer (H200, CUDA 13.0). So an address that one store uses is computed just before that store, as in CUDA C++.

use std::collections::BTreeSet;

use gridlet_lang::ir::{Block, Function, InstId, InstKind, Operand, Terminator};

/// How often the value of each instruction is used, indexed by `InstId`.
pub(super) fn uses(function: &Function) -> Vec<u32> {
    let mut uses = vec![0; function.instructions.len()];
    let mut count = |operand: &Operand| {
        if let Operand::Inst(id) = operand {
            uses[id.index()] += 1;
        }
    };
    for inst in &function.instructions {
        inst.kind.for_each_operand(&mut count);
    }
    for block in &function.blocks {
        match &block.terminator {
            Terminator::Branch { condition, .. } => count(condition),
            Terminator::Return(Some(value)) => count(value),
            _ => {}
        }
    }
    uses
}

/// The instructions of a block, each address that only a store of the block uses just before the store.
pub(super) fn order(function: &Function, block: &Block, uses: &[u32]) -> Vec<InstId> {
    let here: BTreeSet<usize> = block.instructions.iter().map(|id| id.index()).collect();
    let here = &here;
    let kind = |id: InstId| &function.instructions[id.index()].kind;
    // The address of a store, and the addresses from which only it is computed, the last one first.
    let places = |store: InstId| {
        let mut operand = match kind(store) {
            InstKind::Store { pointer, .. } => Some(pointer),
            _ => None,
        };
        std::iter::from_fn(move || {
            let Operand::Inst(id) = operand? else { return None };
            let (InstKind::ElementAddress { base, .. }
            | InstKind::FieldAddress { base, .. }
            | InstKind::ByteOffset { base, .. }) = kind(*id)
            else {
                return None;
            };
            operand = Some(base);
            (uses[id.index()] == 1 && here.contains(&id.index())).then_some(*id)
        })
    };
    let stores =
        block.instructions.iter().filter(|id| matches!(kind(**id), InstKind::Store { .. }));
    let late: BTreeSet<usize> = stores.flat_map(|id| places(*id)).map(InstId::index).collect();
    let mut ordered = Vec::with_capacity(block.instructions.len());
    for &id in &block.instructions {
        if late.contains(&id.index()) {
            continue;
        }
        let first = ordered.len();
        ordered.extend(places(id));
        ordered[first..].reverse();
        ordered.push(id);
    }
    ordered
}
