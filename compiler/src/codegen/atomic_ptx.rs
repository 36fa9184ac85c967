//! Atomic operations as PTX assembly, which every consumer of the module accepts.
//!
//! LLVM writes `atomicrmw` of every scope as `atom` without a scope, which means the device, and
//! libNVVM 13.0 refuses atomic loads and stores. Addresses are generic, or global (PTX ISA, "atom",
//! "ld", "st").

use inkwell::AddressSpace;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, PointerValue};

use super::function::FunctionEmitter;
use super::globals::GLOBAL;
use super::values::{int, pointer, result};
use crate::error::Result;
use gridlet_lang::builtins::{AtomicOp, Builtin, Order, Scope};
use gridlet_lang::ir::Operand;
use gridlet_lang::types::{Scalar, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Whether an atomic operation becomes assembly.
    pub(super) fn is_assembly(&self, builtin: Builtin) -> bool {
        match builtin {
            Builtin::AtomicLoad(..) | Builtin::AtomicStore(..) => self.cx.cpu().is_none(),
            Builtin::Atomic(_, scope) | Builtin::AtomicCas(scope) => self.needs_assembly(scope),
            _ => false,
        }
    }

    /// The same operation of the device's scope where the memory is shared: no other block reaches it, and what LLVM can express
    /// keeps the address space.
    pub(super) fn in_known_scope(&self, builtin: Builtin, arguments: &[Operand]) -> Builtin {
        let is_shared =
            |scope| self.needs_assembly(scope) && self.cx.is_shared(self.id, &arguments[0]);
        match builtin {
            Builtin::Atomic(op, scope) if is_shared(scope) => Builtin::Atomic(op, Scope::Device),
            Builtin::AtomicCas(scope) if is_shared(scope) => Builtin::AtomicCas(Scope::Device),
            other => other,
        }
    }

    /// Whether an operation that reads, modifies and writes within a scope becomes assembly.
    pub(super) fn needs_assembly(&self, scope: Scope) -> bool {
        scope != Scope::Device && self.cx.cpu().is_none()
    }

    /// Reads, modifies and writes within a scope; returns the old value.
    pub(super) fn scoped_atomic(
        &self,
        op: AtomicOp,
        scope: Scope,
        address: PointerValue<'ctx>,
        value: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        let build = self.build();
        let is_float_add = scalar.is_float() && op == AtomicOp::Add;
        let value = match op {
            AtomicOp::Sub => build.build_int_neg(int(value)?, "")?.into(),
            _ if is_float_add => value,
            _ => self.number_bits(value)?,
        };
        let sign = if scalar.is_signed() { 's' } else { 'u' };
        let (name, kind) = match op {
            AtomicOp::Add if is_float_add => ("add", 'f'),
            AtomicOp::Add | AtomicOp::Sub => ("add", 'u'),
            AtomicOp::Min => ("min", sign),
            AtomicOp::Max => ("max", sign),
            AtomicOp::And => ("and", 'b'),
            AtomicOp::Or => ("or", 'b'),
            AtomicOp::Xor => ("xor", 'b'),
            AtomicOp::Exch => ("exch", 'b'),
        };
        let (scope, bits) = (scope_suffix(scope), scalar.bits());
        let space = space(address);
        let text = format!("atom.{scope}{space}.{name}.{kind}{bits} $0, [$1], $2;");
        let register = register(value.get_type());
        let constraints = format!("={register},l,{register},~{{memory}}");
        let old = self.memory_assembly(
            text,
            constraints,
            Some(value.get_type()),
            &[address.into(), value],
        )?;
        Ok(build.build_bit_cast(result(old)?, self.cx.scalar_type(scalar), "")?)
    }

    /// Writes `new` if memory holds `expected`, within a scope; returns the old value.
    pub(super) fn scoped_atomic_cas(
        &self,
        scope: Scope,
        address: BasicValueEnum<'ctx>,
        expected: BasicValueEnum<'ctx>,
        new: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let ty = new.get_type();
        let bits = int(new)?.get_type().get_bit_width();
        let address = pointer(address)?;
        let space = space(address);
        let text = format!("atom.{}{space}.cas.b{bits} $0, [$1], $2, $3;", scope_suffix(scope));
        let register = register(ty);
        let constraints = format!("={register},l,{register},{register},~{{memory}}");
        result(self.memory_assembly(
            text,
            constraints,
            Some(ty),
            &[address.into(), expected, new],
        )?)
    }

    /// Reads a 32- or 64-bit number.
    pub(super) fn atomic_load(
        &self,
        order: Order,
        scope: Scope,
        address: BasicValueEnum<'ctx>,
        ty: &Type,
    ) -> Result<BasicValueEnum<'ctx>> {
        let bits = self.cx.size(ty) as u32 * 8;
        let word = self.cx.int_type(bits).into();
        let address = pointer(address)?;
        let (order, scope, space) = (order.name(), scope_suffix(scope), space(address));
        let text = format!("ld.{order}.{scope}{space}.b{bits} $0, [$1];");
        let constraints = format!("={},l,~{{memory}}", register(word));
        let loaded = self.memory_assembly(text, constraints, Some(word), &[address.into()])?;
        let ty = self.cx.value_type(ty)?;
        Ok(self.build().build_bit_cast(result(loaded)?, ty, "")?)
    }

    /// Writes a 32- or 64-bit number.
    pub(super) fn atomic_store(
        &self,
        order: Order,
        scope: Scope,
        address: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
    ) -> Result<()> {
        let value = self.number_bits(value)?;
        let bits = int(value)?.get_type().get_bit_width();
        let address = pointer(address)?;
        let (order, scope, space) = (order.name(), scope_suffix(scope), space(address));
        let text = format!("st.{order}.{scope}{space}.b{bits} [$0], $1;");
        let constraints = format!("l,{},~{{memory}}", register(value.get_type()));
        self.memory_assembly(text, constraints, None, &[address.into(), value])?;
        Ok(())
    }

    /// Assembly that reads or writes memory.
    fn memory_assembly(
        &self,
        text: String,
        constraints: String,
        result: Option<BasicTypeEnum<'ctx>>,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<CallSiteValue<'ctx>> {
        let types: Vec<_> = arguments.iter().map(|argument| argument.get_type()).collect();
        let ty = self.cx.function_type(result, &types);
        let context = self.cx.context;
        let assembly = context.create_inline_asm(ty, text, constraints, true, false, None, false);
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> =
            arguments.iter().map(|&argument| argument.into()).collect();
        Ok(self.build().build_indirect_call(ty, assembly, &arguments, "")?)
    }

    /// A 32- or 64-bit number as an integer.
    pub(super) fn number_bits(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let BasicValueEnum::FloatValue(float) = value else { return Ok(value) };
        let is_single = float.get_type() == self.cx.float_type(Scalar::F32);
        let bits = self.cx.int_type(if is_single { 32 } else { 64 });
        Ok(self.build().build_bit_cast(value, bits, "")?)
    }
}

/// The PTX suffix of an address's space.
fn space(address: PointerValue<'_>) -> &'static str {
    let is_global = address.get_type().get_address_space() == AddressSpace::from(GLOBAL);
    if is_global { ".global" } else { "" }
}

/// The PTX suffix of a scope (PTX ISA, "Memory Consistency Model", "Scope").
fn scope_suffix(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "cta",
        Scope::Device => "gpu",
        Scope::System => "sys",
    }
}

/// The register constraint for a 32- or 64-bit number.
fn register(ty: BasicTypeEnum<'_>) -> char {
    match ty {
        BasicTypeEnum::FloatType(ty) if ty.get_bit_width() == 32 => 'f',
        BasicTypeEnum::FloatType(_) => 'd',
        BasicTypeEnum::IntType(ty) if ty.get_bit_width() == 32 => 'r',
        _ => 'l',
    }
}
