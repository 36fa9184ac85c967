//! Built-ins that need more than one callback: atomic accesses and assertions.

use gridlet_artifact::cpu::abi::Callback;
use inkwell::AtomicOrdering;
use inkwell::values::{BasicValue, BasicValueEnum, InstructionValue};

use crate::codegen::bug;
use crate::codegen::function::{FunctionEmitter, set_alignment};
use crate::codegen::values::{int, pointer};
use crate::error::Result;
use gridlet_lang::builtins::Order;
use gridlet_lang::types::Type;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Reads a 32- or 64-bit number.
    pub(super) fn cpu_atomic_load(
        &self,
        order: Order,
        address: BasicValueEnum<'ctx>,
        ty: &Type,
    ) -> Result<BasicValueEnum<'ctx>> {
        let bits = self.cx.int_type(self.cx.size(ty) as u32 * 8);
        let loaded = self.build().build_load(bits, pointer(address)?, "")?;
        let load = loaded
            .as_instruction_value()
            .ok_or_else(|| bug("a load that is not an instruction"))?;
        make_atomic(load, order, self.cx.alignment(ty))?;
        Ok(self.build().build_bit_cast(loaded, self.cx.value_type(ty)?, "")?)
    }

    /// Writes a 32- or 64-bit number.
    pub(super) fn cpu_atomic_store(
        &self,
        order: Order,
        address: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
    ) -> Result<()> {
        let value = self.number_bits(value)?;
        let bytes = int(value)?.get_type().get_bit_width() / 8;
        let store = self.build().build_store(pointer(address)?, value)?;
        make_atomic(store, order, bytes)
    }

    /// Reports a failed assertion, and ends the grid.
    pub(super) fn cpu_assert(&self, arguments: [BasicValueEnum<'ctx>; 4]) -> Result<()> {
        let [message, file, line, function] = arguments;
        let thread = self.known_thread()?;
        let arguments = [message, file, line, function, self.location(), thread];
        self.callback(Callback::AssertFail, &arguments)?;
        Ok(())
    }
}

fn make_atomic(access: InstructionValue<'_>, order: Order, alignment: u32) -> Result<()> {
    let ordering = match order {
        Order::Relaxed => AtomicOrdering::Monotonic,
        Order::Acquire => AtomicOrdering::Acquire,
        Order::Release => AtomicOrdering::Release,
    };
    set_alignment(access, alignment)?;
    let set = access.set_atomic_ordering(ordering);
    set.map_err(|error| bug(format!("an atomic access: {error}")))
}
