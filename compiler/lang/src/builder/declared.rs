//! The ids that a [`ProgramBuilder`](super::ProgramBuilder) gives out. Those of different programs have different numbers, so
//! that a program notices those of another one, which would otherwise be some kernel, function or variable of its own.

use super::handles::Handles;
use crate::ir::{
    Const, ExternId, Function, FunctionId, GlobalId, InstKind, KernelId, Operand, Terminator,
};
use crate::source::{FileId, Span};
use crate::types::{FOREIGN, Type};

/// What a program has declared.
#[derive(Clone, Copy)]
pub(super) struct Declared {
    pub(super) handles: Handles,
    pub(super) kernels: usize,
    pub(super) functions: usize,
    pub(super) variables: usize,
    pub(super) externs: usize,
    pub(super) files: usize,
}

impl Declared {
    /// The index of a number that the program gave out, or [`FOREIGN`].
    fn index(self, number: u32, given: usize) -> u32 {
        self.handles.take(number, given).map_or(FOREIGN, |index| index as u32)
    }

    pub(super) fn kernel(self, id: KernelId) -> KernelId {
        KernelId(self.index(id.0, self.kernels))
    }

    pub(super) fn function(self, id: FunctionId) -> FunctionId {
        FunctionId(self.index(id.0, self.functions))
    }

    fn external(self, id: ExternId) -> ExternId {
        ExternId(self.index(id.0, self.externs))
    }

    fn variable(self, id: GlobalId) -> GlobalId {
        GlobalId(self.index(id.0, self.variables))
    }

    pub(super) fn file(self, id: FileId) -> FileId {
        FileId(self.index(id.0, self.files))
    }

    /// A position in the finished program.
    pub(super) fn place(self, span: &mut Span) {
        if *span != Span::NOWHERE {
            span.file = self.file(span.file);
        }
    }

    /// Makes indices of all ids in a function; `settle` does so for those of structs.
    pub(super) fn settle(self, function: &mut Function, settle: impl Fn(&mut Type)) {
        let operand = |operand: &mut Operand| match operand {
            Operand::Global(id) => *id = self.variable(*id),
            Operand::Kernel(id) => *id = self.kernel(*id),
            Operand::Const(Const::Zero(ty)) => settle(ty),
            _ => {}
        };
        function.slots.iter_mut().for_each(|slot| settle(&mut slot.ty));
        for inst in &mut function.instructions {
            settle(&mut inst.ty);
            inst.kind.for_each_operand_mut(operand);
            match &mut inst.kind {
                InstKind::Call { function, .. } => *function = self.function(*function),
                InstKind::CallExtern { function, .. } => *function = self.external(*function),
                InstKind::Launch(launch) => launch.kernel = self.kernel(launch.kernel),
                InstKind::Builtin { format: Some(format), .. } => *format = self.variable(*format),
                _ => {}
            }
        }
        for block in &mut function.blocks {
            match &mut block.terminator {
                Terminator::Branch { condition: value, .. } | Terminator::Return(Some(value)) => {
                    operand(value);
                }
                _ => {}
            }
        }
    }
}
