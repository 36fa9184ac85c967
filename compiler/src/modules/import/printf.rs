//! `vprintf(format, buffer)`, CUDA's `printf` (CUDA Programming Guide, "Formatted Output"): the language's `printf` with the
//! arguments that the format's conversions find in the buffer.

use gridlet_lang::builtins::Builtin;
use gridlet_lang::check::printf::passed_types;
use gridlet_lang::ir::{Const, GlobalId, Init, InstKind, Operand, Space};
use gridlet_lang::layout::buffer_layout;
use gridlet_lang::types::{Scalar, Type};
use inkwell::llvm_sys::LLVMOpcode;

use super::Step;
use super::body::Body;
use crate::modules::layout::{Offset, offsets, pointer};
use crate::nvvm::legacy::llvm::{Kind, Value};

impl<'m> Body<'_, 'm> {
    pub(super) fn vprintf(&mut self, value: Value<'m>) -> Step<Operand> {
        let (format, buffer) = (value.operand(0), value.operand(1));
        let (id, text) =
            self.constant_text(format).ok_or("`vprintf` whose format is not a constant string")?;
        let types = passed_types(&text)
            .ok_or_else(|| format!("`vprintf` with the format \"{}\"", text.escape_debug()))?;
        let buffer = self.operand(buffer)?;
        let mut arguments = vec![];
        for (ty, slot) in
            types.iter().zip(&buffer_layout(&types, &self.importer.types.structs).slots)
        {
            let index = Operand::Const(Const::Int(Scalar::I64, i128::from(slot.offset)));
            let base = buffer.clone();
            let place = self.emit(InstKind::ElementAddress { base, index }, pointer());
            let place = self.cast(place, &pointer(), &Type::pointer_mut(ty.clone()));
            arguments.push(self.emit(InstKind::Load(place), ty.clone()));
        }
        let builtin = Builtin::Printf;
        let printed = InstKind::Builtin { builtin, arguments, format: Some(id) };
        let count = self.emit(printed, Type::I32);
        let wanted = self.type_of(value)?;
        Ok(self.cast(count, &Type::I32, &wanted))
    }

    /// The variable with a constant string whose address is `value`, and the string.
    fn constant_text(&self, value: Value<'m>) -> Option<(GlobalId, String)> {
        let mut value = value;
        loop {
            let opcode = match value.kind() {
                Kind::Expression => value.constant_opcode(),
                Kind::Instruction => value.opcode(),
                _ => break,
            };
            let is_same = match opcode {
                LLVMOpcode::LLVMBitCast | LLVMOpcode::LLVMAddrSpaceCast => true,
                LLVMOpcode::LLVMGetElementPtr => {
                    offsets(value)?.iter().all(|part| matches!(part, Offset::Bytes(0)))
                }
                _ => false,
            };
            value = is_same.then(|| value.operand(0))?;
        }
        let is_variable = value.kind() == Kind::Variable;
        let (id, _) = is_variable.then(|| self.importer.address(value))?.ok()??;
        let global = &self.importer.globals[id.index()];
        let Init::Bytes(bytes) = &global.init else { return None };
        let is_text = global.space == Space::Constant && bytes.last() == Some(&0);
        let text = bytes.split(|byte| *byte == 0).next().filter(|_| is_text)?;
        Some((id, String::from_utf8(text.to_vec()).ok()?))
    }
}
