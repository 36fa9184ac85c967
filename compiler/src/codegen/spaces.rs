//! Addresses in the global address space.
//!
//! The code of the resident kernel reads the parameters of kernels from memory, so libNVVM does not know that they point to
//! global memory, and ptxas makes generic accesses: atomics begin with a test for shared memory. Casts of the parameters do not
//! help: libNVVM drops them, or takes minutes. So each access gets an address of its own.
//!
//! In other code LLVM and libNVVM find out by themselves, except for the addresses of assembly, whose text they cannot change.

use inkwell::AddressSpace;
use inkwell::values::PointerValue;

use super::function::FunctionEmitter;
use super::globals::GLOBAL;
use super::values::pointer;
use crate::error::Result;
use gridlet_lang::ir::{InstKind, Operand};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// The address of an access, in the global address space if it is certainly there.
    pub(super) fn accessed(&self, address: &Operand) -> Result<PointerValue<'ctx>> {
        if self.cx.ir.resident.is_some() && self.cx.is_global(self.id, address) {
            return self.in_global(address);
        }
        pointer(self.operand(address)?)
    }

    /// The address of an access that is assembly, in the global address space if it is certainly there.
    pub(super) fn accessed_by_assembly(&self, address: &Operand) -> Result<PointerValue<'ctx>> {
        if self.cx.ir.resident.is_some() || !self.cx.is_global(self.id, address) {
            return self.accessed(address);
        }
        self.cast_to_global(address)
    }

    /// An address in the global address space, computed there, so that the instruction can add a constant offset.
    fn in_global(&self, address: &Operand) -> Result<PointerValue<'ctx>> {
        if let Operand::Inst(id) = address {
            let inst = &self.function.instructions[id.index()];
            let base = match &inst.kind {
                InstKind::FieldAddress { base, .. }
                | InstKind::ElementAddress { base, .. }
                | InstKind::ByteOffset { base, .. }
                | InstKind::Cast(base) => Some(base),
                _ => None,
            };
            if let Some(base) = base
                && self.cx.is_global(self.id, base)
            {
                return self.moved(self.in_global(base)?, inst);
            }
        }
        self.cast_to_global(address)
    }

    fn cast_to_global(&self, address: &Operand) -> Result<PointerValue<'ctx>> {
        let global = self.cx.context.ptr_type(AddressSpace::from(GLOBAL));
        Ok(self.build().build_address_space_cast(pointer(self.operand(address)?)?, global, "")?)
    }
}
