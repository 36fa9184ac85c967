//! `printf`: CUDA's `vprintf(format, buffer)` (CUDA Programming Guide, "Formatted Output"; PTX ISA,
//! "System Calls").

use gridlet_artifact::cpu::abi::Callback;
use inkwell::values::BasicValueEnum;

use super::bug;
use super::function::FunctionEmitter;
use super::values::result;
use crate::error::Result;
use gridlet_lang::ir::GlobalId;
use gridlet_lang::layout::buffer_layout;
use gridlet_lang::types::Type;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Emits a `printf`. The buffer holds the arguments in order, each at its natural alignment, as
    /// in a C struct.
    pub(super) fn printf(
        &self,
        format: GlobalId,
        values: &[BasicValueEnum<'ctx>],
        types: &[Type],
    ) -> Result<BasicValueEnum<'ctx>> {
        let format = self.cx.globals.get(format.index()).ok_or_else(|| bug("a missing format"))?;
        let layout = buffer_layout(types, &self.cx.ir.structs);
        let pointer = self.cx.pointer_type();
        let buffer = if types.is_empty() {
            pointer.const_null()
        } else {
            let alignment = u32::try_from(layout.alignment).unwrap_or(1);
            self.temporary(layout.size, alignment, "printf_arguments")?
        };
        for ((&value, ty), slot) in values.iter().zip(types).zip(&layout.slots) {
            self.store_part(buffer, slot.offset, value, ty)?;
        }
        if self.cx.cpu().is_some() {
            let arguments = [(*format).into(), buffer.into(), self.location()];
            return result(self.callback(Callback::Printf, &arguments)?);
        }
        let word = self.cx.int_type(32).into();
        let vprintf = self.cx.declare("vprintf", Some(word), &[pointer.into(); 2])?;
        result(self.emit_call(vprintf, &[(*format).into(), buffer.into()], "")?)
    }
}
