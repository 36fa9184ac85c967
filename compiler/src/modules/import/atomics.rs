//! Atomic operations, loads and stores. Those of the language are relaxed; fences make them stronger.

use gridlet_lang::builtins::{AtomicOp, Builtin, Order, Scope};
use gridlet_lang::ir::{InstKind, Operand};
use gridlet_lang::operators::{BinaryOp, UnaryOp};
use gridlet_lang::types::Type;
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp};

use super::Step;
use super::arithmetic::to_signed;
use super::body::Body;
use crate::modules::layout::pointer;
use crate::nvvm::legacy::llvm::{Type as LlvmType, Value};
use crate::nvvm::scope::{self, fences, stronger};

impl<'m> Body<'_, 'm> {
    /// An `atomicrmw`.
    pub(super) fn atomic(&mut self, value: Value<'m>) -> Step<Operand> {
        use LLVMAtomicRMWBinOp as Op;
        let rmw = value.rmw_operation();
        let (operation, is_signed) = match rmw {
            Op::LLVMAtomicRMWBinOpXchg => (AtomicOp::Exch, false),
            Op::LLVMAtomicRMWBinOpAdd | Op::LLVMAtomicRMWBinOpFAdd | Op::LLVMAtomicRMWBinOpFSub => {
                (AtomicOp::Add, false)
            }
            Op::LLVMAtomicRMWBinOpSub => (AtomicOp::Sub, false),
            Op::LLVMAtomicRMWBinOpAnd => (AtomicOp::And, false),
            Op::LLVMAtomicRMWBinOpOr => (AtomicOp::Or, false),
            Op::LLVMAtomicRMWBinOpXor => (AtomicOp::Xor, false),
            Op::LLVMAtomicRMWBinOpMax => (AtomicOp::Max, true),
            Op::LLVMAtomicRMWBinOpMin => (AtomicOp::Min, true),
            Op::LLVMAtomicRMWBinOpUMax => (AtomicOp::Max, false),
            Op::LLVMAtomicRMWBinOpUMin => (AtomicOp::Min, false),
            _ => return Err(format!("`{}`", words(value, 2))),
        };
        let own = self.type_of(value)?;
        let ty = word(&own);
        let builtin = Builtin::Atomic(operation, scope(value));
        if !ty.as_scalar().is_some_and(|scalar| builtin.properties().types.has(scalar)) {
            return Err(format!("`{}` on `{}`", words(value, 2), value.ty().print()));
        }
        let to = if is_signed { to_signed(&ty) } else { ty.clone() };
        let address = self.address(value.operand(0), &to)?;
        let operand = self.operand(value.operand(1))?;
        let operand = self.cast(operand, &own, &ty);
        let mut operand = self.cast(operand, &ty, &to);
        if rmw == Op::LLVMAtomicRMWBinOpFSub {
            operand = self.emit(InstKind::Unary(UnaryOp::Neg, operand), to.clone());
        }
        let old = self.ordered(value, value.ordering(), true, |body| {
            body.builtin(builtin, vec![address, operand], &to)
        });
        let old = self.cast(old, &to, &ty);
        Ok(self.cast(old, &ty, &own))
    }

    /// A `cmpxchg`, whose result is a pair.
    pub(super) fn exchange(&mut self, value: Value<'m>) -> Step<Operand> {
        let pair = self.type_of(value)?;
        let own = self.type_of(value.operand(1))?;
        let ty = word(&own);
        let builtin = Builtin::AtomicCas(scope(value));
        if !ty.as_scalar().is_some_and(|scalar| builtin.properties().types.has(scalar)) {
            return Err(format!("`cmpxchg` on `{}`", value.operand(1).ty().print()));
        }
        let address = self.address(value.operand(0), &ty)?;
        let (expected, new) = (self.operand(value.operand(1))?, self.operand(value.operand(2))?);
        let (expected, new) = (self.cast(expected, &own, &ty), self.cast(new, &own, &ty));
        let (success, failure) = value.cmpxchg_orderings();
        let arguments = vec![address, expected.clone(), new];
        let old = self.ordered(value, stronger(success, failure), true, |body| {
            body.builtin(builtin, arguments, &ty)
        });
        let equal = InstKind::Binary(BinaryOp::Eq, old.clone(), expected);
        let equal = self.emit(equal, Type::BOOL);
        let old = self.cast(old, &ty, &own);
        Ok(self.emit(InstKind::Aggregate(vec![old, equal]), pair))
    }

    pub(super) fn atomic_load(&mut self, value: Value<'m>) -> Step<Operand> {
        let builtin = Builtin::AtomicLoad(Order::Relaxed, scope(value));
        let (own, ty) = self.accessed(value.ty(), builtin)?;
        let address = self.address(value.operand(0), &ty)?;
        let loaded = self.ordered(value, value.ordering(), true, |body| {
            body.builtin(builtin, vec![address], &ty)
        });
        Ok(self.cast(loaded, &ty, &own))
    }

    pub(super) fn atomic_store(&mut self, value: Value<'m>) -> Step<()> {
        let builtin = Builtin::AtomicStore(Order::Relaxed, scope(value));
        let (own, ty) = self.accessed(value.operand(0).ty(), builtin)?;
        let stored = self.operand(value.operand(0))?;
        let stored = self.cast(stored, &own, &ty);
        let address = self.address(value.operand(1), &ty)?;
        self.ordered(value, value.ordering(), false, |body| {
            body.builtin(builtin, vec![address, stored], &Type::Unit)
        });
        Ok(())
    }

    /// The type of a value, and the number that an atomic access moves in its place.
    fn accessed(&mut self, ty: LlvmType<'m>, builtin: Builtin) -> Step<(Type, Type)> {
        let missing = || format!("an atomic access of `{}`", ty.print());
        let own = self.importer.types.value(ty).ok_or_else(missing)?;
        let word = word(&own);
        match word.as_scalar() {
            Some(scalar) if builtin.properties().types.has(scalar) => Ok((own, word)),
            _ => Err(missing()),
        }
    }

    /// An address as a pointer to a type.
    fn address(&mut self, value: Value<'m>, to: &Type) -> Step<Operand> {
        let address = self.operand(value)?;
        Ok(self.cast(address, &pointer(), &Type::pointer_mut(to.clone())))
    }

    /// An access between the fences that its order asks for.
    fn ordered(
        &mut self,
        value: Value<'m>,
        ordering: LLVMAtomicOrdering,
        reads: bool,
        access: impl FnOnce(&mut Self) -> Operand,
    ) -> Operand {
        let (before, after) = fences(ordering, reads);
        let fence = Builtin::Fence(scope(value));
        if before {
            self.builtin(fence, vec![], &Type::Unit);
        }
        let result = access(self);
        if after {
            self.builtin(fence, vec![], &Type::Unit);
        }
        result
    }
}

/// The number that is as large as a pointer; other types stay.
fn word(ty: &Type) -> Type {
    if ty.is_pointer() { Type::U64 } else { ty.clone() }
}

/// The scope of an atomic operation or a fence.
pub(super) fn scope(value: Value<'_>) -> Scope {
    match scope::Scope::of(value) {
        Ok(scope::Scope::Thread | scope::Scope::Block) => Scope::Block,
        Ok(scope::Scope::Cluster | scope::Scope::Device) => Scope::Device,
        _ => Scope::System,
    }
}

/// The first words of an instruction's text, behind its result: `atomicrmw nand`.
pub(super) fn words(value: Value<'_>, count: usize) -> String {
    let text = value.print();
    let code = text.split_once(" = ").filter(|_| text.starts_with('%')).map_or(&*text, |it| it.1);
    let is_word = |word: &&str| !["tail", "musttail", "notail", "volatile", "weak"].contains(word);
    code.split_whitespace().filter(is_word).take(count).collect::<Vec<_>>().join(" ")
}
