//! Atomic operations with relaxed ordering, as CUDA's `atomicAdd`. `atomic_ptx.rs` has those that
//! LLVM cannot express with the language's semantics.

use inkwell::AtomicOrdering::Monotonic;
use inkwell::AtomicRMWBinOp;
use inkwell::llvm_sys::core::{
    LLVMBuildAtomicRMWSyncScope, LLVMGetSyncScopeID, LLVMSetAtomicSyncScopeID,
};
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp};
use inkwell::values::{AsValueRef, BasicValueEnum, FloatValue, IntValue, PointerValue};

use super::bug;
use super::function::FunctionEmitter;
use super::values::{float, int, pointer};
use crate::error::Result;
use gridlet_lang::builtins::{AtomicOp, Scope};
use gridlet_lang::types::Scalar;

/// LLVM's name for the scope of one GPU. Without a scope, an atomic covers the whole system.
const SCOPE: &str = "device";

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Reads, modifies and writes; returns the old value.
    pub(super) fn atomic(
        &self,
        op: AtomicOp,
        scope: Scope,
        address: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        let address = pointer(address)?;
        if self.needs_assembly(scope) {
            return self.scoped_atomic(op, scope, address, value, scalar);
        }
        let rmw = match (op, scalar.is_signed()) {
            (AtomicOp::Add, _) if scalar.is_float() => {
                return Ok(self.atomic_float_add(address, float(value)?).into());
            }
            (AtomicOp::Add, _) => AtomicRMWBinOp::Add,
            (AtomicOp::Sub, _) => AtomicRMWBinOp::Sub,
            (AtomicOp::Min, true) => AtomicRMWBinOp::Min,
            (AtomicOp::Min, false) => AtomicRMWBinOp::UMin,
            (AtomicOp::Max, true) => AtomicRMWBinOp::Max,
            (AtomicOp::Max, false) => AtomicRMWBinOp::UMax,
            (AtomicOp::And, _) => AtomicRMWBinOp::And,
            (AtomicOp::Or, _) => AtomicRMWBinOp::Or,
            (AtomicOp::Xor, _) => AtomicRMWBinOp::Xor,
            (AtomicOp::Exch, _) => AtomicRMWBinOp::Xchg,
        };
        if scalar.is_float() {
            // LLVM 7's exchange takes only integers.
            if op != AtomicOp::Exch {
                return Err(bug(format!("atomic {op:?} on {}", scalar.name())));
            }
            let bits = self.cx.int_type(scalar.bits());
            let value = int(self.build().build_bit_cast(value, bits, "")?)?;
            let old = self.atomic_int(rmw, address, value)?;
            return Ok(self.build().build_bit_cast(old, self.cx.float_type(scalar), "")?);
        }
        Ok(self.atomic_int(rmw, address, int(value)?)?.into())
    }

    fn atomic_int(
        &self,
        op: AtomicRMWBinOp,
        address: PointerValue<'ctx>,
        value: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let old = self.build().build_atomicrmw(op, address, value, Monotonic)?;
        self.set_scope(old);
        Ok(old)
    }

    /// Writes `new` if memory holds `expected`; returns the old value.
    pub(super) fn atomic_cas(
        &self,
        scope: Scope,
        address: BasicValueEnum<'ctx>,
        expected: BasicValueEnum<'ctx>,
        new: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        if self.needs_assembly(scope) {
            return self.scoped_atomic_cas(scope, address, expected, new);
        }
        let (expected, new) = (int(expected)?, int(new)?);
        let pair =
            self.build().build_cmpxchg(pointer(address)?, expected, new, Monotonic, Monotonic)?;
        self.set_scope(pair);
        Ok(self.build().build_extract_value(pair, 0, "")?)
    }

    fn scope(&self) -> u32 {
        // A CPU has only the system scope, whose name is empty in LLVM.
        let name = if self.cx.cpu().is_some() { "" } else { SCOPE };
        // SAFETY: the context is alive, and LLVM reads exactly the name's bytes.
        unsafe { LLVMGetSyncScopeID(self.cx.context.raw(), name.as_ptr().cast(), name.len()) }
    }

    fn set_scope(&self, instruction: impl AsValueRef) {
        // SAFETY: callers pass the value of an `atomicrmw` or a `cmpxchg` that they just built, of this
        // context.
        unsafe { LLVMSetAtomicSyncScopeID(instruction.as_value_ref(), self.scope()) }
    }

    /// `atomicrmw fadd`, through LLVM's C interface because inkwell's `build_atomicrmw` takes only
    /// integers.
    fn atomic_float_add(
        &self,
        address: PointerValue<'ctx>,
        value: FloatValue<'ctx>,
    ) -> FloatValue<'ctx> {
        // SAFETY: builder, address and value are of this context, the builder is positioned in a
        // block, and `fadd` takes a float; the result has the value's type.
        unsafe {
            FloatValue::new(LLVMBuildAtomicRMWSyncScope(
                self.build().as_mut_ptr(),
                LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd,
                address.as_value_ref(),
                value.as_value_ref(),
                LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
                self.scope(),
            ))
        }
    }
}
