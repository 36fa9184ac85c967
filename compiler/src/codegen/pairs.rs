//! Two narrow floats that are loaded one by one from one vector in memory, as operands of an operation on both: one load.
//!
//! libNVVM joins the two loads, but only after it has decided from a loop's size how often to unroll it. A layer of a network in `f16`
//! took 12 % longer (H200, CUDA 13.0).

use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use super::instruction::pointee;
use crate::error::Result;
use gridlet_lang::ir::{InstId, InstKind, Operand};
use gridlet_lang::types::{Scalar, Type};

/// How many instructions deep two addresses are compared. Each level can double the comparisons.
const MOST_LEVELS: u32 = 8;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Whether an instruction of this block was emitted, and nothing since that may write memory.
    fn is_quiet(&self, id: InstId) -> bool {
        self.emitted_after[id.index()] == Some(self.writes)
    }

    /// A vector of two numbers, if `low` and `high` are loads of its parts that nothing else uses; `None` otherwise.
    pub(super) fn loaded_pair(
        &self,
        scalar: Scalar,
        low: &Operand,
        high: &Operand,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let (Some((base, 0)), Some((other, 1))) = (self.loaded_part(low), self.loaded_part(high))
        else {
            return Ok(None);
        };
        let base_type = self.type_of(base);
        let pair = pointee(&base_type)?;
        if *pair != Type::Vector(scalar, 2) || !self.is_same(base, other, MOST_LEVELS) {
            return Ok(None);
        }
        self.load_part(self.accessed(base)?, 0, pair, "", false).map(Some)
    }

    /// The aggregate of which a quiet load reads a part, and the part's index.
    fn loaded_part(&self, value: &Operand) -> Option<(&Operand, u32)> {
        let Operand::Inst(id) = value else { return None };
        let Some(InstKind::Load(address)) = self.kind(value) else { return None };
        let Some(InstKind::FieldAddress { base, index }) = self.kind(address) else { return None };
        (self.is_quiet(*id) && self.uses()[id.index()] == 1).then_some((base, *index))
    }

    /// Whether two operands have the same value. Loads have only where nothing writes memory from the first to here.
    fn is_same(&self, left: &Operand, right: &Operand, levels: u32) -> bool {
        let (Operand::Inst(first), Operand::Inst(second)) = (left, right) else {
            return left == right;
        };
        let (Some(kind), Some(other), Some(levels)) =
            (self.kind(left), self.kind(right), levels.checked_sub(1))
        else {
            return first == second;
        };
        if first == second {
            return true;
        }
        let is_load = matches!(kind, InstKind::Load(_));
        if kind.may_write()
            || self.type_of(left) != self.type_of(right)
            || is_load && !(self.is_quiet(*first) && self.is_quiet(*second))
        {
            return false;
        }
        let mut operands = Vec::new();
        kind.for_each_operand(|operand| operands.push(operand.clone()));
        let mut operands = operands.into_iter();
        // What differs apart from operands of the same value makes the two different.
        let mut renamed = other.clone();
        renamed.for_each_operand_mut(|operand| {
            if let Some(mine) = operands.next()
                && self.is_same(&mine, operand, levels)
            {
                *operand = mine;
            }
        });
        renamed == *kind
    }
}
