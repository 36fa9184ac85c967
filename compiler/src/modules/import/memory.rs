//! Memory: variables, addresses, loads, stores and aggregates.

use gridlet_lang::builtins::Builtin;
use gridlet_lang::ir::{Const, InstKind, Operand, Slot};
use gridlet_lang::operators::BinaryOp;
use gridlet_lang::types::{Scalar, Type};
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMOpcode};

use super::Step;
use super::arithmetic::to_signed;
use super::atomics::{scope, words};
use super::body::Body;
use crate::modules::kernels::name;
use crate::modules::layout::{Offset, extent, offsets, pointer};
use crate::nvvm::legacy::llvm::{Shape, Value};

impl<'m> Body<'_, 'm> {
    /// An instruction; `None` if it gives no value.
    pub(super) fn instruction(&mut self, value: Value<'m>) -> Step<Option<Operand>> {
        if let Some(result) = self.arithmetic(value)? {
            return Ok(Some(result));
        }
        match value.opcode() {
            LLVMOpcode::LLVMAlloca => {
                if value.operand(0).int() != Some(1) {
                    return Err("a local array whose size is not constant".into());
                }
                let (ty, alignment) = (value.allocated(), u64::from(value.alignment()));
                let alignment = extent(ty).map(|own| own.alignment.max(alignment.min(16)));
                let ty = self.importer.types.memory(ty, alignment);
                let ty = ty.ok_or("a local variable of this type")?;
                // Padding of structs, and so of arrays, may be read by wider accesses and by copies.
                let unset = ty.as_scalar().is_some() || ty.is_pointer();
                let name = Some(name(value)).filter(|name| !name.is_empty());
                let name = name.unwrap_or_else(|| "local".into());
                let slot = Slot { name, ty: ty.clone(), unset, variable: None };
                let slot = self.builder.add_slot(slot);
                Ok(Some(self.cast(slot, &Type::pointer_mut(ty), &pointer())))
            }
            LLVMOpcode::LLVMLoad if is_plain(value) => {
                let ty = self.type_of(value)?;
                let address = self.operand(value.operand(0))?;
                let address = self.cast(address, &pointer(), &Type::pointer_mut(ty.clone()));
                Ok(Some(self.emit(InstKind::Load(address), ty)))
            }
            LLVMOpcode::LLVMStore if is_plain(value) => {
                let ty = self.type_of(value.operand(0))?;
                let (stored, address) = (value.operand(0), value.operand(1));
                let (stored, address) = (self.operand(stored)?, self.operand(address)?);
                let address = self.cast(address, &pointer(), &Type::pointer_mut(ty));
                self.builder.store(address, stored, self.span);
                Ok(None)
            }
            LLVMOpcode::LLVMGetElementPtr => self.element_address(value).map(Some),
            LLVMOpcode::LLVMExtractValue => self.extract(value).map(Some),
            LLVMOpcode::LLVMInsertValue => self.insert(value, value.indices()).map(Some),
            LLVMOpcode::LLVMExtractElement | LLVMOpcode::LLVMInsertElement => {
                let is_insert = value.opcode() == LLVMOpcode::LLVMInsertElement;
                let index = value.operand(if is_insert { 2 } else { 1 }).unsigned();
                let index = index.and_then(|index| u32::try_from(index).ok());
                let index = index.ok_or("an element whose number is not constant")?;
                if is_insert {
                    return self.insert(value, &[index]).map(Some);
                }
                let (base, ty) = (self.operand(value.operand(0))?, self.type_of(value)?);
                Ok(Some(self.emit(InstKind::Extract { base, index }, ty)))
            }
            LLVMOpcode::LLVMLoad => self.atomic_load(value).map(Some),
            LLVMOpcode::LLVMStore => self.atomic_store(value).map(|()| None),
            LLVMOpcode::LLVMShuffleVector => self.shuffled(value).map(Some),
            LLVMOpcode::LLVMAtomicRMW => self.atomic(value).map(Some),
            LLVMOpcode::LLVMAtomicCmpXchg => self.exchange(value).map(Some),
            LLVMOpcode::LLVMFence => {
                self.builtin(Builtin::Fence(scope(value)), vec![], &Type::Unit);
                Ok(None)
            }
            LLVMOpcode::LLVMCall => self.call(value),
            _ => Err(format!("the instruction `{}`", words(value, 1))),
        }
    }

    /// Emits a built-in operation.
    pub(super) fn builtin(
        &mut self,
        builtin: Builtin,
        arguments: Vec<Operand>,
        ty: &Type,
    ) -> Operand {
        self.emit(InstKind::Builtin { builtin, arguments, format: None }, ty.clone())
    }

    /// The address that a `getelementptr` computes.
    pub(super) fn element_address(&mut self, value: Value<'m>) -> Step<Operand> {
        let base = self.operand(value.operand(0))?;
        let mut constant = 0_i64;
        let mut offset: Option<Operand> = None;
        for part in offsets(value).ok_or("this address")? {
            let (index, stride) = match part {
                Offset::Bytes(bytes) => {
                    constant = constant.wrapping_add(bytes);
                    continue;
                }
                Offset::Elements(index, stride) => (index, stride),
            };
            let ty = self.type_of(index)?;
            let index = self.operand(index)?;
            let index = self.cast(index, &ty, &to_signed(&ty));
            let mut bytes = self.cast(index, &to_signed(&ty), &Type::I64);
            if stride != 1 {
                let stride = Operand::Const(Const::Int(Scalar::I64, i128::from(stride)));
                bytes = self.emit(InstKind::Binary(BinaryOp::Mul, bytes, stride), Type::I64);
            }
            offset = Some(match offset {
                None => bytes,
                Some(so_far) => {
                    self.emit(InstKind::Binary(BinaryOp::Add, so_far, bytes), Type::I64)
                }
            });
        }
        let mut address = base;
        if let Some(index) = offset {
            address = self.emit(InstKind::ElementAddress { base: address, index }, pointer());
        }
        if constant != 0 {
            let index = Operand::Const(Const::Int(Scalar::I64, i128::from(constant)));
            address = self.emit(InstKind::ElementAddress { base: address, index }, pointer());
        }
        Ok(address)
    }

    fn extract(&mut self, value: Value<'m>) -> Step<Operand> {
        let mut base = self.operand(value.operand(0))?;
        let mut ty = value.operand(0).ty();
        for &index in value.indices() {
            ty = match ty.shape() {
                Shape::Struct => ty.fields()[index as usize],
                Shape::Array(element, _) => element,
                _ => return Err("this part".into()),
            };
            let part = self.importer.types.value(ty).ok_or("a part of this type")?;
            base = self.emit(InstKind::Extract { base, index }, part);
        }
        Ok(base)
    }

    /// Elements of two vectors, by their numbers.
    fn shuffled(&mut self, value: Value<'m>) -> Step<Operand> {
        let (ty, from) = (self.type_of(value)?, self.type_of(value.operand(0))?);
        let (Type::Vector(scalar, _), Type::Vector(_, count)) = (&ty, &from) else {
            return Err(format!("a shuffle of `{}`", value.operand(0).ty().print()));
        };
        let (element, count) = (Type::Scalar(*scalar), u32::from(*count));
        let (first, second) = (self.operand(value.operand(0))?, self.operand(value.operand(1))?);
        let mut parts = vec![];
        for index in value.shuffle_mask() {
            // Any element may take the place of an undefined one.
            let index = index.unwrap_or_default();
            let (base, index) = match index.checked_sub(count) {
                Some(index) => (second.clone(), index),
                None => (first.clone(), index),
            };
            parts.push(self.emit(InstKind::Extract { base, index }, element.clone()));
        }
        Ok(self.emit(InstKind::Aggregate(parts), ty))
    }

    /// The aggregate in operand 0 with operand 1 in place of a part, or of a part of a part.
    fn insert(&mut self, value: Value<'m>, indices: &[u32]) -> Step<Operand> {
        let ty = self.type_of(value)?;
        let (base, part) = (self.operand(value.operand(0))?, self.operand(value.operand(1))?);
        // The aggregates around the inserted part, from the outside in.
        let (mut around, mut base, mut ty) = (vec![], base, ty);
        for &index in indices {
            let types = self.parts(&ty)?;
            let inner = types.get(index as usize).cloned().ok_or("this part")?;
            let parts: Vec<Operand> = (0..)
                .zip(types)
                .map(|(index, ty)| self.emit(InstKind::Extract { base: base.clone(), index }, ty))
                .collect();
            base = parts[index as usize].clone();
            around.push((parts, index, std::mem::replace(&mut ty, inner)));
        }
        let mut whole = part;
        for (mut parts, index, ty) in around.into_iter().rev() {
            parts[index as usize] = whole;
            whole = self.emit(InstKind::Aggregate(parts), ty);
        }
        Ok(whole)
    }

    /// The types of the parts of an aggregate.
    fn parts(&mut self, ty: &Type) -> Step<Vec<Type>> {
        Ok(match ty {
            Type::Struct(id) => {
                let fields = &self.importer.types.structs.get(*id).fields;
                fields.iter().map(|field| field.ty.clone()).collect()
            }
            Type::Vector(scalar, count) => vec![Type::Scalar(*scalar); usize::from(*count)],
            Type::Array(element, count) if *count <= 64 => {
                vec![(**element).clone(); *count as usize]
            }
            _ => return Err("this value".into()),
        })
    }
}

/// Whether a load or store is not atomic.
fn is_plain(value: Value<'_>) -> bool {
    value.ordering() == LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic
}
