//! Emits the blocks and instructions of one function.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::ir::{Block, BlockId, Function, Inst, InstId, InstKind, Operand, Parameter, Role};
use crate::ir::{Const, Slot, SlotId, Terminator, Unroll, Variable};
use crate::source::Span;
use crate::types::Type;

/// A function under construction.
///
/// Unreachable code is never emitted: after a terminator the builder is *dead* until it moves to a block that
/// is a jump target. Instructions emitted while it is dead vanish, and their results are placeholders that no
/// instruction uses.
#[derive(Debug, Default)]
pub struct BodyBuilder {
    slots: Vec<Slot>,
    instructions: Vec<Inst>,
    blocks: Vec<Draft>,
    /// The placed blocks, in the order of the text form.
    order: Vec<BlockId>,
    current: Option<BlockId>,
    /// The number of constructs of each kind.
    constructs: BTreeMap<&'static str, u32>,
    /// By local variable, the value stored last.
    stored: BTreeMap<SlotId, Operand>,
    /// The block for divisions by zero, once there is one, and the position of the first division.
    pub(super) division_trap: Option<(BlockId, Span)>,
    /// Divisors that a test on the only way to here has found not to be zero; a slot stands for what it holds.
    nonzero: Vec<Operand>,
}

/// How many operands are known not to be zero at most, so that a long row of divisions takes linear time.
const MOST_KNOWN: usize = 16;

/// How many instructions back a divisor may have been read from its variable to count as its value.
const MOST_BACK: usize = 32;

/// Maximum number of operations between a value and a load that it depends on.
const MAX_DEPTH: u32 = 8;

#[derive(Debug)]
struct Draft {
    name: String,
    /// Whether a jump leads here.
    reached: bool,
    instructions: Vec<InstId>,
    terminator: Option<Terminator>,
    end: Option<Span>,
    unroll: Option<Unroll>,
}

impl BodyBuilder {
    /// An empty body, positioned in its entry block.
    pub fn new() -> Self {
        let mut body = BodyBuilder::default();
        let entry = body.block("entry".into());
        body.blocks[entry.index()].reached = true;
        body.place(entry);
        body
    }

    /// Adds a temporary and returns its address.
    pub fn slot(&mut self, name: &str, ty: Type) -> Operand {
        self.add_slot(Slot { name: name.into(), ty, unset: false, variable: None })
    }

    /// Adds a variable of the source and returns its address.
    pub fn variable(&mut self, variable: Variable, ty: Type) -> Operand {
        let name = variable.name.clone();
        self.add_slot(Slot { name, ty, unset: false, variable: Some(variable) })
    }

    /// Adds a slot and returns its address.
    pub fn add_slot(&mut self, slot: Slot) -> Operand {
        self.slots.push(slot);
        Operand::Slot(SlotId(self.slots.len() as u32 - 1))
    }

    /// Makes the blocks of a construct, to be placed later: `for.head`, `for.body`, and so on; the second
    /// construct of its kind in the function has `for.head.2`, `for.body.2`.
    pub fn blocks<const N: usize>(
        &mut self,
        construct: &'static str,
        parts: [&str; N],
    ) -> [BlockId; N] {
        let count = self.constructs.entry(construct).or_default();
        *count += 1;
        let number = if *count == 1 { String::new() } else { format!(".{count}") };
        parts.map(|part| self.block(format!("{construct}.{part}{number}")))
    }

    /// Makes a block, to be placed later. Its name must be unique in the function.
    pub fn block(&mut self, name: String) -> BlockId {
        self.blocks.push(Draft {
            name,
            reached: false,
            instructions: vec![],
            terminator: None,
            end: None,
            unroll: None,
        });
        BlockId(self.blocks.len() as u32 - 1)
    }

    /// Continues in a block, which must not have been placed before. If no jump leads to it, the builder is
    /// dead afterwards.
    pub fn place(&mut self, block: BlockId) {
        self.nonzero.clear();
        self.current = None;
        if self.blocks[block.index()].reached {
            self.order.push(block);
            self.current = Some(block);
        }
    }

    /// Sets how to unroll the loop that starts with a block.
    pub fn unroll(&mut self, head: BlockId, unroll: Option<Unroll>) {
        self.blocks[head.index()].unroll = unroll;
    }

    /// Whether a value was computed from memory other than local variables.
    pub fn is_from_memory(&self, value: &Operand) -> bool {
        self.depends_on_memory(value, 0)
    }

    fn depends_on_memory(&self, value: &Operand, depth: u32) -> bool {
        let Operand::Inst(id) = value else { return false };
        if depth >= MAX_DEPTH {
            return false;
        }
        let depends = |value| self.depends_on_memory(value, depth + 1);
        match self.instructions.get(id.index()).map(|inst| &inst.kind) {
            Some(InstKind::Load(Operand::Slot(slot))) => self.stored.get(slot).is_some_and(depends),
            Some(InstKind::Load(address)) => !self.is_local(address),
            Some(InstKind::Binary(_, left, right)) => depends(left) || depends(right),
            Some(InstKind::ElementAddress { base, index }) => depends(base) || depends(index),
            Some(InstKind::Unary(_, value) | InstKind::Cast(value)) => depends(value),
            _ => false,
        }
    }

    /// Whether a block ends with a branch on a comparison of two pointers that were computed with indices from memory.
    pub(super) fn compares_pointers_from_memory(&self, block: BlockId) -> bool {
        let inst = |value: &Operand| match value {
            Operand::Inst(id) => self.instructions.get(id.index()),
            _ => None,
        };
        let end = self.blocks[block.index()].terminator.as_ref();
        let Some(Terminator::Branch { condition, .. }) = end else { return false };
        let Some(InstKind::Binary(op, left, right)) = inst(condition).map(|it| &it.kind) else {
            return false;
        };
        let is_pointer = |value| inst(value).is_some_and(|it| it.ty.is_pointer());
        let is_chosen = |value| is_pointer(value) && self.is_from_memory(value);
        op.is_comparison() && is_chosen(left) && is_chosen(right)
    }

    /// Whether an address is that of a local variable or a part of it.
    fn is_local<'b>(&'b self, mut address: &'b Operand) -> bool {
        while let Operand::Inst(id) = address {
            match self.instructions.get(id.index()).map(|inst| &inst.kind) {
                Some(
                    InstKind::FieldAddress { base, .. }
                    | InstKind::ElementAddress { base, .. }
                    | InstKind::ByteOffset { base, .. },
                ) => address = base,
                _ => return false,
            }
        }
        matches!(address, Operand::Slot(_))
    }

    /// Whether a jump leads to a block.
    pub fn is_reached(&self, block: BlockId) -> bool {
        self.blocks[block.index()].reached
    }

    /// The open block; `None` if emitted code is unreachable.
    pub fn current(&self) -> Option<BlockId> {
        self.current
    }

    /// Whether the end of a block leads to another one.
    pub fn leads_to(&self, block: BlockId, target: BlockId) -> bool {
        let end = self.blocks[block.index()].terminator.as_ref();
        end.is_some_and(|end| end.successors().any(|next| next == target))
    }

    /// The number of instructions and of slots so far.
    pub fn counts(&self) -> (usize, usize) {
        (self.instructions.len(), self.slots.len())
    }

    /// Changes all positions.
    pub fn for_each_span(&mut self, mut change: impl FnMut(&mut Span)) {
        self.instructions.iter_mut().for_each(|inst| change(&mut inst.span));
        self.blocks.iter_mut().filter_map(|block| block.end.as_mut()).for_each(&mut change);
        let variables = self.slots.iter_mut().filter_map(|slot| slot.variable.as_mut());
        variables.for_each(|variable| change(&mut variable.span));
        self.division_trap.iter_mut().for_each(|(_, span)| change(span));
    }

    /// Whether emitted code is reachable.
    pub fn is_live(&self) -> bool {
        self.current.is_some()
    }

    /// Adds an instruction and returns its value.
    pub fn emit(&mut self, kind: InstKind, ty: Type, span: Span) -> Operand {
        let Some(block) = self.current else {
            return Operand::Const(Const::Zero(ty));
        };
        let id = InstId(self.instructions.len() as u32);
        self.nonzero.retain(|known| !may_change(&kind, known));
        self.instructions.push(Inst { kind, ty, span });
        self.blocks[block.index()].instructions.push(id);
        Operand::Inst(id)
    }

    /// Continues in a block that only a test leads to, which has found that a divisor is not zero.
    pub(super) fn place_nonzero(&mut self, block: BlockId, divisor: &Operand) {
        let mut nonzero = std::mem::take(&mut self.nonzero);
        if nonzero.len() >= MOST_KNOWN {
            nonzero.clear();
        }
        nonzero.push(divisor.clone());
        nonzero.extend(self.variable_of(divisor));
        self.place(block);
        self.nonzero = nonzero;
    }

    /// Whether a test on the only way to here has found that a divisor is not zero.
    pub(super) fn is_known_nonzero(&self, divisor: &Operand) -> bool {
        let variable = self.variable_of(divisor);
        self.nonzero.iter().any(|known| known == divisor || Some(known) == variable.as_ref())
    }

    /// The slot that certainly still holds a value that was read from it.
    fn variable_of(&self, value: &Operand) -> Option<Operand> {
        let Operand::Inst(id) = value else { return None };
        let (load, later) = self.instructions.get(id.index()..)?.split_first()?;
        let InstKind::Load(slot @ Operand::Slot(_)) = &load.kind else { return None };
        let changes = |inst: &Inst| may_change(&inst.kind, slot);
        (later.len() <= MOST_BACK && !later.iter().any(changes)).then(|| slot.clone())
    }

    /// Reads a value of type `ty`.
    pub fn load(&mut self, pointer: Operand, ty: &Type, span: Span) -> Operand {
        self.emit(InstKind::Load(pointer), ty.clone(), span)
    }

    /// Writes a value.
    pub fn store(&mut self, pointer: Operand, value: Operand, span: Span) {
        if let Operand::Slot(slot) = &pointer {
            self.stored.insert(*slot, value.clone());
        }
        self.emit(InstKind::Store { pointer, value }, Type::Unit, span);
    }

    /// Ends the block; the builder is dead afterwards.
    pub fn terminate(&mut self, terminator: Terminator) {
        if let Some(block) = self.current.take() {
            for target in terminator.successors() {
                self.blocks[target.index()].reached = true;
            }
            self.blocks[block.index()].terminator = Some(terminator);
        }
    }

    /// Sets the position of the end of the open block, before it ends.
    pub fn end_at(&mut self, span: Span) {
        if let Some(block) = self.current {
            self.blocks[block.index()].end = Some(span);
        }
    }

    /// Ends the block with a jump.
    pub fn jump(&mut self, target: BlockId) {
        self.terminate(Terminator::Jump(target));
    }

    /// Ends the block with a branch, or with a jump if the condition is a constant or both targets are equal.
    pub fn branch(&mut self, condition: Operand, then: BlockId, otherwise: BlockId) {
        self.terminate(match condition {
            Operand::Const(Const::Bool(true)) => Terminator::Jump(then),
            Operand::Const(Const::Bool(false)) => Terminator::Jump(otherwise),
            _ if then == otherwise => Terminator::Jump(then),
            _ => Terminator::Branch { condition, then, otherwise },
        });
    }

    /// The function with this body; blocks are in the order of their placement.
    ///
    /// # Errors
    /// [`Error::Internal`] if a block was never placed, or has no end.
    pub fn finish(mut self, signature: Signature) -> Result<Function> {
        let mut new_ids = vec![None; self.blocks.len()];
        for (at, block) in self.order.iter().enumerate() {
            new_ids[block.index()] = Some(BlockId(at as u32));
        }
        let broken =
            |what: &str| Error::internal("ir", format!("function `{}`: {what}", signature.name));
        let new_id = |block: BlockId| {
            new_ids[block.index()].ok_or_else(|| broken("a block was never placed"))
        };
        let mut blocks: Vec<Block> = Vec::with_capacity(self.order.len());
        for id in self.order {
            let draft = &mut self.blocks[id.index()];
            let terminator = match &draft.terminator {
                Some(Terminator::Jump(target)) => Terminator::Jump(new_id(*target)?),
                Some(Terminator::Branch { condition, then, otherwise }) => Terminator::Branch {
                    condition: condition.clone(),
                    then: new_id(*then)?,
                    otherwise: new_id(*otherwise)?,
                },
                Some(other) => other.clone(),
                None => return Err(broken("a block has no terminator")),
            };
            let name = std::mem::take(&mut draft.name);
            let instructions = std::mem::take(&mut draft.instructions);
            let (end, unroll) = (draft.end, draft.unroll);
            blocks.push(Block { name, instructions, terminator, end, unroll });
        }
        Ok(Function {
            name: signature.name,
            role: signature.role,
            takes_geometry: signature.takes_geometry,
            parameters: signature.parameters,
            result: signature.result,
            slots: self.slots,
            instructions: self.instructions,
            blocks,
            addressed: vec![],
            span: signature.span,
        })
    }
}

/// Whether an instruction may change what a slot holds. No instruction changes other operands.
fn may_change(kind: &InstKind, known: &Operand) -> bool {
    if !matches!(known, Operand::Slot(_)) {
        return false;
    }
    match kind {
        InstKind::Store { pointer: slot @ Operand::Slot(_), .. } => slot == known,
        _ => kind.may_write(),
    }
}

/// A function without its body: see the fields of [`Function`].
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its symbol.
    pub name: String,
    /// Its purpose.
    pub role: Role,
    /// Whether the first parameter is the geometry.
    pub takes_geometry: bool,
    /// The parameters, the geometry first if it takes one.
    pub parameters: Vec<Parameter>,
    /// The result type.
    pub result: Type,
    /// The name in its declaration.
    pub span: Span,
}
