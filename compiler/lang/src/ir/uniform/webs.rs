//! Variables that hold several values in turn, taken apart.
//!
//! In `x = a; f(x); x = b; g(x);` nothing that reads `x` depends on both assignments, so they could be of two variables. A *web* is a set
//! of stores to a slot, with the loads that they reach, that shares no load with other stores (as in register allocation by
//! Chaitin et al., "Register Allocation via Coloring", 1981). Each is analysed as a slot of its own.

use std::collections::HashMap;

use crate::ir::loops::reverse_post_order;
use crate::ir::{BlockId, Function, InstId, InstKind, Operand, SlotId, Terminator};

/// The most values of slots at the starts of blocks that are followed. In functions with more, slots stay whole.
const MAX_ENTRIES: usize = 1 << 20;

/// The webs of a function's slots.
pub(super) struct Webs {
    of: HashMap<InstId, usize>,
    count: usize,
}

impl Webs {
    pub(super) fn of(function: &Function) -> Webs {
        let mut search = Search::of(function);
        if !search.follow() {
            return Webs { of: HashMap::new(), count: 0 };
        }
        let mut numbers = HashMap::new();
        let mut of = HashMap::new();
        for inst in std::mem::take(&mut search.accesses) {
            let root = search.root(inst.index());
            let next = numbers.len();
            of.insert(inst, *numbers.entry(root).or_insert(next));
        }
        Webs { of, count: numbers.len() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The web of a load or a store of a slot that is only loaded and stored as a whole.
    pub(super) fn web(&self, inst: InstId) -> Option<usize> {
        self.of.get(&inst).copied()
    }
}

struct Search<'m> {
    function: &'m Function,
    /// By slot, whether it is only loaded and stored as a whole.
    is_whole: Vec<bool>,
    /// The loads and stores of such slots.
    accesses: Vec<InstId>,
    predecessors: Vec<Vec<BlockId>>,
    /// By block, the last store to each slot.
    ends: Vec<HashMap<SlotId, InstId>>,
    /// The values of slots at the starts of blocks, with their numbers behind those of instructions.
    entries: HashMap<(BlockId, SlotId), usize>,
    /// By instruction and entry, another one of the same web, or itself.
    parents: Vec<usize>,
}

impl<'m> Search<'m> {
    fn of(function: &'m Function) -> Search<'m> {
        let mut is_whole = vec![true; function.slots.len()];
        let mut escape = |operand: &Operand| {
            if let Operand::Slot(slot) = operand {
                is_whole[slot.index()] = false;
            }
        };
        for inst in &function.instructions {
            match &inst.kind {
                InstKind::Load(Operand::Slot(_)) => {}
                InstKind::Store { pointer: Operand::Slot(_), value } => escape(value),
                kind => kind.for_each_operand(&mut escape),
            }
        }
        for block in &function.blocks {
            match &block.terminator {
                Terminator::Branch { condition: operand, .. }
                | Terminator::Return(Some(operand)) => escape(operand),
                Terminator::Jump(_) | Terminator::Return(None) | Terminator::Unreachable => {}
            }
        }
        let count = function.blocks.len();
        Search {
            function,
            is_whole,
            accesses: Vec::new(),
            predecessors: vec![Vec::new(); count],
            ends: vec![HashMap::new(); count],
            entries: HashMap::new(),
            parents: (0..function.instructions.len()).collect(),
        }
    }

    /// Joins each load with the stores that reach it. Whether there were few enough values to follow.
    fn follow(&mut self) -> bool {
        let mut open = Vec::new();
        for block in reverse_post_order(self.function) {
            let known = &self.function.blocks[block.index()];
            for next in known.terminator.successors() {
                self.predecessors[next.index()].push(block);
            }
            for &inst in &known.instructions {
                match &self.function.instructions[inst.index()].kind {
                    InstKind::Store { pointer: Operand::Slot(slot), .. }
                        if self.is_whole[slot.index()] =>
                    {
                        self.accesses.push(inst);
                        self.ends[block.index()].insert(*slot, inst);
                    }
                    InstKind::Load(Operand::Slot(slot)) if self.is_whole[slot.index()] => {
                        self.accesses.push(inst);
                        let value = match self.ends[block.index()].get(slot) {
                            Some(store) => store.index(),
                            None => self.entry(block, *slot, &mut open),
                        };
                        self.join(inst.index(), value);
                    }
                    _ => {}
                }
            }
        }
        while let Some((block, slot)) = open.pop() {
            let entry = self.entry(block, slot, &mut open);
            for at in 0..self.predecessors[block.index()].len() {
                let before = self.predecessors[block.index()][at];
                let value = match self.ends[before.index()].get(&slot) {
                    Some(store) => store.index(),
                    None => self.entry(before, slot, &mut open),
                };
                self.join(entry, value);
            }
            if self.entries.len() > MAX_ENTRIES {
                return false;
            }
        }
        true
    }

    /// The number of a slot's value at the start of a block, which is still to be followed if it is new.
    fn entry(&mut self, block: BlockId, slot: SlotId, open: &mut Vec<(BlockId, SlotId)>) -> usize {
        let next = self.parents.len();
        let entry = *self.entries.entry((block, slot)).or_insert(next);
        if entry == next {
            self.parents.push(next);
            open.push((block, slot));
        }
        entry
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one] = other;
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }
}
