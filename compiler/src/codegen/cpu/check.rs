//! Calls by which a checked image reports its actions to the device.

use gridlet_artifact::cpu::abi::{self, Callback};
use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, PointerValue};

use super::variables::source_name;
use crate::codegen::bug;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::types::Carrier;
use crate::codegen::values::pointer;
use crate::error::Result;
use gridlet_lang::builtins::{Access, Builtin, Memory, Order, Scope};
use gridlet_lang::ir::{
    Block, Const, Function, FunctionId, Inst, InstId, InstKind, Operand, Role, SlotId,
    guards::stored_once, loops, loops::LoopEnd, same_type,
};
use gridlet_lang::launch::RECORD_LOST_LAUNCH;
use gridlet_lang::types::{Scalar, Type};

impl<'a, 'ctx> FunctionEmitter<'a, 'ctx, '_> {
    pub(super) fn is_checked(&self) -> bool {
        // The compiler adds that function itself, and its writes after an atomic cannot race.
        self.cx.cpu().is_some_and(|cpu| cpu.check) && self.function.name != RECORD_LOST_LAUNCH
    }

    /// Before an instruction that accesses memory: reports the access, unless it cannot go wrong.
    pub(in crate::codegen) fn check_accesses(&self, inst: &Inst) -> Result<()> {
        if !self.is_checked() {
            return Ok(());
        }
        let (to, ty, kind) = match &inst.kind {
            InstKind::Load(from) => (from, inst.ty.clone(), abi::ACCESS_READ),
            InstKind::Store { pointer, value } => (pointer, self.type_of(value), abi::ACCESS_WRITE),
            InstKind::Builtin { builtin, arguments, .. } => match builtin.properties().memory {
                Memory::Fence => {
                    let null = self.cx.pointer_type().const_null().into();
                    return self.report(null, 0, abi::ACCESS_FENCE | scope(*builtin));
                }
                Memory::Atomic(access) => {
                    let Some(to) = arguments.first() else { return Ok(()) };
                    let written = arguments.get(1).map_or(Type::Unit, |value| self.type_of(value));
                    let (ty, kind) = match access {
                        Access::Load => (inst.ty.clone(), abi::ACCESS_ATOMIC_LOAD),
                        Access::Store => (written, abi::ACCESS_ATOMIC_STORE),
                        Access::Update => (inst.ty.clone(), abi::ACCESS_ATOMIC),
                    };
                    (to, ty, kind | builtin.order().map_or(0, flags) | scope(*builtin))
                }
                // The device checks the heap and the work of streams itself.
                Memory::None | Memory::Heap | Memory::Strings | Memory::Stream => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.check_indices(to, kind)?;
        if let Some(slot) = self.slot_of(to) {
            // A copy of a struct or array may have unset parts, as long as nothing reads these.
            let is_copy = matches!(inst.kind, InstKind::Load(_))
                && matches!(ty, Type::Struct(_) | Type::Array(..));
            if !self.unset_slots[slot.index()] || is_copy {
                return Ok(());
            }
        }
        let kind = kind | self.parameter_flag(to);
        self.check_part(pointer(self.operand(to)?)?, 0, &ty, kind)
    }

    /// By slot, its only value, if the function is a body whose kernel promises that its pointers do not overlap.
    pub(in crate::codegen) fn noalias_slots(&self) -> Vec<Option<Operand>> {
        match self.function.role {
            Role::Body(kernel) if self.is_checked() && self.cx.ir.kernel(kernel).noalias => {
                stored_once(self.function)
            }
            _ => Vec::new(),
        }
    }

    /// The bits of an access with the parameter that an address surely comes from, if its kernel promises that its pointers
    /// do not overlap.
    fn parameter_flag(&self, address: &Operand) -> u32 {
        let Role::Body(kernel) = self.function.role else { return 0 };
        if !self.cx.ir.kernel(kernel).noalias {
            return 0;
        }
        let mut address = address;
        loop {
            let id = match address {
                // An access has room for the first 254 parameters; those through later ones are not compared.
                Operand::Parameter(at) => match u8::try_from(*at + 1) {
                    Ok(number) if number < u8::MAX => {
                        return u32::from(number) << abi::ACCESS_PARAMETER_SHIFT;
                    }
                    _ => return 0,
                },
                Operand::Inst(id) => id,
                _ => return 0,
            };
            let Some(inst) = self.function.instructions.get(id.index()) else { return 0 };
            address = match &inst.kind {
                InstKind::FieldAddress { base, .. }
                | InstKind::ElementAddress { base, .. }
                | InstKind::ByteOffset { base, .. } => base,
                InstKind::Cast(from) if self.type_of(from).is_pointer() => from,
                InstKind::Load(Operand::Slot(slot)) => {
                    match self.stored.get(slot.index()).and_then(Option::as_ref) {
                        Some(value) if inst.ty.is_pointer() => value,
                        _ => return 0,
                    }
                }
                _ => return 0,
            };
        }
    }

    /// The struct or array whose field or element an address denotes, with the index if it is an
    /// array element.
    fn outer(&self, address: &Operand) -> Option<(&'a Operand, Option<&'a Operand>)> {
        let Operand::Inst(id) = address else { return None };
        let function: &'a Function = self.function;
        let inst = function.instructions.get(id.index())?;
        match &inst.kind {
            InstKind::FieldAddress { base, .. } => Some((base, None)),
            InstKind::ElementAddress { base, index } => {
                let whole = self.type_of(base);
                let is_array = matches!(whole.pointee(), Some(Type::Array(..)));
                (is_array && !same_type(&whole, &inst.ty)).then_some((base, Some(index)))
            }
            _ => None,
        }
    }

    /// Whether an instruction computes the address of a part of its operand's variable.
    pub(super) fn is_part(&self, instruction: usize) -> bool {
        self.outer(&Operand::Inst(InstId(instruction as u32))).is_some()
    }

    /// The local variable that surely contains an address, unless an index is out of bounds.
    pub(super) fn slot_of(&self, address: &Operand) -> Option<SlotId> {
        let mut address = address;
        while let Some((base, _)) = self.outer(address) {
            address = base;
        }
        if let Operand::Slot(slot) = address { Some(*slot) } else { None }
    }

    /// Before an access: ends the grid if an array index on the way to the address is out of
    /// bounds.
    fn check_indices(&self, address: &Operand, kind: u32) -> Result<()> {
        let mut address = address;
        while let Some((base, index)) = self.outer(address) {
            if let Some(index) = index {
                self.check_index(base, index, kind)?;
            }
            address = base;
        }
        Ok(())
    }

    fn check_index(&self, base: &Operand, index: &Operand, kind: u32) -> Result<()> {
        let array = self.type_of(base);
        let Some(Type::Array(_, count)) = array.pointee() else { return Ok(()) };
        if let Operand::Const(Const::Int(_, value)) = index
            && (0..i128::from(*count)).contains(value)
        {
            return Ok(());
        }
        let build = self.build();
        let index = self.index(index)?;
        let count = index.get_type().const_int(*count, false);
        let is_inside = build.build_int_compare(IntPredicate::ULT, index, count, "")?;
        let here = build.get_insert_block().ok_or_else(|| bug("no block to emit into"))?;
        let inside = self.cx.context.insert_basic_block_after(here, "index.inside");
        let outside = self.cx.context.insert_basic_block_after(here, "index.outside");
        build.build_conditional_branch(is_inside, inside, outside)?;
        build.position_at_end(outside);
        let name = self.cx.c_string("array", &self.array_name(base)).into();
        let arguments = [index.into(), count.into(), self.word(kind), name, self.location()];
        self.callback(Callback::IndexOutOfBounds, &arguments)?;
        build.build_unreachable()?;
        build.position_at_end(inside);
        Ok(())
    }

    /// The source name of the array at an address; empty if it has none.
    fn array_name(&self, address: &Operand) -> String {
        let mut address = address;
        let mut indices = 0;
        while let Some((base, Some(_))) = self.outer(address) {
            address = base;
            indices += 1;
        }
        let name = match address {
            Operand::Slot(slot) => self.function.slots.get(slot.index()).map(|slot| &*slot.name),
            Operand::Global(id) => {
                self.cx.ir.globals.get(id.index()).map(|global| source_name(&global.name))
            }
            Operand::Inst(id) => {
                self.function.instructions.get(id.index()).and_then(|inst| self.field_name(inst))
            }
            _ => None,
        };
        name.map_or_else(String::new, |name| name.to_owned() + &"[…]".repeat(indices))
    }

    /// The name of the field whose address an instruction computes.
    fn field_name(&self, inst: &Inst) -> Option<&str> {
        let InstKind::FieldAddress { base, index } = &inst.kind else { return None };
        match self.type_of(base).pointee() {
            Some(Type::Struct(id)) => {
                let fields = &self.cx.ir.structs.get(*id).fields;
                fields.get(*index as usize).map(|field| &*field.name)
            }
            _ => None,
        }
    }

    /// Reports each scalar and vector of an access, because their sizes imply their alignment;
    /// reports a wide value as a whole.
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

    /// After a `malloc`: reports the allocation.
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

    /// Before a `free`: reports it.
    pub(super) fn check_free(&self, address: BasicValueEnum<'ctx>) -> Result<()> {
        if self.is_checked() { self.report(address, 0, abi::ACCESS_FREE) } else { Ok(()) }
    }

    pub(super) fn report(
        &self,
        address: BasicValueEnum<'ctx>,
        bytes: u32,
        kind: u32,
    ) -> Result<()> {
        let arguments = [address, self.word(bytes), self.word(kind), self.location()];
        self.callback(Callback::CheckAccess, &arguments)?;
        Ok(())
    }

    /// For each block, the flags of [`abi::Callbacks::poll`] if entering it must poll: heads of
    /// loops that may wait for another thread, which the device must let run, and in checked images
    /// also heads of loops that may never end.
    pub(in crate::codegen) fn polls(&self, id: FunctionId) -> Vec<Option<u32>> {
        match self.cx.cpu() {
            None => Vec::new(),
            Some(cpu) if self.is_checked() => {
                let ends =
                    loops::loop_ends(self.function, &|callee| cpu.loops_forever[callee.index()]);
                let mut polls: Vec<Option<u32>> =
                    ends.into_iter().map(|end| end.and_then(poll)).collect();
                // Endless recursion would otherwise show only as a stack overflow, which has no
                // source position.
                if let Some(first) = polls.first_mut()
                    && cpu.is_recursive[id.index()]
                {
                    first.get_or_insert(0);
                }
                polls
            }
            Some(_) => {
                let waiting = loops::waiting_heads(self.function).into_iter();
                waiting.map(|waits| waits.then_some(abi::POLL_YIELDS)).collect()
            }
        }
    }

    /// Emits the poll at the head of a loop.
    pub(in crate::codegen) fn emit_poll(&self, block: &Block, kind: u32) -> Result<()> {
        match block.instructions.first() {
            Some(&first) => self.enter_instruction(first),
            None => self.enter_end(block),
        }
        self.callback(Callback::Poll, &[self.word(kind), self.location()])?;
        Ok(())
    }
}

/// The poll flags of a loop head.
fn poll(end: LoopEnd) -> Option<u32> {
    let yields = if end.waits { abi::POLL_YIELDS } else { 0 };
    match end {
        LoopEnd { ends: false, .. } => Some(abi::POLL_YIELDS | abi::POLL_WAITS),
        // Progress between waits that end.
        LoopEnd { within_endless: false, contains_endless, .. }
            if contains_endless || end.waits =>
        {
            Some(yields | abi::POLL_ENDS)
        }
        _ => end.waits.then_some(yields),
    }
}

/// The access flags of a built-in's scope.
fn scope(builtin: Builtin) -> u32 {
    if builtin.scope() == Some(Scope::Block) { abi::ACCESS_BLOCK } else { 0 }
}

/// The access flags of a memory order.
fn flags(order: Order) -> u32 {
    match order {
        Order::Relaxed => 0,
        Order::Acquire => abi::ACCESS_ACQUIRE,
        Order::Release => abi::ACCESS_RELEASE,
    }
}
