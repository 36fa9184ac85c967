//! Blocks, terminators and dominance.

use super::{Checked, FunctionVerifier, require};
use crate::ir::{BlockId, Terminator};
use crate::types::Type;

impl FunctionVerifier<'_> {
    /// Checks that block targets exist, that the entry is not a target, and that every block is reachable.
    pub(super) fn check_blocks(&mut self) -> Checked {
        let blocks = &self.function.blocks;
        require!(!blocks.is_empty(), ": it has no blocks");
        let mut names = std::collections::BTreeSet::new();
        let mut predecessors = vec![vec![]; blocks.len()];
        for (at, block) in blocks.iter().enumerate() {
            require!(names.insert(&block.name), ": two blocks are called `{}`", block.name);
            for BlockId(target) in block.terminator.successors() {
                let target = target as usize;
                require!(
                    target < blocks.len(),
                    ", block `{}`, terminator: block {target} does not exist",
                    block.name
                );
                require!(target != 0, ", block `{}`, terminator: it goes to the entry", block.name);
                predecessors[target].push(at);
            }
        }
        let order = self.reverse_postorder();
        let mut position = vec![None; blocks.len()];
        for (at, block) in order.iter().enumerate() {
            position[*block] = Some(at);
        }
        if let Some(lost) = position.iter().position(Option::is_none) {
            return Err(format!(", block `{}`: it is unreachable", blocks[lost].name));
        }
        let position: Vec<usize> = position.into_iter().flatten().collect();
        self.dominators = immediate_dominators(&order, &position, &predecessors);
        Ok(())
    }

    /// The reachable blocks in reverse postorder: each before its successors, back edges aside.
    fn reverse_postorder(&self) -> Vec<usize> {
        let successors = |block: usize| -> Vec<usize> {
            let terminator = &self.function.blocks[block].terminator;
            terminator.successors().map(BlockId::index).collect()
        };
        let mut seen = vec![false; self.function.blocks.len()];
        let mut order = vec![];
        let mut open = vec![(0, successors(0))];
        seen[0] = true;
        while let Some((block, rest)) = open.last_mut() {
            match rest.pop() {
                Some(next) if !seen[next] => {
                    seen[next] = true;
                    open.push((next, successors(next)));
                }
                Some(_) => {}
                None => {
                    order.push(*block);
                    open.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// Whether every path from the entry to `block` passes through `dominator`.
    pub(super) fn dominates(&self, dominator: usize, block: usize) -> bool {
        let mut at = block;
        while at != dominator && at != 0 {
            at = self.dominators[at];
        }
        at == dominator
    }

    pub(super) fn check_terminator(
        &self,
        terminator: &Terminator,
        place: (usize, usize),
    ) -> Checked {
        match terminator {
            Terminator::Branch { condition, .. } => {
                let ty = self.operand(condition, place)?;
                self.expect("the condition", &Type::BOOL, &ty)
            }
            Terminator::Return(None) => {
                let returns_nothing = self.function.result == Type::Unit;
                require!(returns_nothing, "it returns no value, but the function has a result");
                Ok(())
            }
            Terminator::Return(Some(value)) => {
                require!(
                    self.function.result != Type::Unit,
                    "it returns a value, but the function has no result"
                );
                let ty = self.operand(value, place)?;
                self.expect("the result", &self.function.result, &ty)
            }
            Terminator::Jump(_) | Terminator::Unreachable => Ok(()),
        }
    }
}

/// The immediate dominator of every block, by iterating to a fixed point over the blocks in reverse postorder
/// (Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm"). The entry is its own dominator.
fn immediate_dominators(
    order: &[usize],
    position: &[usize],
    predecessors: &[Vec<usize>],
) -> Vec<usize> {
    let mut dominators: Vec<Option<usize>> = vec![None; order.len()];
    dominators[0] = Some(0);
    let mut changed = true;
    while changed {
        changed = false;
        for block in order.iter().copied().filter(|block| *block != 0) {
            let mut common = None;
            // Late predecessors first: the blocks from which a long `&&` exits form a line.
            for before in predecessors[block].iter().rev() {
                if dominators[*before].is_none() {
                    continue;
                }
                common = Some(match common {
                    None => *before,
                    Some(other) => meet(other, *before, position, &dominators),
                });
            }
            if common != dominators[block] {
                dominators[block] = common;
                changed = true;
            }
        }
    }
    dominators.into_iter().map(|dominator| dominator.unwrap_or(0)).collect()
}

/// The nearest common dominator.
fn meet(
    mut left: usize,
    mut right: usize,
    position: &[usize],
    dominators: &[Option<usize>],
) -> usize {
    while left != right {
        if position[left] > position[right] {
            left = dominators[left].unwrap_or(0);
        } else {
            right = dominators[right].unwrap_or(0);
        }
    }
    left
}
