//! What a checked image tells the device while it runs.

use gridlet_runtime::cpu::abi::{self, Callback};
use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, PointerValue};

use crate::builtins::{Builtin, Order};
use crate::codegen::function::FunctionEmitter;
use crate::codegen::types::Carrier;
use crate::codegen::values::pointer;
use crate::error::Result;
use crate::ir::{Block, Inst, InstKind, Operand, loops};
use crate::launch::symbols::RECORD_LOST_LAUNCH;
use crate::types::{Scalar, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    fn is_checked(&self) -> bool {
        // Nobody wrote that function, and its writes after an atomic cannot race.
        self.cx.cpu().is_some_and(|cpu| cpu.check) && self.function.name != RECORD_LOST_LAUNCH
    }

    /// Before an instruction: its access to memory, if it has one that could go wrong.
    pub(in crate::codegen) fn check_accesses(&self, inst: &Inst) -> Result<()> {
        if !self.is_checked() {
            return Ok(());
        }
        let (to, ty, kind) = match &inst.kind {
            InstKind::Load(from) => (from, inst.ty.clone(), abi::ACCESS_READ),
            InstKind::Store { pointer, value } => (pointer, self.type_of(value), abi::ACCESS_WRITE),
            InstKind::Builtin { builtin, arguments, .. } => match (builtin, arguments.first()) {
                (Builtin::Fence(_), _) => {
                    let null = self.cx.pointer_type().const_null().into();
                    return self.report(null, 0, abi::ACCESS_FENCE);
                }
                (Builtin::Atomic(..) | Builtin::AtomicCas(_), Some(to)) => {
                    (to, inst.ty.clone(), abi::ACCESS_ATOMIC)
                }
                (Builtin::AtomicLoad(order), Some(to)) => {
                    (to, inst.ty.clone(), abi::ACCESS_ATOMIC_LOAD | flags(*order))
                }
                (Builtin::AtomicStore(order), Some(to)) => {
                    let ty = arguments.get(1).map_or(Type::Unit, |value| self.type_of(value));
                    (to, ty, abi::ACCESS_ATOMIC_STORE | flags(*order))
                }
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        if self.is_own(to) {
            return Ok(());
        }
        self.check_part(pointer(self.operand(to)?)?, 0, &ty, kind)
    }

    /// Whether an address is surely that of a local variable or of a launch's parameter.
    fn is_own(&self, address: &Operand) -> bool {
        let Operand::Inst(id) = address else { return matches!(address, Operand::Slot(_)) };
        match self.function.instructions.get(id.index()).map(|inst| &inst.kind) {
            Some(InstKind::FieldAddress { base, .. }) => self.is_own(base),
            // Only the launch stage writes at offsets in bytes.
            Some(InstKind::ByteOffset { .. }) => true,
            _ => false,
        }
    }

    /// Tells of each scalar and vector of an access, whose alignment is known by their size, and of what is
    /// too wide for registers as a whole.
    fn check_part(
        &self,
        base: PointerValue<'ctx>,
        offset: u64,
        ty: &Type,
        kind: u32,
    ) -> Result<()> {
        let is_leaf = match ty {
            Type::Vector(scalar, count) => *count != 3 && *scalar != Scalar::Bool,
            Type::Struct(_) | Type::Array(..) => self.cx.carrier(ty) == Carrier::Memory,
            _ => true,
        };
        let size = u32::try_from(self.cx.size(ty)).unwrap_or(u32::MAX);
        if size == 0 {
            return Ok(());
        }
        if is_leaf {
            return self.report(self.offset(base, offset, "")?.into(), size, kind);
        }
        for index in 0..self.cx.part_count(ty) {
            let (part, at) = self.cx.part(ty, index)?;
            self.check_part(base, offset + at, &part, kind)?;
        }
        Ok(())
    }

    /// After a `malloc`.
    pub(super) fn check_malloc(
        &self,
        address: BasicValueEnum<'ctx>,
        bytes: BasicValueEnum<'ctx>,
    ) -> Result<()> {
        if !self.is_checked() {
            return Ok(());
        }
        let word = self.cx.int_type(32);
        let most = bytes.get_type().into_int_type().const_int(u64::from(u32::MAX), false);
        let bytes = bytes.into_int_value();
        let build = self.build();
        let fits = build.build_int_compare(IntPredicate::ULE, bytes, most, "")?;
        let bytes = build.build_select(fits, bytes, most, "")?.into_int_value();
        let bytes = build.build_int_truncate(bytes, word, "")?;
        let kind = self.word(abi::ACCESS_MALLOC);
        self.callback(Callback::CheckAccess, &[address, bytes.into(), kind, self.location()])?;
        Ok(())
    }

    /// Before a `free`.
    pub(super) fn check_free(&self, address: BasicValueEnum<'ctx>) -> Result<()> {
        if self.is_checked() { self.report(address, 0, abi::ACCESS_FREE) } else { Ok(()) }
    }

    fn report(&self, address: BasicValueEnum<'ctx>, bytes: u32, kind: u32) -> Result<()> {
        let arguments = [address, self.word(bytes), self.word(kind), self.location()];
        self.callback(Callback::CheckAccess, &arguments)?;
        Ok(())
    }

    /// By block, whether it tells the device each time that it is entered: heads of loops do if the image is
    /// checked, or if the loop may wait for another thread, which the device must let run.
    pub(in crate::codegen) fn polls(&self) -> Vec<bool> {
        match self.cx.cpu() {
            None => Vec::new(),
            Some(_) if self.is_checked() => loops::loop_heads(self.function),
            Some(_) => loops::waiting_heads(self.function),
        }
    }

    /// At the head of a loop.
    pub(in crate::codegen) fn emit_poll(&self, block: &Block) -> Result<()> {
        if let Some(&first) = block.instructions.first() {
            self.enter_instruction(first);
        }
        self.callback(Callback::Poll, &[self.location()])?;
        Ok(())
    }
}

/// What an order adds to the kind of an access.
fn flags(order: Order) -> u32 {
    match order {
        Order::Relaxed => 0,
        Order::Acquire => abi::ACCESS_ACQUIRE,
        Order::Release => abi::ACCESS_RELEASE,
    }
}
