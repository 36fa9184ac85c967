//! Blocks, terminators and dominance.

use super::{Checked, FunctionVerifier, require};
use crate::ir::dominators::immediate_dominators;
use crate::ir::{BlockId, Role, Terminator};
use crate::types::Type;

impl FunctionVerifier<'_> {
    /// Checks that block targets exist, that the entry is not a target, and that every block is reachable.
    pub(super) fn check_blocks(&mut self) -> Checked {
        let blocks = &self.function.blocks;
        if blocks.is_empty() && self.is_declaration() {
            return Ok(());
        }
        require!(!blocks.is_empty(), ": it has no blocks");
        let mut names = std::collections::BTreeSet::new();
        for block in blocks {
            require!(names.insert(&block.name), ": two blocks are called `{}`", block.name);
            for BlockId(target) in block.terminator.successors() {
                let target = target as usize;
                require!(
                    target < blocks.len(),
                    ", block `{}`, terminator: block {target} does not exist",
                    block.name
                );
                require!(target != 0, ", block `{}`, terminator: it goes to the entry", block.name);
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
        let mut predecessors = vec![vec![]; blocks.len()];
        for (at, block) in blocks.iter().enumerate() {
            for target in block.terminator.successors() {
                predecessors[position[target.index()]].push(position[at]);
            }
        }
        let dominators = immediate_dominators(&predecessors);
        self.dominators = position.iter().map(|at| order[dominators[*at]]).collect();
        Ok(())
    }

    /// Whether the function is the entry of an `extern kernel`.
    fn is_declaration(&self) -> bool {
        let Role::Entry(id) = self.function.role else { return false };
        self.module.kernel(id).is_extern()
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
