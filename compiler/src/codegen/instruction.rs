//! Emits single IR instructions.

use inkwell::IntPredicate;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, FunctionValue, IntValue, PointerValue,
};

use super::bug;
use super::function::FunctionEmitter;
use super::types::Carrier;
use super::values::{int, pointer, result};
use crate::error::Result;
use gridlet_lang::ir::{Inst, InstId, InstKind, Operand, SlotId};
use gridlet_lang::types::{Scalar, StructId, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Emits an instruction; returns its value, if it has one.
    pub(super) fn emit_instruction(&self, id: InstId) -> Result<Option<BasicValueEnum<'ctx>>> {
        let function = self.function;
        let inst =
            function.instructions.get(id.index()).ok_or_else(|| bug("a missing instruction"))?;
        let name = self.name_of(&inst.kind);
        self.check_accesses(inst)?;
        let value = match &inst.kind {
            InstKind::Load(from) => {
                if let Some(value) = self.load_copied(id, from, &name)? {
                    value
                } else if let Some(value) = self.load_flag(from, &name)? {
                    value
                } else if let Some(value) = self.load_from_word(from, &name)? {
                    value
                } else if let Some(value) = self.load_chosen(from, &inst.ty, &name)? {
                    value
                } else if let Some(value) = self.load_packed(from, &inst.ty, &name)? {
                    value
                } else {
                    let place = self.place(from, &inst.ty)?;
                    let alignment = self.alignment_of(from)?;
                    self.is_invariant.set(self.cx.is_read_only_load(self.id, id));
                    let value = self.load_aligned(place, 0, alignment, &inst.ty, &name, false);
                    self.is_invariant.set(false);
                    value?
                }
            }
            InstKind::Store { pointer: to, value } => {
                let ty = self.type_of(value);
                let value = self.operand(value)?;
                if !self.store_flag(to, value)? {
                    let place = self.place(to, &ty)?;
                    self.store_aligned(place, 0, self.alignment_of(to)?, value, &ty)?;
                }
                return Ok(None);
            }
            InstKind::Unary(op, value) => {
                let ty = self.type_of(value);
                self.unary(*op, self.operand(value)?, &ty)?
            }
            InstKind::Binary(op, left, right) => self.binary(*op, left, right)?,
            InstKind::Advance(counter, step) => {
                let is_signed = inst.ty.as_scalar().is_some_and(Scalar::is_signed);
                let (counter, step) = (int(self.operand(counter)?)?, int(self.operand(step)?)?);
                match is_signed {
                    true => self.build().build_int_nsw_add(counter, step, "")?.into(),
                    false => self.build().build_int_nuw_add(counter, step, "")?.into(),
                }
            }
            InstKind::Cast(value) => {
                let from = self.type_of(value);
                self.cast(self.operand(value)?, &from, &inst.ty)?
            }
            InstKind::Select(condition, then, otherwise) => {
                match self.unguarded_quotient(condition, then, otherwise)? {
                    Some(quotient) => quotient,
                    None => {
                        let condition = int(self.operand(condition)?)?;
                        let (then, otherwise) = (self.operand(then)?, self.operand(otherwise)?);
                        self.build().build_select(condition, then, otherwise, &name)?
                    }
                }
            }
            InstKind::FieldAddress { base, .. }
            | InstKind::ElementAddress { base, .. }
            | InstKind::ByteOffset { base, .. } => {
                self.moved(pointer(self.operand(base)?)?, inst)?.into()
            }
            InstKind::PointerDifference(left, right) => {
                self.pointer_difference(left, right)?.into()
            }
            InstKind::Extract { base, index } => {
                let ty = self.type_of(base);
                self.part_of(self.operand(base)?, &ty, *index, &name)?
            }
            InstKind::Aggregate(parts) => match self.packed(parts, &inst.ty)? {
                Some(pair) => pair,
                None => self.aggregate(&self.operands(parts)?, &inst.ty)?,
            },
            InstKind::Call { function, arguments } => {
                let callee = self.cx.functions.get(function.index());
                let callee = *callee.ok_or_else(|| bug("a call of a missing function"))?;
                let arguments = self.operands(arguments)?;
                return self.call(callee, arguments, &inst.ty, &name);
            }
            InstKind::CallExtern { function, arguments } => {
                let item = self.cx.ir.externs.get(function.index());
                let callee = self.cx.externs.get(function.index());
                let (Some(item), Some(&callee)) = (item, callee) else {
                    return Err(bug("a call of a missing `extern fn`"));
                };
                let arguments = self.operands(arguments)?;
                if item.span.is_some() {
                    return self.call_external(item, callee, arguments, &name);
                }
                return match self.cx.device_function(*function) {
                    Some(called) if self.cx.cpu().is_some() => {
                        self.call_device_runtime(item, &called, &arguments, &name)
                    }
                    None if self.cx.cpu().is_some() => {
                        Err(bug(format!("a call of `{}` on the CPU", item.name)))
                    }
                    _ => self.call(callee, arguments, &inst.ty, &name),
                };
            }
            InstKind::Builtin { builtin, arguments, format } => {
                return self.builtin(*builtin, arguments, *format, &inst.ty);
            }
            InstKind::HardwareGeometry => self.hardware_geometry()?,
            InstKind::Launch(_) => return Err(bug("a launch that is not lowered")),
        };
        Ok(Some(value))
    }

    /// The address that an instruction computes from another; `base` is that one in any space.
    pub(super) fn moved(
        &self,
        base: PointerValue<'ctx>,
        inst: &Inst,
    ) -> Result<PointerValue<'ctx>> {
        let name = self.name_of(&inst.kind);
        match &inst.kind {
            InstKind::FieldAddress { base: from, index } => {
                let ty = self.type_of(from);
                let (_, offset) = self.cx.part(pointee(&ty)?, u64::from(*index))?;
                self.offset(base, offset, &name)
            }
            InstKind::ElementAddress { index, .. } => {
                // The result type gives the element type: an array's element, or the pointee of
                // `base`.
                let element = self.cx.memory_type(pointee(&inst.ty)?)?;
                let index = self.index(index)?;
                // SAFETY: inkwell marks this unsafe because LLVM accepts any indices; one i64 is
                // well-typed.
                Ok(unsafe { self.build().build_gep(element, base, &[index], &name)? })
            }
            InstKind::ByteOffset { bytes, .. } => self.offset(base, u64::from(*bytes), &name),
            _ => Ok(base),
        }
    }

    /// The address of a load or a store. A copy in memory needs a generic one.
    fn place(&self, address: &Operand, ty: &Type) -> Result<PointerValue<'ctx>> {
        match self.cx.carrier(ty) {
            Carrier::Registers => self.accessed(address),
            _ => pointer(self.operand(address)?),
        }
    }

    fn operands(&self, operands: &[Operand]) -> Result<Vec<BasicValueEnum<'ctx>>> {
        operands.iter().map(|operand| self.operand(operand)).collect()
    }

    pub(super) fn call(
        &self,
        callee: FunctionValue<'ctx>,
        mut arguments: Vec<BasicValueEnum<'ctx>>,
        ty: &Type,
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let carrier = self.cx.carrier(ty);
        let mut wide_result = None;
        if carrier == Carrier::Memory {
            let copy = self.temporary(self.cx.size(ty), self.cx.alignment(ty), "result")?;
            arguments.push(copy.into());
            wide_result = Some(copy.into());
        }
        let value = self.emit_call(callee, &arguments, name)?;
        Ok(match (ty, carrier) {
            (Type::Unit, _) => None,
            (_, Carrier::Registers) => Some(result(value)?),
            (_, Carrier::Memory) => wide_result,
            (_, Carrier::Nothing) => Some(self.cx.pointer_type().const_null().into()),
        })
    }

    /// A load of an element, chosen at run time, of a small array in a local variable: loads all elements and chooses one,
    /// because LLVM keeps a variable in registers only if every index is a constant. `None` for other loads, for variables that a store
    /// keeps in memory all the same, and for the CPU, whose checks must see the access.
    fn load_chosen(
        &self,
        from: &Operand,
        ty: &Type,
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        const MOST_ELEMENTS: u64 = 4;
        let Operand::Inst(id) = from else { return Ok(None) };
        let InstKind::ElementAddress { base, index } = &self.function.instructions[id.index()].kind
        else {
            return Ok(None);
        };
        let base_type = self.type_of(base);
        let Type::Array(_, count) = pointee(&base_type)? else { return Ok(None) };
        if self.cx.cpu().is_some()
            || matches!(index, Operand::Const(_))
            || !(1..=MOST_ELEMENTS).contains(count)
            || !matches!(ty, Type::Scalar(_) | Type::Pointer { .. })
            || !self.is_in_slot(base)
            || self.is_stored_anywhere(base)
        {
            return Ok(None);
        }
        let (base, index) = (pointer(self.operand(base)?)?, self.index(index)?);
        let size = self.cx.size(ty);
        let mut chosen = self.load_part(base, (count - 1) * size, ty, name, false)?;
        for at in (0..count - 1).rev() {
            let element = self.load_part(base, at * size, ty, name, false)?;
            let constant = index.get_type().const_int(at, false);
            let is = self.build().build_int_compare(IntPredicate::EQ, index, constant, "")?;
            chosen = self.build().build_select(is, element, chosen, name)?;
        }
        Ok(Some(chosen))
    }

    /// Whether elements of the variable with this place are stored at indices that are surely no constants.
    fn is_stored_anywhere(&self, place: &Operand) -> bool {
        let variable = self.variable(place);
        self.function.instructions.iter().any(|inst| {
            let InstKind::Store { pointer, .. } = &inst.kind else { return false };
            match self.kind(pointer) {
                Some(InstKind::ElementAddress { base, index }) => {
                    self.is_runtime(index) && self.variable(base) == variable
                }
                _ => false,
            }
        })
    }

    /// The local variable in which an address lies.
    fn variable(&self, address: &Operand) -> Option<SlotId> {
        match address {
            Operand::Slot(slot) => Some(*slot),
            address => match self.kind(address)? {
                InstKind::FieldAddress { base, .. } | InstKind::ElementAddress { base, .. } => {
                    self.variable(base)
                }
                _ => None,
            },
        }
    }

    /// Whether an address is a place in a local variable that does not depend on a value.
    pub(super) fn is_in_slot(&self, address: &Operand) -> bool {
        match address {
            Operand::Slot(_) => true,
            Operand::Inst(id) => match &self.function.instructions[id.index()].kind {
                InstKind::FieldAddress { base, .. }
                | InstKind::ElementAddress { base, index: Operand::Const(_) } => {
                    self.is_in_slot(base)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// A call with LLVM values.
    pub(super) fn emit_call(
        &self,
        callee: FunctionValue<'ctx>,
        arguments: &[BasicValueEnum<'ctx>],
        name: &str,
    ) -> Result<inkwell::values::CallSiteValue<'ctx>> {
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> =
            arguments.iter().map(|&value| value.into()).collect();
        let name = if callee.get_type().get_return_type().is_some() { name } else { "" };
        Ok(self.build().build_call(callee, &arguments, name)?)
    }

    /// An index of any integer type as an `i64`, extended according to its type's sign.
    pub(super) fn index(&self, index: &Operand) -> Result<IntValue<'ctx>> {
        let ty = self.type_of(index);
        int(self.cast(self.operand(index)?, &ty, &Type::I64)?)
    }

    fn pointer_difference(&self, left: &Operand, right: &Operand) -> Result<IntValue<'ctx>> {
        let ty = self.type_of(left);
        let size = self.cx.size(pointee(&ty)?);
        let wide = self.cx.int_type(64);
        let address = |value: PointerValue<'ctx>| self.build().build_ptr_to_int(value, wide, "");
        let left = address(pointer(self.operand(left)?)?)?;
        let right = address(pointer(self.operand(right)?)?)?;
        let bytes = self.build().build_int_sub(left, right, "")?;
        // A zero-sized element cannot be counted.
        if size <= 1 {
            return Ok(bytes);
        }
        let size = wide.const_int(size, false);
        Ok(self.build().build_int_exact_signed_div(bytes, size, "")?)
    }

    /// A readable name in the LLVM module; LLVM appends a number to duplicates.
    fn name_of(&self, kind: &InstKind) -> String {
        let field = |id: StructId, index: u32| {
            self.cx.ir.structs.get(id).fields.get(index as usize).map(|field| field.name.clone())
        };
        let name = match kind {
            InstKind::Load(Operand::Slot(slot)) => {
                self.function.slots.get(slot.index()).map(|slot| slot.name.clone())
            }
            InstKind::FieldAddress { base, index } => match self.type_of(base).pointee() {
                Some(Type::Struct(id)) => field(*id, *index),
                _ => None,
            },
            InstKind::Extract { base, index } => match self.type_of(base) {
                Type::Struct(id) => field(id, *index),
                _ => None,
            },
            InstKind::CallExtern { function, .. } => {
                self.cx.device_function(*function).map(|function| function.result_name.to_owned())
            }
            _ => None,
        };
        name.unwrap_or_default()
    }
}

pub(super) fn pointee(ty: &Type) -> Result<&Type> {
    ty.pointee().ok_or_else(|| bug("an address that is not a pointer"))
}
