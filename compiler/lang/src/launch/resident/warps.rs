//! Warp operations in the code of kernels that the resident kernel runs.
//!
//! A warp of the resident kernel may have lanes without a thread of the block, and lanes whose thread has returned, so the scheduler
//! says which lanes of a mask run an operation. Where threads may return before others come to an operation, that is work, but
//! most operations name all lanes, and all lanes are there:
//! ```text
//!   %4: u32 = active_mask
//!   %5: bool = eq %4, 0xffffffff
//!   branch %5, warp.whole, warp.part
//! warp.whole:
//!   %6: u32 = shfl 0xffffffff, %1, %2
//!   store $warp, %6
//!   jump warp.next
//! warp.part:
//!   %7: u32 = call @gridlet.meet(0xffffffff)
//!   %8: u32 = shfl %7, %1, %2
//!   store $warp, %8
//!   jump warp.next
//! warp.next:
//!   %3: u32 = load $warp
//! ```
//! Each lane that finds all others at the same instruction comes to the operation before it can return. That is not so in a function
//! of the scheduler, where lanes may be on their way to different operations.
//!
//! For a mask that is not a constant, ptxas adds code that runs the operation once for each mask that occurs; a sequence of
//! operations with the same mask has it once. Together, that and the work of the scheduler took a fifth of a quicksort's time (H100,
//! CUDA 13.0). Where no thread returns early, the branches cost more than they save: an adaptive refinement took 20 % longer.

use std::collections::BTreeSet;

use super::plan::takes_mask;
use crate::builtins::Builtin;
use crate::ir::uniform::ALL_LANES;
use crate::ir::{
    BinaryOp, Block, BlockId, Function, FunctionId, Inst, InstId, InstKind, Operand, Slot, SlotId,
    Terminator,
};
use crate::source::Span;
use crate::types::Type;

/// How many blocks replace the rest of a block behind an operation that names all lanes.
const ADDED: u32 = 3;

/// Rewrites the warp operations of a function. `lanes` is the scheduler's function from a mask to the lanes that run an operation;
/// in it they may `meet`, which is work.
pub(super) fn rewrite(function: &mut Function, lanes: FunctionId, meets: bool) {
    if !function.instructions.iter().any(|inst| takes_mask(&inst.kind)) {
        return;
    }
    let old = std::mem::take(&mut function.blocks);
    let splits = |id: &&InstId| meets && names_all(&function.instructions[id.index()].kind);
    let mut next = 0;
    let mut starts = Vec::with_capacity(old.len());
    for block in &old {
        starts.push(BlockId(next));
        next += 1 + ADDED * block.instructions.iter().filter(splits).count() as u32;
    }
    let names = old.iter().map(|block| block.name.clone()).collect();
    let mut rewriter = Rewriter { function, lanes, blocks: vec![], open: vec![], names, number: 0 };
    for block in old {
        let at = |id: BlockId| starts[id.index()];
        let terminator = match block.terminator {
            Terminator::Jump(to) => Terminator::Jump(at(to)),
            Terminator::Branch { condition, then, otherwise } => {
                Terminator::Branch { condition, then: at(then), otherwise: at(otherwise) }
            }
            other => other,
        };
        let first = rewriter.blocks.len();
        let mut name = block.name;
        for id in block.instructions {
            let kind = &rewriter.function.instructions[id.index()].kind;
            if meets && names_all(kind) {
                name = rewriter.split(id, name);
            } else if takes_mask(kind) {
                rewriter.ask(id);
            } else {
                rewriter.open.push(id);
            }
        }
        rewriter.close(name, terminator);
        // A loop starts where its first block does; the end of the old block is that of its last.
        rewriter.blocks[first].unroll = block.unroll;
        if let Some(last) = rewriter.blocks.last_mut() {
            last.end = block.end;
        }
    }
    function.blocks = rewriter.blocks;
}

/// Whether an instruction is a warp operation of all lanes.
fn names_all(kind: &InstKind) -> bool {
    match kind {
        InstKind::Builtin { arguments, .. } => {
            takes_mask(kind) && arguments.first() == Some(&ALL_LANES)
        }
        _ => false,
    }
}

struct Rewriter<'f> {
    function: &'f mut Function,
    lanes: FunctionId,
    blocks: Vec<Block>,
    /// The instructions of the open block.
    open: Vec<InstId>,
    names: BTreeSet<String>,
    number: u32,
}

impl Rewriter<'_> {
    /// Replaces an operation of all lanes. `name` is the open block's; gives that of the next one.
    fn split(&mut self, id: InstId, name: String) -> String {
        let Inst { kind, ty, span } = self.function.instructions[id.index()].clone();
        let InstKind::Builtin { builtin, arguments, format } = kind else { return name };
        let [whole, part, next] = self.fresh_names();
        let to = [1, 2, 3].map(|at| BlockId(self.blocks.len() as u32 + at));
        let result = (ty != Type::Unit).then(|| Operand::Slot(self.slot(&ty)));
        let active =
            InstKind::Builtin { builtin: Builtin::ActiveMask, arguments: vec![], format: None };
        let active = self.emit(active, Type::U32, span);
        let all = InstKind::Binary(BinaryOp::Eq, active, ALL_LANES);
        let all = self.emit(all, Type::BOOL, span);
        self.close(name, Terminator::Branch { condition: all, then: to[0], otherwise: to[1] });
        for (name, is_whole) in [(whole, true), (part, false)] {
            let mut arguments = arguments.clone();
            if !is_whole {
                arguments[0] = self.call_lanes(ALL_LANES, span);
            }
            let kind = InstKind::Builtin { builtin, arguments, format };
            match result.clone() {
                Some(pointer) => {
                    let value = self.emit(kind, ty.clone(), span);
                    self.emit(InstKind::Store { pointer, value }, Type::Unit, span);
                }
                None if is_whole => self.open.push(id),
                None => {
                    self.emit(kind, Type::Unit, span);
                }
            }
            self.close(name, Terminator::Jump(to[2]));
        }
        if let Some(pointer) = result {
            self.function.instructions[id.index()].kind = InstKind::Load(pointer);
            self.open.push(id);
        }
        next
    }

    /// Replaces the mask of an operation of some lanes.
    fn ask(&mut self, id: InstId) {
        let Inst { kind, span, .. } = &self.function.instructions[id.index()];
        let (InstKind::Builtin { arguments, .. }, span) = (kind, *span) else { return };
        let lanes = self.call_lanes(arguments[0].clone(), span);
        if let InstKind::Builtin { arguments, .. } =
            &mut self.function.instructions[id.index()].kind
        {
            arguments[0] = lanes;
        }
        self.open.push(id);
    }

    fn call_lanes(&mut self, mask: Operand, span: Span) -> Operand {
        let kind = InstKind::Call { function: self.lanes, arguments: vec![mask] };
        self.emit(kind, Type::U32, span)
    }

    fn emit(&mut self, kind: InstKind, ty: Type, span: Span) -> Operand {
        let id = InstId(self.function.instructions.len() as u32);
        self.function.instructions.push(Inst { kind, ty, span });
        self.open.push(id);
        Operand::Inst(id)
    }

    fn slot(&mut self, ty: &Type) -> SlotId {
        let (name, ty) = ("warp".into(), ty.clone());
        self.function.slots.push(Slot { name, ty, unset: false, variable: None });
        SlotId(self.function.slots.len() as u32 - 1)
    }

    fn close(&mut self, name: String, terminator: Terminator) {
        let instructions = std::mem::take(&mut self.open);
        self.blocks.push(Block { name, instructions, terminator, end: None, unroll: None });
    }

    fn fresh_names(&mut self) -> [String; 3] {
        loop {
            self.number += 1;
            let names = ["whole", "part", "next"].map(|name| match self.number {
                1 => format!("warp.{name}"),
                number => format!("warp.{name}.{number}"),
            });
            if names.iter().all(|name| !self.names.contains(name)) {
                return names;
            }
        }
    }
}
