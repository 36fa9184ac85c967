//! Kernels in which one thread of a block of one row launches: one that `thread_idx.x` chooses.

use std::collections::BTreeSet;

use crate::ir::guards::stored_once;
use crate::ir::{
    BinaryOp, BlockId, Const, Function, InstId, InstKind, Operand, Terminator, guards, reach,
};

/// Whether one thread at most executes these instructions of a kernel's body, if the block has one row: each lies behind a comparison of
/// `thread_idx.x` with the same constant.
pub(super) fn executes(body: &Function, is_one: impl Fn(InstId) -> bool) -> bool {
    let has_one = body.blocks.iter().map(|block| block.instructions.iter().any(|&id| is_one(id)));
    let has_one: Vec<bool> = has_one.collect();
    let guards: Vec<(i128, BlockId)> = guards(body);
    let threads: BTreeSet<i128> = guards.iter().map(|(thread, _)| *thread).collect();
    threads.into_iter().any(|thread| {
        let of_thread = guards.iter().filter(|guard| guard.0 == thread);
        let closed: BTreeSet<usize> = of_thread.map(|(_, block)| block.index()).collect();
        let edges = body.blocks.iter().enumerate().flat_map(|(from, block)| {
            block.terminator.successors().map(move |to| (to.index(), from))
        });
        let edges = edges.filter(|(to, _)| !closed.contains(to));
        let others = reach::leading_to(body.blocks.len(), edges, std::iter::once(0));
        !has_one.iter().zip(others).any(|(has, is_open)| *has && is_open)
    })
}

/// The blocks that only the thread with a certain `thread_idx.x` enters from others.
fn guards(body: &Function) -> Vec<(i128, BlockId)> {
    let stored = stored_once(body);
    let mut entered = vec![0_u32; body.blocks.len()];
    for block in &body.blocks {
        block.terminator.successors().for_each(|to| entered[to.index()] += 1);
    }
    let guard = |terminator: &Terminator| {
        let Terminator::Branch { condition, then, otherwise } = terminator else { return None };
        let InstKind::Binary(op, left, right) = value(body, &stored, condition)? else {
            return None;
        };
        let chosen = match op {
            BinaryOp::Eq => *then,
            BinaryOp::Ne => *otherwise,
            _ => return None,
        };
        let thread = match (left, right) {
            (index, Operand::Const(Const::Int(_, thread)))
            | (Operand::Const(Const::Int(_, thread)), index)
                if is_thread_index(body, &stored, index) =>
            {
                *thread
            }
            _ => return None,
        };
        // The first block is entered from outside.
        let is_own = entered[chosen.index()] == 1 && chosen.index() != 0;
        is_own.then_some((thread, chosen))
    };
    body.blocks.iter().filter_map(|block| guard(&block.terminator)).collect()
}

/// The instruction that computes an operand, through a variable that is written once.
fn value<'f>(
    body: &'f Function,
    stored: &'f [Option<Operand>],
    operand: &Operand,
) -> Option<&'f InstKind> {
    let Operand::Inst(id) = operand else { return None };
    let kind = &body.instructions[id.index()].kind;
    match kind {
        InstKind::Load(Operand::Slot(slot)) => match stored.get(slot.index())?.as_ref()? {
            Operand::Inst(id) => Some(&body.instructions[id.index()].kind),
            _ => None,
        },
        kind => Some(kind),
    }
}

/// Whether an operand is `thread_idx.x` of the body's geometry.
fn is_thread_index(body: &Function, stored: &[Option<Operand>], operand: &Operand) -> bool {
    let Some(InstKind::Extract { base, index: guards::X }) = value(body, stored, operand) else {
        return false;
    };
    let read = value(body, stored, base).and_then(|kind| guards::geometry_field(body, kind));
    read == Some(guards::THREAD_IDX)
}
