//! Rule 6: entries of kernels only wrap bodies.

use super::{Broken, FunctionVerifier};
use crate::ir::{InstKind, Kernel, Operand, Role, Terminator};
use crate::source::Span;

impl FunctionVerifier<'_> {
    /// Checks that the ordinary entry of a kernel reads the geometry and calls the body once, with its own parameters, and does
    /// nothing else. The `launch` stage changes entries.
    pub(super) fn check_entry(&self) -> std::result::Result<(), Broken> {
        let Role::Entry(id) = self.function.role else { return Ok(()) };
        let kernel = self.module.kernel(id);
        let is_ordinary = self.module.function(kernel.entry).name == self.function.name;
        if self.module.lowered || kernel.is_extern() || !is_ordinary {
            return Ok(());
        }
        let body = &self.module.function(kernel.body).name;
        let wrong = |why: &str, span: Span| {
            let message = format!(": an entry calls `{body}` once and does nothing else; {why}");
            Err(Broken { message, span })
        };
        let mut calls = 0;
        for id in self.function.blocks.iter().flat_map(|block| &block.instructions) {
            let inst = &self.function.instructions[id.index()];
            match &inst.kind {
                InstKind::HardwareGeometry => {}
                InstKind::Call { function, arguments } if *function == kernel.body => {
                    calls += 1;
                    if calls > 1 {
                        return wrong("this calls it again", inst.span);
                    }
                    if !passes_all(kernel, arguments) {
                        return wrong("this passes something else than its parameters", inst.span);
                    }
                }
                kind => {
                    return wrong(
                        &format!("this is a `{}`", super::instruction_name(kind)),
                        inst.span,
                    );
                }
            }
        }
        let end =
            self.function.blocks.iter().find(|block| block.terminator != Terminator::Return(None));
        if let Some(block) = end {
            return wrong("this one has several blocks", block.end.unwrap_or(self.function.span));
        }
        if calls == 0 {
            return wrong("this one does not call it", self.function.span);
        }
        Ok(())
    }
}

/// Whether a call passes the geometry and each parameter at its place.
fn passes_all(kernel: &Kernel, arguments: &[Operand]) -> bool {
    let Some((Operand::Inst(_), rest)) = arguments.split_first() else { return false };
    let own = (0..kernel.parameters.len() as u32).map(Operand::Parameter);
    own.eq(rest.iter().cloned())
}
