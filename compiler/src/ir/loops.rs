//! Loops, and which of them may wait for another thread.

use super::{BlockId, Function, InstId, InstKind, Operand, Terminator};
use crate::builtins::Builtin;

/// A natural loop: what reaches one of its jumps back without leaving by its head.
struct Loop {
    head: BlockId,
    /// By block, whether it belongs to the loop.
    blocks: Vec<bool>,
}

/// The blocks of a function, each after all that dominate it.
pub(crate) fn reverse_post_order(function: &Function) -> Vec<BlockId> {
    let mut seen = vec![false; function.blocks.len()];
    let mut order = Vec::new();
    let mut stack = Vec::new();
    if let Some(first) = seen.first_mut() {
        *first = true;
        stack.push((BlockId(0), 0));
    }
    while let Some((id, next)) = stack.pop() {
        match function.blocks[id.index()].terminator.successors().nth(next) {
            Some(successor) => {
                stack.push((id, next + 1));
                if !std::mem::replace(&mut seen[successor.index()], true) {
                    stack.push((successor, 0));
                }
            }
            None => order.push(id),
        }
    }
    order.reverse();
    order
}

/// By block, whether some block jumps back to it.
pub(crate) fn loop_heads(function: &Function) -> Vec<bool> {
    let mut heads = vec![false; function.blocks.len()];
    for (_, head) in jumps_back(function) {
        heads[head.index()] = true;
    }
    heads
}

/// By block, whether it is the head of a loop that may wait until another thread writes: one whose end an
/// atomic operation in it decides, or one with a fence, without which a thread could not see the write.
///
/// A thread that waits so must let the others run. Loops of other kinds cannot wait: the compiler may read a
/// plain variable once and for all.
pub(crate) fn waiting_heads(function: &Function) -> Vec<bool> {
    let mut waiting = vec![false; function.blocks.len()];
    let is_waiting = |inner: &Loop| inner.has_fence(function) || inner.ends_by_atomic(function);
    for found in loops(function).iter().filter(|found| is_waiting(found)) {
        waiting[found.head.index()] = true;
    }
    waiting
}

/// The edges to a block that comes no later in the order.
fn jumps_back(function: &Function) -> Vec<(BlockId, BlockId)> {
    let mut was_seen = vec![false; function.blocks.len()];
    let mut jumps = Vec::new();
    for id in reverse_post_order(function) {
        was_seen[id.index()] = true;
        let successors = function.blocks[id.index()].terminator.successors();
        jumps.extend(successors.filter(|to| was_seen[to.index()]).map(|to| (id, to)));
    }
    jumps
}

fn loops(function: &Function) -> Vec<Loop> {
    let mut predecessors = vec![Vec::new(); function.blocks.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for successor in block.terminator.successors() {
            predecessors[successor.index()].push(BlockId(at as u32));
        }
    }
    let mut loops: Vec<Loop> = Vec::new();
    for (from, head) in jumps_back(function) {
        let mut blocks = vec![false; function.blocks.len()];
        blocks[head.index()] = true;
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut blocks[id.index()], true) {
                open.extend(&predecessors[id.index()]);
            }
        }
        match loops.iter_mut().find(|known| known.head == head) {
            Some(known) => known.blocks.iter_mut().zip(blocks).for_each(|(all, one)| *all |= one),
            None => loops.push(Loop { head, blocks }),
        }
    }
    loops
}

impl Loop {
    fn instructions<'f>(
        &self,
        function: &'f Function,
    ) -> impl Iterator<Item = InstId> + use<'_, 'f> {
        let inside = function.blocks.iter().zip(&self.blocks).filter(|(_, inside)| **inside);
        inside.flat_map(|(block, _)| block.instructions.iter().copied())
    }

    fn has_fence(&self, function: &Function) -> bool {
        self.instructions(function).any(|id| {
            let kind = &function.instructions[id.index()].kind;
            matches!(kind, InstKind::Builtin { builtin: Builtin::Fence(_), .. })
        })
    }

    /// Whether the value of an atomic operation in the loop takes part in a condition that leaves it.
    fn ends_by_atomic(&self, function: &Function) -> bool {
        let mut is_inside = vec![false; function.instructions.len()];
        for id in self.instructions(function) {
            is_inside[id.index()] = true;
        }
        let leaves = |target: &BlockId| !self.blocks[target.index()];
        let mut open: Vec<Operand> = Vec::new();
        for (block, _) in function.blocks.iter().zip(&self.blocks).filter(|(_, inside)| **inside) {
            match &block.terminator {
                Terminator::Branch { condition, then, otherwise }
                    if leaves(then) || leaves(otherwise) =>
                {
                    open.push(condition.clone());
                }
                _ => {}
            }
        }
        let mut slots = Vec::new();
        while let Some(operand) = open.pop() {
            let Operand::Inst(id) = operand else { continue };
            if !std::mem::replace(&mut is_inside[id.index()], false) {
                continue;
            }
            match &function.instructions[id.index()].kind {
                InstKind::Builtin {
                    builtin: Builtin::Atomic(..) | Builtin::AtomicCas(_) | Builtin::AtomicLoad(_),
                    ..
                } => return true,
                InstKind::Load(Operand::Slot(slot)) if !slots.contains(slot) => {
                    slots.push(*slot);
                    for id in self.instructions(function) {
                        match &function.instructions[id.index()].kind {
                            InstKind::Store { pointer: Operand::Slot(to), value } if to == slot => {
                                open.push(value.clone());
                            }
                            _ => {}
                        }
                    }
                }
                kind => kind.for_each_operand(|operand| open.push(operand.clone())),
            }
        }
        false
    }
}
