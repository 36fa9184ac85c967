//! The functions other than `vprintf` that every CUDA device provides: the heap and assertions
//! (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations" and "Assertion";
//! PTX ISA, "System Calls").

use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use super::values::result;
use crate::error::Result;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// `malloc(bytes)`
    pub(super) fn malloc(&self, bytes: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let pointer = self.cx.pointer_type();
        let function = self.cx.declare("malloc", Some(pointer.into()), &[bytes.get_type()])?;
        result(self.emit_call(function, &[bytes], "")?)
    }

    /// `__assertfail(message, file, line, function, bytes per character)`: prints a message and
    /// stops the grid.
    pub(super) fn assert_fail(
        &self,
        message: BasicValueEnum<'ctx>,
        file: BasicValueEnum<'ctx>,
        line: BasicValueEnum<'ctx>,
        function: BasicValueEnum<'ctx>,
    ) -> Result<()> {
        let character_size = self.cx.int_type(64).const_int(1, false).into();
        self.effect("__assertfail", &[message, file, line, function, character_size])?;
        Ok(())
    }
}
