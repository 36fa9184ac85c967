//! Loops, and which of them may wait for another thread.
//!
//! A function may have thousands of loops, and a loop thousands of ways out of it. So a loop lists its blocks alone,
//! and what its ways out hang on is found for all of them at once.

use std::collections::HashMap;

use super::{BlockId, Function, FunctionId, InstId, InstKind, Operand, SlotId, Terminator, reach};
use crate::builtins::Builtin;

/// A natural loop: what reaches one of its jumps back without leaving by its head.
struct Loop {
    head: BlockId,
    /// Its blocks, in ascending order.
    blocks: Vec<BlockId>,
}

/// The blocks of a function, each after all that dominate it.
pub fn reverse_post_order(function: &Function) -> Vec<BlockId> {
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
pub struct Turns {
    /// As [`waiting_heads`] says.
    pub waits: bool,
    /// It ends after turns that its thread counts, whatever is in memory.
    pub ends: bool,
    /// A loop around it may not end so.
    pub is_within: bool,
    /// A loop in it, or in what it calls, may not end so.
    pub is_around: bool,
}

/// By block, how the loop ends whose head it is. `never_ends`: whether a function may turn for ever in a loop of
/// its own or of what it calls.
pub fn turns(function: &Function, never_ends: &dyn Fn(FunctionId) -> bool) -> Vec<Option<Turns>> {
    let mut turns = vec![None; function.blocks.len()];
    let order = Order::of(function);
    let all = order.loops();
    let ends: Vec<bool> = ends_by_counting(&order, &all);
    // By block, the loops around it that may not end.
    let mut endless_around = vec![0_u32; function.blocks.len()];
    let mut is_endless_head = vec![false; function.blocks.len()];
    for (this, _) in all.iter().zip(&ends).filter(|(_, ends)| !**ends) {
        is_endless_head[this.head.index()] = true;
        this.blocks.iter().for_each(|id| endless_around[id.index()] += 1);
    }
    for (this, &ends) in all.iter().zip(&ends) {
        let head = this.head.index();
        turns[head] = Some(Turns {
            waits: this.waits(function),
            ends,
            is_within: endless_around[head] > u32::from(!ends),
            is_around: this.blocks.iter().any(|id| *id != this.head && is_endless_head[id.index()])
                || this.instructions(function).any(|id| {
                    let kind = &function.instructions[id.index()].kind;
                    matches!(kind, InstKind::Call { function, .. } if never_ends(*function))
                }),
        });
    }
    turns
}

/// Whether a function has a loop of its own that may never end.
pub fn may_turn_for_ever(function: &Function) -> bool {
    let order = Order::of(function);
    ends_by_counting(&order, &order.loops()).contains(&false)
}

/// By block, whether it is the head of a loop that may wait until another thread writes: one whose end an
/// atomic operation in it decides, or one with a fence, without which a thread could not see the write.
///
/// A thread that waits so must let the others run. Loops of other kinds cannot wait: the compiler may read a
/// plain variable once and for all.
pub fn waiting_heads(function: &Function) -> Vec<bool> {
    let mut waiting = vec![false; function.blocks.len()];
    for found in Order::of(function).loops().iter().filter(|found| found.waits(function)) {
        waiting[found.head.index()] = true;
    }
    waiting
}

/// The blocks of a function that can be reached, each after all that dominate it.
struct Order<'f> {
    function: &'f Function,
    blocks: Vec<BlockId>,
    /// By block, its place in the order.
    places: Vec<Option<usize>>,
}

impl<'f> Order<'f> {
    fn of(function: &'f Function) -> Self {
        let blocks = reverse_post_order(function);
        let mut places = vec![None; function.blocks.len()];
        blocks.iter().enumerate().for_each(|(place, id)| places[id.index()] = Some(place));
        Order { function, blocks, places }
    }

    /// By head, in its order, the blocks that jump back to it: to a block that comes no later.
    fn jumps_back(&self) -> Vec<(BlockId, Vec<BlockId>)> {
        let mut jumps = vec![Vec::new(); self.function.blocks.len()];
        for (place, id) in self.blocks.iter().enumerate() {
            for to in self.function.blocks[id.index()].terminator.successors() {
                if self.places[to.index()].is_some_and(|to| to <= place) {
                    jumps[to.index()].push(*id);
                }
            }
        }
        let of_head =
            self.blocks.iter().map(|&head| (head, std::mem::take(&mut jumps[head.index()])));
        of_head.filter(|(_, jumps)| !jumps.is_empty()).collect()
    }

    fn loops(&self) -> Vec<Loop> {
        let count = self.function.blocks.len();
        let mut predecessors = vec![Vec::new(); count];
        for (at, block) in self.function.blocks.iter().enumerate() {
            for successor in block.terminator.successors() {
                predecessors[successor.index()].push(BlockId(at as u32));
            }
        }
        let mut seen_by = vec![None; count];
        let mut loop_of = |(head, jumps): (BlockId, Vec<BlockId>)| {
            seen_by[head.index()] = Some(head);
            let (mut blocks, mut open) = (vec![head], jumps);
            while let Some(id) = open.pop() {
                if seen_by[id.index()].replace(head) != Some(head) {
                    blocks.push(id);
                    open.extend(&predecessors[id.index()]);
                }
            }
            blocks.sort_unstable();
            Loop { head, blocks }
        };
        self.jumps_back().into_iter().map(&mut loop_of).collect()
    }

    /// The blocks of a loop that no turn of it goes past, in ascending order.
    fn in_every_turn(&self, this: &Loop) -> Vec<BlockId> {
        let mut inside: Vec<usize> =
            this.blocks.iter().filter_map(|id| self.places[id.index()]).collect();
        inside.sort_unstable();
        let Some(&head) = inside.first() else { return Vec::new() };
        // The ways of a turn that enter no place twice: each jump leads onwards in the order, the last one to the head.
        let next = |place: usize| {
            let block = &self.function.blocks[self.blocks[place].index()];
            block.terminator.successors().filter_map(|to| self.places[to.index()])
        };
        let mut ends_turn = vec![false; inside.len()];
        let onwards = |place: usize, to: usize, ends_turn: &[bool]| {
            to > place && inside.binary_search(&to).is_ok_and(|to| ends_turn[to])
        };
        for at in (0..inside.len()).rev() {
            let place = inside[at];
            ends_turn[at] = next(place).any(|to| to == head || onwards(place, to, &ends_turn));
        }
        // A turn goes past a block if one of its jumps leads over it.
        let mut farthest = head;
        let mut every = Vec::new();
        for (&place, _) in inside.iter().zip(&ends_turn).filter(|(_, ends_turn)| **ends_turn) {
            if farthest <= place {
                every.push(self.blocks[place]);
            }
            for to in next(place) {
                if to == head {
                    farthest = usize::MAX;
                } else if onwards(place, to, &ends_turn) {
                    farthest = farthest.max(to);
                }
            }
        }
        every.sort_unstable();
        every
    }
}

/// By loop, whether a condition that leaves it is looked at in every turn, and hangs on nothing but the thread's own
/// variables, one of which changes in every turn.
fn ends_by_counting(order: &Order<'_>, loops: &[Loop]) -> Vec<bool> {
    let function = order.function;
    let is_shared = shared_slots(function);
    let ends = |this: &Loop| {
        let every = order.in_every_turn(this);
        let values = Values::of(this, function);
        let hangs_on_memory =
            values.leading_to(|id| match &function.instructions[id.index()].kind {
                InstKind::Load(Operand::Slot(slot)) => is_shared[slot.index()],
                InstKind::Load(_)
                | InstKind::Builtin { .. }
                | InstKind::Call { .. }
                | InstKind::CallExtern { .. } => true,
                _ => false,
            });
        let mut changes = Vec::new();
        for id in every.iter().flat_map(|id| &function.blocks[id.index()].instructions) {
            if let InstKind::Store { pointer: Operand::Slot(slot), .. } =
                &function.instructions[id.index()].kind
            {
                changes.push(*slot);
            }
        }
        changes.sort_unstable();
        let hangs_on_change =
            values.leading_to(|id| match &function.instructions[id.index()].kind {
                InstKind::Load(Operand::Slot(slot)) => changes.binary_search(slot).is_ok(),
                _ => false,
            });
        this.exits(function).any(|(block, condition)| {
            every.binary_search(&block).is_ok()
                && !values.is(&hangs_on_memory, condition)
                && values.is(&hangs_on_change, condition)
        })
    };
    loops.iter().map(ends).collect()
}

/// The values that a loop computes, and which of them each is computed from.
struct Values {
    /// The instructions of the loop, in ascending order. Nodes of a graph are their places here.
    inside: Vec<InstId>,
    /// From a value to one that it hangs on.
    edges: Vec<(usize, usize)>,
    /// How many nodes the graph has: each variable that the loop stores to is one behind the instructions.
    nodes: usize,
}

impl Values {
    fn of(this: &Loop, function: &Function) -> Self {
        let mut inside: Vec<InstId> = this.instructions(function).collect();
        inside.sort_unstable();
        let mut values = Values { nodes: inside.len(), inside, edges: Vec::new() };
        let mut slots: HashMap<SlotId, usize> = HashMap::new();
        for (at, id) in values.inside.iter().enumerate() {
            let node = |operand: &Operand| match operand {
                Operand::Inst(id) => values.inside.binary_search(id).ok(),
                _ => None,
            };
            let mut slot_node = |slot: SlotId| {
                *slots.entry(slot).or_insert_with(|| {
                    values.nodes += 1;
                    values.nodes - 1
                })
            };
            match &function.instructions[id.index()].kind {
                InstKind::Load(Operand::Slot(slot)) => values.edges.push((at, slot_node(*slot))),
                InstKind::Store { pointer: Operand::Slot(slot), value } => {
                    values.edges.extend(node(value).map(|value| (slot_node(*slot), value)));
                }
                kind => kind.for_each_operand(|operand| {
                    values.edges.extend(node(operand).map(|operand| (at, operand)));
                }),
            }
        }
        values
    }

    /// By node, whether its value hangs on that of an instruction for which `is` holds, or is one.
    fn leading_to(&self, is: impl Fn(InstId) -> bool) -> Vec<bool> {
        let seeds = self.inside.iter().enumerate().filter(|(_, id)| is(**id)).map(|(at, _)| at);
        reach::leading_to(self.nodes, self.edges.iter().copied(), seeds)
    }

    /// What was found of an operand, if the loop computes it.
    fn is(&self, found: &[bool], operand: &Operand) -> bool {
        let Operand::Inst(id) = operand else { return false };
        self.inside.binary_search(id).is_ok_and(|at| found[at])
    }
}

impl Loop {
    fn has(&self, block: BlockId) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }

    fn instructions<'f>(
        &self,
        function: &'f Function,
    ) -> impl Iterator<Item = InstId> + use<'_, 'f> {
        self.blocks.iter().flat_map(|id| function.blocks[id.index()].instructions.iter().copied())
    }

    /// The conditions that leave the loop, and where.
    fn exits<'f>(
        &self,
        function: &'f Function,
    ) -> impl Iterator<Item = (BlockId, &'f Operand)> + use<'_, 'f> {
        self.blocks.iter().filter_map(|&id| match &function.blocks[id.index()].terminator {
            Terminator::Branch { condition, then, otherwise } => {
                (!self.has(*then) || !self.has(*otherwise)).then_some((id, condition))
            }
            _ => None,
        })
    }

    fn waits(&self, function: &Function) -> bool {
        self.has_fence(function) || self.ends_by_atomic(function)
    }

    fn has_fence(&self, function: &Function) -> bool {
        self.instructions(function).any(|id| {
            let kind = &function.instructions[id.index()].kind;
            matches!(kind, InstKind::Builtin { builtin: Builtin::Fence(_), .. })
        })
    }

    /// Whether the value of an atomic operation in the loop takes part in a condition that leaves it.
    fn ends_by_atomic(&self, function: &Function) -> bool {
        let is_atomic = |id: InstId| {
            matches!(
                &function.instructions[id.index()].kind,
                InstKind::Builtin {
                    builtin: Builtin::Atomic(..) | Builtin::AtomicCas(_) | Builtin::AtomicLoad(_),
                    ..
                }
            )
        };
        if !self.instructions(function).any(is_atomic) {
            return false;
        }
        let values = Values::of(self, function);
        let hangs_on_atomic = values.leading_to(is_atomic);
        self.exits(function).any(|(_, condition)| values.is(&hangs_on_atomic, condition))
    }
}

/// By variable, whether something else than loads and stores by name has it.
fn shared_slots(function: &Function) -> Vec<bool> {
    let mut is_shared = vec![false; function.slots.len()];
    let mut share = |operand: &Operand| {
        if let Operand::Slot(slot) = operand {
            is_shared[slot.index()] = true;
        }
    };
    for inst in &function.instructions {
        match &inst.kind {
            InstKind::Load(_) => {}
            InstKind::Store { value, .. } => share(value),
            kind => kind.for_each_operand(&mut share),
        }
    }
    is_shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::check;
    use crate::source::SourceMap;

    #[test]
    fn a_loop_that_counts_ends_whatever_loop_is_in_it() {
        // The loop within may turn for ever, and its blocks stand behind those that count.
        let body = "let mut i = 0u32; while i < n { while p[0] > i { p[1] = i; } i += 1; }";
        let text = format!("kernel k(p: *mut u32, n: u32) {{ {body} }}");
        let module = check(SourceMap::single("a.grid", text)).unwrap().module;
        let function = module.function(module.kernels[0].body);
        let found: Vec<_> = turns(function, &|_| false).into_iter().flatten().collect();
        let [outer, inner] = found[..] else { panic!("{found:?}") };
        assert!(outer.ends && outer.is_around && !outer.is_within, "{outer:?}");
        assert!(!inner.ends && !inner.is_around && !inner.is_within, "{inner:?}");
    }
}
