//! Functions: blocks, their order, and `phi`.

use std::collections::{HashMap, HashSet};

use gridlet_lang::ir::build::{BodyBuilder, Signature};
use gridlet_lang::ir::{BlockId, Const, Function, InstKind, Operand, Role, Terminator};
use gridlet_lang::operators::BinaryOp;
use gridlet_lang::source::Span;
use gridlet_lang::types::{Scalar, Type};
use inkwell::llvm_sys::LLVMOpcode;

use super::atomics::words;
use super::{Importer, Missing, Step};
use crate::modules::kernels::{self, name};
use crate::nvvm::legacy::llvm::{Block, Value};

/// A function that is being imported.
pub(super) struct Body<'i, 'm> {
    pub(super) importer: &'i mut Importer<'m>,
    pub(super) builder: BodyBuilder,
    pub(super) values: HashMap<Value<'m>, Operand>,
    pub(super) span: Span,
    blocks: HashMap<Block<'m>, BlockId>,
    /// The slot of each `phi`.
    phis: HashMap<Value<'m>, Operand>,
    /// The number of cases of `switch`es so far.
    cases: u32,
}

/// Imports a function.
pub(super) fn build<'m>(
    importer: &mut Importer<'m>,
    function: Value<'m>,
    signature: Signature,
) -> std::result::Result<Function, (Missing, Span)> {
    let span = signature.span;
    let mut body = Body {
        importer,
        builder: BodyBuilder::new(),
        values: HashMap::new(),
        span,
        blocks: HashMap::new(),
        phis: HashMap::new(),
        cases: 0,
    };
    let emitted = body.emit_all(function, &signature);
    emitted.map_err(|why| (why, body.span))?;
    body.builder.finish(signature).map_err(|error| (error.to_string(), span))
}

fn is_phi(instruction: &Value<'_>) -> bool {
    instruction.opcode() == LLVMOpcode::LLVMPHI
}

/// The blocks that can be reached, each after those that dominate it.
fn order(function: Value<'_>) -> Vec<Block<'_>> {
    let Some(&entry) = function.blocks().first() else { return vec![] };
    // Post-order without recursion, reversed.
    let (mut seen, mut done) = (HashSet::from([entry]), vec![]);
    let mut open = vec![(entry, successors(entry))];
    while let Some((block, rest)) = open.last_mut() {
        match rest.pop() {
            Some(next) if seen.insert(next) => {
                let more = successors(next);
                open.push((next, more));
            }
            Some(_) => {}
            None => {
                done.push(*block);
                open.pop();
            }
        }
    }
    done.reverse();
    done
}

fn successors(block: Block<'_>) -> Vec<Block<'_>> {
    block.instructions().last().map_or_else(Vec::new, |last| last.successors())
}

impl<'m> Body<'_, 'm> {
    pub(super) fn emit(&mut self, kind: InstKind, ty: Type) -> Operand {
        self.builder.emit(kind, ty, self.span)
    }

    /// The IR's type of a value in a register.
    pub(super) fn type_of(&mut self, value: Value<'m>) -> Step<Type> {
        let ty = value.ty();
        self.importer.types.value(ty).ok_or_else(|| format!("a value of type `{}`", ty.print()))
    }

    /// Converts a value between types of the same bits.
    pub(super) fn cast(&mut self, value: Operand, from: &Type, to: &Type) -> Operand {
        if from == to { value } else { self.emit(InstKind::Cast(value), to.clone()) }
    }

    fn parameters(&mut self, function: Value<'m>, signature: &Signature) -> Step<()> {
        let described = kernels::parameters(function);
        let is_kernel = matches!(signature.role, Role::Body(_));
        for (at, value) in function.parameters().into_iter().enumerate() {
            let operand = Operand::Parameter(at as u32 + 1);
            let given = signature.parameters[at + 1].ty.clone();
            let wanted = self.type_of(value)?;
            let operand = if is_kernel && described[at].is_copied {
                let slot = self.builder.slot(&described[at].name, given.clone());
                self.builder.store(slot.clone(), operand, self.span);
                self.cast(slot, &Type::pointer_mut(given), &wanted)
            } else {
                self.cast(operand, &given, &wanted)
            };
            self.values.insert(value, operand);
        }
        Ok(())
    }

    /// Emits the code of all blocks that can be reached.
    fn emit_all(&mut self, function: Value<'m>, signature: &Signature) -> Step<()> {
        self.parameters(function, signature)?;
        let order = order(function);
        for block in &order {
            let id = self.builder.block(format!("b{}", self.blocks.len()));
            self.blocks.insert(*block, id);
            for phi in block.instructions().into_iter().filter(is_phi) {
                let ty = self.type_of(phi)?;
                let slot = self.builder.slot(&format!("phi{}", self.phis.len()), ty);
                self.phis.insert(phi, slot);
            }
        }
        if let Some(first) = order.first() {
            self.builder.jump(self.blocks[first]);
        }
        let lines = self.importer.positions.instructions(&name(function), function);
        for block in order {
            self.builder.place(self.blocks[&block]);
            self.block(block, &lines)?;
        }
        self.builder.place_division_trap();
        Ok(())
    }

    fn block(&mut self, block: Block<'m>, lines: &HashMap<Value<'m>, Span>) -> Step<()> {
        let instructions = block.instructions();
        for &phi in instructions.iter().filter(|instruction| is_phi(instruction)) {
            let ty = self.type_of(phi)?;
            let value = self.emit(InstKind::Load(self.phis[&phi].clone()), ty);
            self.values.insert(phi, value);
        }
        for instruction in instructions.into_iter().filter(|instruction| !is_phi(instruction)) {
            if let Some(span) = lines.get(&instruction) {
                self.span = *span;
            }
            let shown = |why: String| {
                let text = instruction.print();
                let text: String = text.chars().take(120).collect();
                if why.contains('\n') { why } else { format!("{why}\n  {text}") }
            };
            let is_end = matches!(
                instruction.opcode(),
                LLVMOpcode::LLVMRet
                    | LLVMOpcode::LLVMUnreachable
                    | LLVMOpcode::LLVMBr
                    | LLVMOpcode::LLVMSwitch
            );
            if is_end {
                self.leave(block, instruction).map_err(shown)?;
            } else if let Some(value) = self.instruction(instruction).map_err(shown)? {
                self.values.insert(instruction, value);
            }
        }
        Ok(())
    }

    /// Stores the values for the `phi`s of the next blocks, and ends the block.
    fn leave(&mut self, block: Block<'m>, end: Value<'m>) -> Step<()> {
        let next = end.successors();
        let mut stores = vec![];
        for phi in next.iter().flat_map(|next| next.instructions()).filter(is_phi) {
            let incoming = phi.incoming().into_iter().find(|(_, from)| *from == block);
            if let Some((value, _)) = incoming {
                let value = self.operand(value)?;
                stores.push((self.phis[&phi].clone(), value));
            }
        }
        for (slot, value) in stores {
            self.builder.store(slot, value, self.span);
        }
        self.builder.end_at(self.span);
        match end.opcode() {
            LLVMOpcode::LLVMRet => {
                let value = match end.operand_count() {
                    0 => None,
                    _ => Some(self.operand(end.operand(0))?),
                };
                self.builder.terminate(Terminator::Return(value));
            }
            LLVMOpcode::LLVMUnreachable => self.builder.terminate(Terminator::Unreachable),
            LLVMOpcode::LLVMSwitch => self.switch(end)?,
            _ => match (end.condition(), &next[..]) {
                (Some(condition), [then, otherwise]) => {
                    let condition = self.operand(condition)?;
                    self.builder.branch(condition, self.blocks[then], self.blocks[otherwise]);
                }
                (_, [target]) => self.builder.jump(self.blocks[target]),
                _ => return Err(format!("the instruction `{}`", words(end, 1))),
            },
        }
        Ok(())
    }

    /// A `switch` as a chain of branches.
    fn switch(&mut self, switch: Value<'m>) -> Step<()> {
        let value = self.operand(switch.operand(0))?;
        let targets = switch.successors();
        let default = self.blocks[&targets[0]];
        for (at, target) in (1..).zip(&targets[1..]) {
            let case = self.operand(switch.case(at))?;
            let equal = self.emit(InstKind::Binary(BinaryOp::Eq, value.clone(), case), Type::BOOL);
            let next = self.builder.block(format!("case{}", self.cases));
            self.cases += 1;
            self.builder.branch(equal, self.blocks[target], next);
            self.builder.place(next);
            self.builder.end_at(self.span);
        }
        self.builder.jump(default);
        Ok(())
    }

    /// An unsigned integer constant.
    pub(super) fn number(scalar: Scalar, value: u64) -> Operand {
        Operand::Const(Const::Int(scalar, i128::from(value)))
    }
}
