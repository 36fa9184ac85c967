//! The body of one function.

use std::collections::BTreeSet;

use super::{BodyBuilder, ProgramBuilder, Signature, analysis, nonzero, parameters_of};
use crate::check::tree::{self, Declared, LocalId};
use crate::error::{Error, Result};
use crate::ir::{BlockId, Const, Function, Operand, Parameter, Role, Slot, Terminator, Variable};
use crate::source::Span;
use crate::types::Type;

/// The location of a local variable.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// In a slot that has not been needed yet.
    Unused,
    /// In a slot, with this address.
    Memory(Operand),
    /// A parameter that is never written: its value.
    Value(Operand),
}

/// The targets of `break` and `continue`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) continue_to: BlockId,
    pub(super) break_to: BlockId,
}

/// The state of building one function.
pub(super) struct FunctionBuilder<'p, 't> {
    pub(super) program: &'p mut ProgramBuilder<'t>,
    /// The function's index in the tree.
    pub(super) index: usize,
    pub(super) source: &'t tree::Function,
    pub(super) body: BodyBuilder,
    pub(super) locals: Vec<Storage>,
    /// The enclosing loops, outermost first.
    pub(super) loops: Vec<Loop>,
    /// The variables that are never zero.
    pub(super) nonzero: BTreeSet<LocalId>,
}

/// Builds a device function or the body of a kernel.
pub(super) fn build(program: &mut ProgramBuilder<'_>, index: usize) -> Result<Function> {
    let source = &program.tree.functions[index];
    let target = &program.targets[index];
    let mut parameters = parameters_of(source);
    if target.takes_geometry {
        parameters.insert(0, Parameter { name: "geometry".into(), ty: Type::GEOMETRY });
    }
    let signature = Signature {
        name: target.name.clone(),
        role: target.kernel.map_or(Role::Device, Role::Body),
        takes_geometry: target.takes_geometry,
        parameters,
        result: source.result.clone(),
        span: source.span,
    };
    let mut function = FunctionBuilder {
        program,
        index,
        source,
        body: BodyBuilder::new(),
        locals: vec![],
        loops: vec![],
        nonzero: nonzero::variables(source),
    };
    function.declare_locals();
    function.build_body()?;
    function.body.finish(signature)
}

impl FunctionBuilder<'_, '_> {
    fn declare_locals(&mut self) {
        let source = self.source;
        let hidden = u32::from(self.takes_geometry());
        let mut spills = vec![];
        for (at, memory) in analysis::in_memory(source).into_iter().enumerate() {
            let local = &source.locals[at];
            let parameter = Operand::Parameter(at as u32 + hidden);
            if !memory {
                self.locals.push(Storage::Value(parameter));
                continue;
            }
            if at >= source.parameter_count {
                self.locals.push(Storage::Unused);
                continue;
            }
            let slot = self.slot_of(local, Some(at as u32 + hidden), false);
            spills.push((slot.clone(), parameter, local.span));
            self.locals.push(Storage::Memory(slot));
        }
        for (slot, parameter, span) in spills {
            self.body.store(slot, parameter, span);
        }
    }

    /// Adds the slot of a local variable and returns its address.
    pub(super) fn slot_of(
        &mut self,
        local: &tree::Local,
        parameter: Option<u32>,
        unset: bool,
    ) -> Operand {
        let variable = (local.declared != Declared::Checker).then(|| Variable {
            name: local.name.clone(),
            span: local.span,
            scope: Some(local.scope),
            parameter,
        });
        let (name, ty) = (local.name.clone(), local.ty.clone());
        self.body.add_slot(Slot { name, ty, unset, variable })
    }

    fn build_body(&mut self) -> Result<()> {
        let source = self.source;
        let value = self.block(&source.body)?;
        if self.body.is_live() {
            match value {
                _ if source.result == Type::Unit => self.body.terminate(Terminator::Return(None)),
                Some(value) => self.body.terminate(Terminator::Return(Some(value))),
                // The checker found a `return` on every path, so this is unreachable.
                None => self.trap(source.span),
            }
        }
        self.body.place_division_trap();
        Ok(())
    }

    pub(super) fn takes_geometry(&self) -> bool {
        self.program.targets[self.index].takes_geometry
    }

    /// The geometry, the first parameter.
    pub(super) fn geometry(&self) -> Result<Operand> {
        if self.takes_geometry() {
            Ok(Operand::Parameter(0))
        } else {
            Err(self.broken("the function reads the geometry but does not take it"))
        }
    }

    /// Emits a trap, which ends the block.
    pub(super) fn trap(&mut self, span: Span) {
        self.body.trap(span);
    }

    /// The statements of a block and its value, if it has one.
    pub(super) fn block(&mut self, block: &tree::Block) -> Result<Option<Operand>> {
        for statement in &block.statements {
            if !self.body.is_live() {
                return Ok(None);
            }
            self.statement(statement)?;
        }
        match &block.value {
            Some(value) if self.body.is_live() => self.lower(value),
            _ => Ok(None),
        }
    }

    /// A value for unreachable code.
    pub(super) fn placeholder(&self, ty: &Type) -> Result<Operand> {
        if self.body.is_live() {
            return Err(self.broken("a value is missing"));
        }
        Ok(Operand::Const(Const::Zero(ty.clone())))
    }

    /// The error for a tree that violates its invariants.
    pub(super) fn broken(&self, what: &str) -> Error {
        Error::internal("ir", format!("function `{}`: {what}", self.source.name))
    }
}
