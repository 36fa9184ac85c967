//! Branches that stand for several, on GPUs: see [`gridlet_lang::ir::conditions`].

use inkwell::values::IntValue;

use super::bug;
use super::context::Target;
use super::function::FunctionEmitter;
use super::values::int;
use crate::error::Result;
use gridlet_lang::ir::BlockId;
use gridlet_lang::ir::conditions::{self, Condition, Joined};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Decides which branches become one. A checked image reports each access that a program does not ask for, and without optimisation a
    /// debugger stops at each part of a condition.
    pub(super) fn plan_joined(&mut self) {
        let function = self.function;
        self.joined_blocks = vec![false; function.blocks.len()];
        if !matches!(self.cx.target, Target::Nvptx(options) if options.optimize) {
            return;
        }
        let is_plain = |joined: &Joined<'_>| {
            ![joined.then, joined.otherwise].iter().any(|to| self.is_division_trap(*to))
        };
        let all = conditions::joined(self.cx.ir, function);
        self.joined = all.into_iter().map(|joined| joined.filter(is_plain)).collect();
        for joined in self.joined.iter().flatten() {
            for block in &joined.blocks {
                self.joined_blocks[block.index()] = true;
            }
        }
    }

    /// Whether another block has the instructions of this one.
    pub(super) fn is_joined(&self, id: BlockId) -> bool {
        self.joined_blocks[id.index()]
    }

    /// Ends a block with a branch that stands for several.
    pub(super) fn emit_joined(&mut self, id: BlockId, joined: &Joined<'_>) -> Result<()> {
        for block in &joined.blocks {
            self.emit_instructions(&self.function.blocks[block.index()])?;
        }
        let condition = self.condition(&joined.condition)?;
        let (then, otherwise) = (self.target(joined.then)?, self.target(joined.otherwise)?);
        let branch = self.build().build_conditional_branch(condition, then, otherwise)?;
        self.mark_loop(branch, id, [joined.then, joined.otherwise].into_iter())
    }

    fn condition(&self, condition: &Condition<'_>) -> Result<IntValue<'ctx>> {
        let (first, second, is_and) = match condition {
            Condition::Value(operand) => return int(self.operand(operand)?),
            Condition::Not(of) => return Ok(self.build().build_not(self.condition(of)?, "")?),
            Condition::And(both) => (&both[0], &both[1], true),
            Condition::Or(both) => (&both[0], &both[1], false),
        };
        let (first, second) = (self.condition(first)?, self.condition(second)?);
        let decided = self.cx.int_type(1).const_int(u64::from(!is_and), false);
        let (yes, no) = if is_and { (second, decided) } else { (decided, second) };
        int(self.build().build_select(first, yes, no, "")?)
    }

    /// Removes the blocks that are empty now.
    pub(super) fn drop_joined(&self) -> Result<()> {
        let blocks = self.blocks.iter().zip(&self.joined_blocks);
        for (block, _) in blocks.filter(|(_, is_joined)| **is_joined) {
            // SAFETY: nothing refers to the block: it was never emitted, and no branch leads to it.
            unsafe { block.delete() }.map_err(|()| bug("an empty block outside a function"))?;
        }
        Ok(())
    }
}
