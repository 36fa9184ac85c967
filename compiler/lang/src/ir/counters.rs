//! Variables that loops count with.

use super::loops::{Order, shared_slots};
use super::{BinaryOp, BlockId, Function, InstKind, Operand, SlotId};

/// A variable that a loop counts with.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its value before the loop.
    pub first: Operand,
    /// What each iteration adds.
    pub step: Operand,
}

/// By variable, how a loop counts with it: it is set before the loop, increased once in every iteration, and read nowhere else. So all
/// threads that run an iteration together have the same number if `first` and `step` are the same.
pub fn counters(function: &Function) -> Vec<Option<Counter>> {
    let order = Order::of(function);
    let loops = order.loops();
    // By slot, the blocks that load from it, and the stores with their blocks.
    let mut loads = vec![Vec::new(); function.slots.len()];
    let mut stores = vec![Vec::new(); function.slots.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        let id = BlockId(at as u32);
        for inst in &block.instructions {
            match &function.instructions[inst.index()].kind {
                InstKind::Load(Operand::Slot(slot)) => loads[slot.index()].push(id),
                InstKind::Store { pointer: Operand::Slot(slot), value } => {
                    stores[slot.index()].push((id, value));
                }
                _ => {}
            }
        }
    }
    let is_shared = shared_slots(function);
    let mut every = vec![None; loops.len()];
    let mut counter = |slot: usize| {
        let &[(one, a), (other, b)] = stores[slot].as_slice() else { return None };
        let step_of = |value: &Operand| {
            let Operand::Inst(id) = value else { return None };
            let (old, step) = match &function.instructions[id.index()].kind {
                InstKind::Advance(old, step) | InstKind::Binary(BinaryOp::Add, old, step) => {
                    (old, step)
                }
                _ => return None,
            };
            let Operand::Inst(old) = old else { return None };
            let loaded = &function.instructions[old.index()].kind;
            let is_own = *loaded == InstKind::Load(Operand::Slot(SlotId(slot as u32)));
            is_own.then(|| step.clone())
        };
        let (set, first, added, step) = match (step_of(a), step_of(b)) {
            (None, Some(step)) => (one, a, other, step),
            (Some(step), None) => (other, b, one, step),
            _ => return None,
        };
        let loops = &loops;
        let around = |block| (0..loops.len()).filter(move |at| loops[*at].has(block));
        let innermost = around(added).min_by_key(|at| loops[*at].blocks.len())?;
        let this = &loops[innermost];
        let is_set_anew = around(this.head).all(|at| loops[at].has(set) != (at == innermost));
        let every = every[innermost].get_or_insert_with(|| order.in_every_iteration(this));
        let is_counter = !is_shared[slot]
            && is_set_anew
            && every.binary_search(&added).is_ok()
            && loads[slot].iter().all(|block| this.has(*block));
        is_counter.then(|| Counter { first: first.clone(), step })
    };
    (0..function.slots.len()).map(&mut counter).collect()
}
