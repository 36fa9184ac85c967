//! Accessors for instructions and blocks.

use std::ffi::c_int;
use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::{
    LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMInlineAsmDialect, LLVMIntPredicate, LLVMOpcode,
    LLVMRealPredicate, LLVMTailCallKind,
};

use super::{Block, Type, Value, list, text};

impl<'m> Block<'m> {
    pub(crate) fn instructions(self) -> Vec<Value<'m>> {
        // SAFETY: the block is alive, and LLVM returns the next instruction or null.
        unsafe { list(LLVMGetFirstInstruction(self.0), |value| LLVMGetNextInstruction(value)) }
    }

    pub(crate) fn as_value(self) -> Value<'m> {
        // SAFETY: the block is alive.
        Value(unsafe { LLVMBasicBlockAsValue(self.0) }, PhantomData)
    }
}

impl<'m> Value<'m> {
    /// The function of an instruction.
    pub(crate) fn function(self) -> Option<Value<'m>> {
        // SAFETY: only called for instructions, which are in blocks; LLVM returns null for a block outside functions.
        let function = unsafe { LLVMGetBasicBlockParent(LLVMGetInstructionParent(self.0)) };
        (!function.is_null()).then_some(Value(function, PhantomData))
    }

    /// The block of an instruction.
    pub(crate) fn block(self) -> Block<'m> {
        // SAFETY: only called for instructions, which are in blocks.
        Block(unsafe { LLVMGetInstructionParent(self.0) }, PhantomData)
    }

    /// The instruction before it in its block.
    pub(crate) fn previous(self) -> Option<Value<'m>> {
        // SAFETY: only called for instructions; LLVM returns null for the first of a block.
        let previous = unsafe { LLVMGetPreviousInstruction(self.0) };
        (!previous.is_null()).then_some(Value(previous, PhantomData))
    }

    pub(crate) fn opcode(self) -> LLVMOpcode {
        // SAFETY: only called for instructions.
        unsafe { LLVMGetInstructionOpcode(self.0) }
    }

    pub(crate) fn has_nuw(self) -> bool {
        // SAFETY: only called for `add`, `sub`, `mul` and `shl`.
        unsafe { LLVMGetNUW(self.0) != 0 }
    }

    pub(crate) fn has_nsw(self) -> bool {
        // SAFETY: only called for `add`, `sub`, `mul` and `shl`.
        unsafe { LLVMGetNSW(self.0) != 0 }
    }

    pub(crate) fn is_exact(self) -> bool {
        // SAFETY: only called for divisions and right shifts.
        unsafe { LLVMGetExact(self.0) != 0 }
    }

    /// The fast-math flags, 0 for an instruction that cannot have any.
    pub(crate) fn fast_math(self) -> u32 {
        // SAFETY: the instruction is alive, and its flags are only read where it has them.
        unsafe {
            if LLVMCanValueUseFastMathFlags(self.0) != 0 { LLVMGetFastMathFlags(self.0) } else { 0 }
        }
    }

    pub(crate) fn int_predicate(self) -> LLVMIntPredicate {
        // SAFETY: only called for `icmp`.
        unsafe { LLVMGetICmpPredicate(self.0) }
    }

    pub(crate) fn real_predicate(self) -> LLVMRealPredicate {
        // SAFETY: only called for `fcmp`.
        unsafe { LLVMGetFCmpPredicate(self.0) }
    }

    /// Whether it ends a block.
    pub(crate) fn is_terminator(self) -> bool {
        // SAFETY: only called for instructions; LLVM returns null for others.
        unsafe { !LLVMIsATerminatorInst(self.0).is_null() }
    }

    /// The blocks to which a terminator may branch.
    pub(crate) fn successors(self) -> Vec<Block<'m>> {
        // SAFETY: only called for terminators.
        let count = unsafe { LLVMGetNumSuccessors(self.0) };
        // SAFETY: the index is below the count.
        (0..count)
            .map(|index| Block(unsafe { LLVMGetSuccessor(self.0, index) }, PhantomData))
            .collect()
    }

    /// The condition of a `br`, if it has one.
    pub(crate) fn condition(self) -> Option<Value<'m>> {
        // SAFETY: only called for `br`; the condition is only read where there is one.
        unsafe {
            (LLVMIsConditional(self.0) != 0).then(|| Value(LLVMGetCondition(self.0), PhantomData))
        }
    }

    /// The value of case `index` of a `switch`, counted from 1 like its successor.
    pub(crate) fn case(self, index: u32) -> Value<'m> {
        // SAFETY: only called for `switch`, with the index of a successor other than the default.
        Value(unsafe { LLVMGetSwitchCaseValue(self.0, index) }, PhantomData)
    }

    /// The values of a `phi` with the blocks they come from.
    pub(crate) fn incoming(self) -> Vec<(Value<'m>, Block<'m>)> {
        // SAFETY: only called for `phi`.
        let count = unsafe { LLVMCountIncoming(self.0) };
        (0..count)
            .map(|index| {
                // SAFETY: the index is below the count.
                let (value, block) = unsafe {
                    (LLVMGetIncomingValue(self.0, index), LLVMGetIncomingBlock(self.0, index))
                };
                (Value(value, PhantomData), Block(block, PhantomData))
            })
            .collect()
    }

    /// The type of an `alloca`'s element.
    pub(crate) fn allocated(self) -> Type<'m> {
        // SAFETY: only called for `alloca`.
        Type(unsafe { LLVMGetAllocatedType(self.0) }, PhantomData)
    }

    pub(crate) fn is_volatile(self) -> bool {
        // SAFETY: only called for loads, stores and atomic operations.
        unsafe { LLVMGetVolatile(self.0) != 0 }
    }

    /// Whether it is an atomic operation, an atomic access or a fence.
    pub(crate) fn is_atomic(self) -> bool {
        // SAFETY: only called for instructions.
        unsafe { LLVMIsAtomic(self.0) != 0 }
    }

    /// The ordering of a `load`, `store`, `fence` or `atomicrmw`.
    pub(crate) fn ordering(self) -> LLVMAtomicOrdering {
        // SAFETY: only called for those.
        unsafe { LLVMGetOrdering(self.0) }
    }

    /// The orderings of a `cmpxchg`: on success, on failure.
    pub(crate) fn cmpxchg_orderings(self) -> (LLVMAtomicOrdering, LLVMAtomicOrdering) {
        // SAFETY: only called for `cmpxchg`.
        unsafe { (LLVMGetCmpXchgSuccessOrdering(self.0), LLVMGetCmpXchgFailureOrdering(self.0)) }
    }

    pub(crate) fn rmw_operation(self) -> LLVMAtomicRMWBinOp {
        // SAFETY: only called for `atomicrmw`.
        unsafe { LLVMGetAtomicRMWBinOp(self.0) }
    }

    /// The indices of an `extractvalue` or `insertvalue`.
    pub(crate) fn indices(self) -> &'m [u32] {
        // SAFETY: only called for those; LLVM returns the indices with their count.
        unsafe {
            let (data, count) = (LLVMGetIndices(self.0), LLVMGetNumIndices(self.0) as usize);
            if count == 0 { &[] } else { std::slice::from_raw_parts(data, count) }
        }
    }

    /// The mask of a `shufflevector`; `None` where an element is undefined.
    pub(crate) fn shuffle_mask(self) -> Vec<Option<u32>> {
        // SAFETY: only called for `shufflevector`.
        let count = unsafe { LLVMGetNumMaskElements(self.0) };
        // SAFETY: the index is below the count.
        let element = |index| -> c_int { unsafe { LLVMGetMaskValue(self.0, index) } };
        (0..count).map(|index| u32::try_from(element(index)).ok()).collect()
    }

    /// The callee of a call.
    pub(crate) fn callee(self) -> Value<'m> {
        // SAFETY: only called for calls.
        Value(unsafe { LLVMGetCalledValue(self.0) }, PhantomData)
    }

    /// The function type of a call.
    pub(crate) fn call_type(self) -> Type<'m> {
        // SAFETY: only called for calls.
        Type(unsafe { LLVMGetCalledFunctionType(self.0) }, PhantomData)
    }

    pub(crate) fn call_convention(self) -> u32 {
        // SAFETY: only called for calls.
        unsafe { LLVMGetInstructionCallConv(self.0) }
    }

    pub(crate) fn arguments(self) -> Vec<Value<'m>> {
        // SAFETY: only called for calls.
        let count = unsafe { LLVMGetNumArgOperands(self.0) };
        (0..count).map(|index| self.operand(index)).collect()
    }

    pub(crate) fn must_tail(self) -> bool {
        // SAFETY: only called for calls.
        unsafe { LLVMGetTailCallKind(self.0) == LLVMTailCallKind::LLVMTailCallKindMustTail }
    }

    pub(crate) fn has_bundles(self) -> bool {
        // SAFETY: only called for calls.
        unsafe { LLVMGetNumOperandBundles(self.0) > 0 }
    }

    /// The text of inline assembly.
    pub(crate) fn asm_text(self) -> String {
        let mut length = 0;
        // SAFETY: only called for inline assembly.
        let data = unsafe { LLVMGetInlineAsmAsmString(self.0, &mut length) };
        text(data, length)
    }

    /// The constraints of inline assembly.
    pub(crate) fn asm_constraints(self) -> String {
        let mut length = 0;
        // SAFETY: only called for inline assembly.
        let data = unsafe { LLVMGetInlineAsmConstraintString(self.0, &mut length) };
        text(data, length)
    }

    pub(crate) fn asm_has_side_effects(self) -> bool {
        // SAFETY: only called for inline assembly.
        unsafe { LLVMGetInlineAsmHasSideEffects(self.0) != 0 }
    }

    /// A modifier of inline assembly that PTX does not support, by its name in LLVM's text.
    pub(crate) fn asm_foreign(self) -> Option<&'static str> {
        // SAFETY: only called for inline assembly.
        unsafe {
            if LLVMGetInlineAsmNeedsAlignedStack(self.0) != 0 {
                Some("alignstack")
            } else if LLVMGetInlineAsmCanUnwind(self.0) != 0 {
                Some("unwind")
            } else if LLVMGetInlineAsmDialect(self.0)
                == LLVMInlineAsmDialect::LLVMInlineAsmDialectIntel
            {
                Some("inteldialect")
            } else {
                None
            }
        }
    }
}
