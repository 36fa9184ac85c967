//! Loops, and which of them may wait for another thread.

use super::{BlockId, Function, FunctionId, InstId, InstKind, Operand, SlotId, Terminator};
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

/// What is known of how a loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    /// As [`waiting_heads`] says.
    pub(crate) waits: bool,
    /// It ends after turns that its thread counts, whatever is in memory.
    pub(crate) ends: bool,
    /// A loop around it may not end so.
    pub(crate) is_within: bool,
    /// A loop in it, or in what it calls, may not end so.
    pub(crate) is_around: bool,
}

/// By block, how the loop ends whose head it is. `never_ends`: whether a function may turn for ever in a loop of
/// its own or of what it calls.
pub(crate) fn turns(
    function: &Function,
    never_ends: &dyn Fn(FunctionId) -> bool,
) -> Vec<Option<Turns>> {
    let mut turns = vec![None; function.blocks.len()];
    let all = loops(function);
    let ends: Vec<bool> = all.iter().map(|this| this.ends_by_counting(function)).collect();
    for (this, &own_ends) in all.iter().zip(&ends) {
        let others = || all.iter().zip(&ends).filter(|(other, _)| other.head != this.head);
        let mut endless = others().filter(|(_, ends)| !**ends).map(|(other, _)| other);
        turns[this.head.index()] = Some(Turns {
            waits: this.waits(function),
            ends: own_ends,
            is_within: endless.clone().any(|other| other.blocks[this.head.index()]),
            is_around: endless.any(|other| this.blocks[other.head.index()])
                || this.instructions(function).any(|id| {
                    let kind = &function.instructions[id.index()].kind;
                    matches!(kind, InstKind::Call { function, .. } if never_ends(*function))
                }),
        });
    }
    turns
}

/// By block, whether it is the head of a loop that may wait until another thread writes: one whose end an
/// atomic operation in it decides, or one with a fence, without which a thread could not see the write.
///
/// A thread that waits so must let the others run. Loops of other kinds cannot wait: the compiler may read a
/// plain variable once and for all.
pub(crate) fn waiting_heads(function: &Function) -> Vec<bool> {
    let mut waiting = vec![false; function.blocks.len()];
    for found in loops(function).iter().filter(|found| found.waits(function)) {
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

    fn waits(&self, function: &Function) -> bool {
        self.has_fence(function) || self.ends_by_atomic(function)
    }

    /// Whether a condition that leaves the loop is looked at in every turn, and hangs on nothing but the
    /// thread's own variables, one of which changes in every turn.
    fn ends_by_counting(&self, function: &Function) -> bool {
        let inside = function.blocks.iter().enumerate().filter(|(at, _)| self.blocks[*at]);
        inside.into_iter().any(|(at, block)| {
            let Terminator::Branch { condition, then, otherwise } = &block.terminator else {
                return false;
            };
            let leaves = |target: &BlockId| !self.blocks[target.index()];
            (leaves(then) || leaves(otherwise))
                && self.is_in_every_turn(function, BlockId(at as u32))
                && self.counts(function, condition)
        })
    }

    /// Whether a value hangs on nothing but the thread's own variables, and one of them changes in every turn.
    fn counts(&self, function: &Function, value: &Operand) -> bool {
        let mut changes = false;
        let mut seen = vec![false; function.instructions.len()];
        let mut open = vec![value.clone()];
        let mut homes: Vec<(InstId, BlockId)> = Vec::new();
        for (at, block) in function.blocks.iter().enumerate().filter(|(at, _)| self.blocks[*at]) {
            homes.extend(block.instructions.iter().map(|&id| (id, BlockId(at as u32))));
        }
        let is_inside = |id: InstId| homes.iter().any(|(inside, _)| *inside == id);
        while let Some(operand) = open.pop() {
            let Operand::Inst(id) = operand else { continue };
            if !is_inside(id) || std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            match &function.instructions[id.index()].kind {
                InstKind::Load(Operand::Slot(slot)) if !is_shared(function, *slot) => {
                    for &(id, home) in &homes {
                        match &function.instructions[id.index()].kind {
                            InstKind::Store { pointer: Operand::Slot(to), value } if to == slot => {
                                open.push(value.clone());
                                changes = changes || self.is_in_every_turn(function, home);
                            }
                            _ => {}
                        }
                    }
                }
                InstKind::Load(_)
                | InstKind::Builtin { .. }
                | InstKind::Call { .. }
                | InstKind::CallExtern { .. } => return false,
                kind => kind.for_each_operand(|operand| open.push(operand.clone())),
            }
        }
        changes
    }

    /// Whether no turn of the loop goes past the block.
    fn is_in_every_turn(&self, function: &Function, block: BlockId) -> bool {
        if block == self.head {
            return true;
        }
        let mut seen = vec![false; function.blocks.len()];
        seen[block.index()] = true;
        let mut open = vec![self.head];
        while let Some(id) = open.pop() {
            for next in function.blocks[id.index()].terminator.successors() {
                if next == self.head {
                    return false;
                }
                if self.blocks[next.index()] && !std::mem::replace(&mut seen[next.index()], true) {
                    open.push(next);
                }
            }
        }
        true
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

/// Whether something else than loads and stores by name has a variable.
fn is_shared(function: &Function, slot: SlotId) -> bool {
    let is_slot = |operand: &Operand| matches!(operand, Operand::Slot(other) if *other == slot);
    function.instructions.iter().any(|inst| match &inst.kind {
        InstKind::Load(_) => false,
        InstKind::Store { value, .. } => is_slot(value),
        kind => {
            let mut is_used = false;
            kind.for_each_operand(|operand| is_used |= is_slot(operand));
            is_used
        }
    })
}
