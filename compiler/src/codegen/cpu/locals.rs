//! In checked images, registers local variables that pointers may reach, or parts of which may be
//! unset, with the device, and unregisters them on return; also reports early returns of kernels.

use gridlet_artifact::cpu::abi::{self, Callback, LOCAL_RED_ZONE_BYTES};
use inkwell::types::{BasicType, BasicTypeEnum};

use crate::codegen::function::FunctionEmitter;
use crate::error::Result;
use gridlet_lang::builtins::Memory;
use gridlet_lang::ir::{BlockId, InstKind, Operand, Role, Terminator, assigned};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// For each slot, whether its address escapes the analysis.
    pub(in crate::codegen) fn escaping_slots(&self) -> Vec<bool> {
        let mut escaping = vec![false; self.function.slots.len()];
        if !self.is_checked() {
            return escaping;
        }
        let mut escapes = |operand: &Operand| {
            if let Some(slot) = self.slot_of(operand)
                && let Some(escapes) = escaping.get_mut(slot.index())
            {
                *escapes = true;
            }
        };
        for (at, inst) in self.function.instructions.iter().enumerate() {
            match &inst.kind {
                InstKind::Load(_) => {}
                InstKind::Store { value, .. } => escapes(value),
                InstKind::FieldAddress { .. } => {}
                // An element of an array; any other use is pointer arithmetic.
                InstKind::ElementAddress { .. } if self.is_part(at) => {}
                InstKind::Builtin { builtin, arguments, .. }
                    if matches!(builtin.properties().memory, Memory::Atomic(_)) =>
                {
                    arguments.iter().skip(1).for_each(&mut escapes);
                }
                kind => kind.for_each_operand(&mut escapes),
            }
        }
        for block in &self.function.blocks {
            if let Terminator::Return(Some(value)) = &block.terminator {
                escapes(value);
            }
        }
        escaping
    }

    /// For each slot, whether it or parts of it may be read before they are set. `escaping` is of [`Self::escaping_slots`].
    pub(in crate::codegen) fn unset_slots(&self, escaping: &[bool]) -> Vec<bool> {
        if !self.is_checked() {
            return vec![false; self.function.slots.len()];
        }
        // Linked code may set a variable unseen.
        let is_linked = self.cx.is_linked();
        let mut by_parts = vec![false; self.function.slots.len()];
        let mut unseen = vec![false; self.function.slots.len()];
        for inst in &self.function.instructions {
            let mark = |marks: &mut [bool], operand: &Operand| {
                if let Some(slot) = self.slot_of(operand) {
                    marks[slot.index()] = true;
                }
            };
            match &inst.kind {
                InstKind::FieldAddress { base, .. } | InstKind::ElementAddress { base, .. } => {
                    mark(&mut by_parts, base);
                }
                InstKind::CallExtern { .. } => inst.kind.for_each_operand(|operand| {
                    mark(&mut unseen, operand);
                }),
                InstKind::Builtin { builtin, .. }
                    if matches!(builtin.properties().memory, Memory::Stream) =>
                {
                    inst.kind.for_each_operand(|operand| mark(&mut unseen, operand));
                }
                _ => {}
            }
        }
        let is_set = assigned::set_before_reads(self.function);
        let slots = self.function.slots.iter().zip(escaping).enumerate();
        slots
            .map(|(at, (slot, &escapes))| {
                let may_be = if escapes { !is_linked } else { by_parts[at] || !is_set[at] };
                slot.unset && may_be && !unseen[at]
            })
            .collect()
    }

    /// The type of a slot followed by its red zone.
    pub(in crate::codegen) fn guarded(&self, ty: BasicTypeEnum<'ctx>) -> BasicTypeEnum<'ctx> {
        let zone = self.cx.int_type(8).array_type(LOCAL_RED_ZONE_BYTES as u32);
        self.cx.context.struct_type(&[ty, zone.into()], false).as_basic_type_enum()
    }

    /// At the start of a function: registers variables and returns their number.
    pub(in crate::codegen) fn begin_locals(&self, registered: &[bool]) -> Result<u32> {
        let mut count = 0;
        let slots = self.function.slots.iter().zip(&self.slots).enumerate();
        for (at, (slot, &address)) in slots.filter(|(at, _)| registered[*at]) {
            let bytes = u32::try_from(self.cx.size(&slot.ty)).unwrap_or(u32::MAX);
            let name = self.cx.c_string("local", &slot.name).into();
            let arguments = [address.into(), self.word(bytes), name, self.location()];
            self.callback(Callback::LocalBegins, &arguments)?;
            if self.unset_slots[at] {
                self.report(address.into(), bytes, abi::ACCESS_UNSET)?;
            }
            count += 1;
        }
        Ok(count)
    }

    /// Before a return: unregisters the function's variables.
    pub(in crate::codegen) fn end_locals(&self) -> Result<()> {
        if self.registered_locals > 0 {
            self.callback(Callback::LocalsEnd, &[self.word(self.registered_locals)])?;
        }
        Ok(())
    }

    /// Before a return from block `id`: tells the device if a kernel returns from anywhere but its
    /// end. Blocks are in the order of the source, so the end is the last of them, apart from traps.
    pub(in crate::codegen) fn report_early_return(&self, id: BlockId) -> Result<()> {
        if !self.is_checked() || !matches!(self.function.role, Role::Body(_)) {
            return Ok(());
        }
        let later = id.index() + 1..self.function.blocks.len();
        if later.into_iter().any(|at| !self.is_division_trap(BlockId(at as u32))) {
            self.callback(Callback::ReturnsEarly, &[])?;
        }
        Ok(())
    }
}
