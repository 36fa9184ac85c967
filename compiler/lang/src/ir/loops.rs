//! Finds loops, and those that may wait for another thread.
//!
//! A function may have thousands of loops, and a loop thousands of exits. So a loop lists only its blocks,
//! and the dependencies of its exits are computed for all of them at once.

use std::collections::HashMap;

use super::{BlockId, Function, FunctionId, InstId, InstKind, Operand, SlotId, Terminator, reach};
use crate::builtins::{Access, Memory};

/// A natural loop: the blocks that reach one of its back edges without passing through its head.
pub(super) struct Loop {
    pub(super) head: BlockId,
    /// Its blocks, in ascending order.
    pub(super) blocks: Vec<BlockId>,
}

/// The blocks of a function, each after all its dominators.
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

/// How a loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopEnd {
    /// Whether it may wait for another thread: see [`waiting_heads`].
    pub waits: bool,
    /// Whether it surely ends: after a number of iterations that the thread counts, regardless of memory
    /// contents.
    pub ends: bool,
    /// Whether an enclosing loop may not end.
    pub within_endless: bool,
    /// Whether a loop in it, or in a function that it calls, may not end.
    pub contains_endless: bool,
}

/// By block, how the loop with this head ends. `never_ends` tells whether a function may loop forever, itself
/// or in a function that it calls.
pub fn loop_ends(
    function: &Function,
    never_ends: &dyn Fn(FunctionId) -> bool,
) -> Vec<Option<LoopEnd>> {
    let mut found = vec![None; function.blocks.len()];
    let order = Order::of(function);
    let all = order.loops();
    let ends: Vec<bool> = ends_by_counting(&order, &all);
    // By block, the number of loops around it that may not end.
    let mut endless_around = vec![0_u32; function.blocks.len()];
    let mut is_endless_head = vec![false; function.blocks.len()];
    for (this, _) in all.iter().zip(&ends).filter(|(_, ends)| !**ends) {
        is_endless_head[this.head.index()] = true;
        this.blocks.iter().for_each(|id| endless_around[id.index()] += 1);
    }
    for (this, &ends) in all.iter().zip(&ends) {
        let head = this.head.index();
        found[head] = Some(LoopEnd {
            waits: this.waits(function),
            ends,
            within_endless: endless_around[head] > u32::from(!ends),
            contains_endless: this
                .blocks
                .iter()
                .any(|id| *id != this.head && is_endless_head[id.index()])
                || this.instructions(function).any(|id| {
                    let kind = &function.instructions[id.index()].kind;
                    matches!(kind, InstKind::Call { function, .. } if never_ends(*function))
                }),
        });
    }
    found
}

/// Whether a function itself contains a loop that may never end.
pub fn may_loop_forever(function: &Function) -> bool {
    let order = Order::of(function);
    ends_by_counting(&order, &order.loops()).contains(&false)
}

/// By block, whether it is the head of a loop that may wait for another thread's write: an exit depends on an
/// atomic operation in the loop, or the loop has a fence, without which a thread might not see the write.
///
/// A thread in such a loop must let others run. Other loops cannot wait: the compiler may read a plain
/// variable just once.
pub fn waiting_heads(function: &Function) -> Vec<bool> {
    let mut waiting = vec![false; function.blocks.len()];
    for found in Order::of(function).loops().iter().filter(|found| found.waits(function)) {
        waiting[found.head.index()] = true;
    }
    waiting
}

/// The reachable blocks of a function, each after all its dominators.
pub(super) struct Order<'f> {
    function: &'f Function,
    pub(super) blocks: Vec<BlockId>,
    /// By block, its position in the order.
    places: Vec<Option<usize>>,
}

impl<'f> Order<'f> {
    pub(super) fn of(function: &'f Function) -> Self {
        let blocks = reverse_post_order(function);
        let mut places = vec![None; function.blocks.len()];
        blocks.iter().enumerate().for_each(|(place, id)| places[id.index()] = Some(place));
        Order { function, blocks, places }
    }

    /// By head in order, the sources of its back edges: jumps to a block that does not come later.
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

    pub(super) fn loops(&self) -> Vec<Loop> {
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

    /// The blocks of a loop that every iteration passes, in ascending order.
    pub(super) fn in_every_iteration(&self, this: &Loop) -> Vec<BlockId> {
        let mut inside: Vec<usize> =
            this.blocks.iter().filter_map(|id| self.places[id.index()]).collect();
        inside.sort_unstable();
        let Some(&head) = inside.first() else { return Vec::new() };
        // The paths of an iteration are acyclic: each jump leads forward in the order, the last one to the
        // head.
        let next = |place: usize| {
            let block = &self.function.blocks[self.blocks[place].index()];
            block.terminator.successors().filter_map(|to| self.places[to.index()])
        };
        let mut ends_iteration = vec![false; inside.len()];
        let onwards = |place: usize, to: usize, ends_iteration: &[bool]| {
            to > place && inside.binary_search(&to).is_ok_and(|to| ends_iteration[to])
        };
        for at in (0..inside.len()).rev() {
            let place = inside[at];
            ends_iteration[at] =
                next(place).any(|to| to == head || onwards(place, to, &ends_iteration));
        }
        // An iteration can bypass a block if a jump leads over it.
        let mut farthest = head;
        let mut every = Vec::new();
        for (&place, _) in
            inside.iter().zip(&ends_iteration).filter(|(_, ends_iteration)| **ends_iteration)
        {
            if farthest <= place {
                every.push(self.blocks[place]);
            }
            for to in next(place) {
                if to == head {
                    farthest = usize::MAX;
                } else if onwards(place, to, &ends_iteration) {
                    farthest = farthest.max(to);
                }
            }
        }
        every.sort_unstable();
        every
    }
}

/// By loop, whether every iteration evaluates an exit condition that depends only on the thread's own
/// variables, one of which changes in every iteration.
fn ends_by_counting(order: &Order<'_>, loops: &[Loop]) -> Vec<bool> {
    let function = order.function;
    let is_shared = shared_slots(function);
    let ends = |this: &Loop| {
        let every = order.in_every_iteration(this);
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

/// The values that a loop computes, and the dependencies between them.
struct Values {
    /// The instructions of the loop, in ascending order. Nodes of the graph are indices into this list.
    inside: Vec<InstId>,
    /// Edges from a value to its dependencies.
    edges: Vec<(usize, usize)>,
    /// The number of nodes: variables that the loop stores to follow the instructions.
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

    /// By node, whether it is, or depends on, an instruction for which `is` holds.
    fn leading_to(&self, is: impl Fn(InstId) -> bool) -> Vec<bool> {
        let seeds = self.inside.iter().enumerate().filter(|(_, id)| is(**id)).map(|(at, _)| at);
        reach::leading_to(self.nodes, self.edges.iter().copied(), seeds)
    }

    /// The entry in `found` for an operand; false if the loop does not compute it.
    fn is(&self, found: &[bool], operand: &Operand) -> bool {
        let Operand::Inst(id) = operand else { return false };
        self.inside.binary_search(id).is_ok_and(|at| found[at])
    }
}

impl Loop {
    pub(super) fn has(&self, block: BlockId) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }

    pub(super) fn instructions<'f>(
        &self,
        function: &'f Function,
    ) -> impl Iterator<Item = InstId> + use<'_, 'f> {
        self.blocks.iter().flat_map(|id| function.blocks[id.index()].instructions.iter().copied())
    }

    /// The exit conditions of the loop, with their targets.
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
            matches!(kind, InstKind::Builtin { builtin, .. } if builtin.properties().memory == Memory::Fence)
        })
    }

    /// Whether an exit condition depends on the result of an atomic operation in the loop.
    fn ends_by_atomic(&self, function: &Function) -> bool {
        let is_atomic = |id: InstId| {
            let InstKind::Builtin { builtin, .. } = &function.instructions[id.index()].kind else {
                return false;
            };
            matches!(builtin.properties().memory, Memory::Atomic(Access::Load | Access::Update))
        };
        if !self.instructions(function).any(is_atomic) {
            return false;
        }
        let values = Values::of(self, function);
        let hangs_on_atomic = values.leading_to(is_atomic);
        self.exits(function).any(|(_, condition)| values.is(&hangs_on_atomic, condition))
    }
}

/// By variable, whether it is used other than by direct loads and stores.
pub fn shared_slots(function: &Function) -> Vec<bool> {
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
    for block in &function.blocks {
        if let Terminator::Return(Some(value)) = &block.terminator {
            share(value);
        }
    }
    is_shared
}

/// By variable, what is stored to it; `None` if it is used other than by direct loads and stores.
pub fn stored_values(function: &Function) -> Vec<Option<Vec<Operand>>> {
    let shared = shared_slots(function);
    let mut found: Vec<_> = shared.iter().map(|is_shared| (!is_shared).then(Vec::new)).collect();
    for inst in &function.instructions {
        if let InstKind::Store { pointer: Operand::Slot(slot), value } = &inst.kind
            && let Some(values) = &mut found[slot.index()]
        {
            values.push(value.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::check;
    use crate::source::SourceMap;

    #[test]
    fn a_counting_loop_ends_whatever_it_contains() {
        // The inner loop may never end, and its blocks follow those of the counting loop.
        let body = "let mut i = 0u32; while i < n { while p[0] > i { p[1] = i; } i += 1; }";
        let text = format!("kernel k(p: *mut u32, n: u32) {{ {body} }}");
        let module = check(SourceMap::single("a.grid", text)).unwrap().module;
        let function = module.function(module.kernels[0].body);
        let found: Vec<_> = loop_ends(function, &|_| false).into_iter().flatten().collect();
        let [outer, inner] = found[..] else { panic!("{found:?}") };
        assert!(outer.ends && outer.contains_endless && !outer.within_endless, "{outer:?}");
        assert!(!inner.ends && !inner.contains_endless && !inner.within_endless, "{inner:?}");
    }
}
