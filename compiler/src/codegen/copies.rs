//! Copies of vectors from memory to memory.
//!
//! libNVVM decides how often to unroll a loop by the number of its instructions. It counts an access to a struct as one
//! instruction, as in nvcc's code for CUDA's `float4`, but a vector as one more for each lane that is then read. A vector that
//! is only copied is therefore loaded and stored as a struct.

use inkwell::types::{BasicType as _, BasicTypeEnum};
use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use crate::error::Result;
use gridlet_lang::ir::{Function, InstId, InstKind, Operand, Terminator};
use gridlet_lang::types::Type;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Loads a vector that is only copied; `None` for everything else.
    pub(super) fn load_copied(
        &self,
        id: InstId,
        from: &Operand,
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let copied = self.copied.get_or_init(|| match self.cx.cpu() {
            Some(_) => Vec::new(),
            None => copied(self.function),
        });
        if !copied.get(id.index()).copied().unwrap_or(false) {
            return Ok(None);
        }
        let ty = &self.function.instructions[id.index()].ty;
        let BasicTypeEnum::VectorType(vector) = self.cx.value_type(ty)? else { return Ok(None) };
        let lanes = vec![vector.get_element_type(); vector.get_size() as usize];
        let whole = self.cx.context.struct_type(&lanes, false).as_basic_type_enum();
        let from = self.accessed(from)?;
        self.load_leaf(from, self.cx.alignment(ty), ty, whole, name).map(Some)
    }
}

/// Whether a value of this type can be copied as a struct. Vectors of narrower numbers are computed with two lanes at a time.
fn is_wide_vector(ty: &Type) -> bool {
    matches!(ty, Type::Vector(scalar, 2 | 4) if scalar.bits() >= 32)
}

/// By instruction, whether it loads a vector that is only stored elsewhere.
fn copied(function: &Function) -> Vec<bool> {
    let is_load = |kind: &InstKind| matches!(kind, InstKind::Load(_));
    let instructions = &function.instructions;
    let mut copied: Vec<bool> =
        instructions.iter().map(|inst| is_load(&inst.kind) && is_wide_vector(&inst.ty)).collect();
    let keep_whole = |copied: &mut Vec<bool>, operand: &Operand| {
        if let Operand::Inst(id) = operand {
            copied[id.index()] = false;
        }
    };
    for inst in instructions {
        match &inst.kind {
            InstKind::Store { pointer, value: _ } => keep_whole(&mut copied, pointer),
            kind => kind.for_each_operand(|operand| keep_whole(&mut copied, operand)),
        }
    }
    for block in &function.blocks {
        if let Terminator::Return(Some(value)) = &block.terminator {
            keep_whole(&mut copied, value);
        }
    }
    copied
}
