//! Built-in operations: dispatches each to the file that emits it, and emits the few that are one
//! instruction.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{BasicMetadataValueEnum, BasicValue as _, BasicValueEnum, IntValue};

use super::bug;
use super::function::FunctionEmitter;
use super::values::result;
use crate::error::Result;
use gridlet_lang::builtins::{Builtin, Memory, Scope};
use gridlet_lang::ir::{GlobalId, Operand};
use gridlet_lang::types::Type;

/// LLVM's number for `memory(inaccessiblemem: readwrite)` (llvm/Support/ModRef.h).
const INACCESSIBLE_MEMORY: u64 = 0xc;

/// The assembly that stops the grid.
pub(crate) const TRAP: &str = "trap;";

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Emits a built-in operation with a result of type `ty`.
    pub(super) fn builtin(
        &self,
        builtin: Builtin,
        arguments: &[Operand],
        format: Option<GlobalId>,
        ty: &Type,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let types: Vec<Type> = arguments.iter().map(|operand| self.type_of(operand)).collect();
        let mut values = arguments
            .iter()
            .map(|operand| self.operand(operand))
            .collect::<Result<Vec<BasicValueEnum<'ctx>>>>()?;
        let builtin = self.in_known_scope(builtin, arguments);
        if matches!(builtin.properties().memory, Memory::Atomic(_)) {
            let address = if self.is_assembly(builtin) {
                self.accessed_by_assembly(&arguments[0])?
            } else {
                self.accessed(&arguments[0])?
            };
            values[0] = address.into();
        }
        let wrong = || bug(format!("wrong arguments of `{}`: {types:?}", builtin.name()));
        if self.cx.cpu().is_some()
            && let Some(done) = self.device_builtin(builtin, &values, ty)?
        {
            return Ok(done);
        }
        let value = match (builtin, values.as_slice()) {
            (Builtin::SyncThreads, []) => return self.effect("llvm.nvvm.barrier0", &[]),
            (Builtin::SyncThreadsReduce(op), [predicate]) => {
                self.barrier_reduction(op, *predicate)?
            }
            (Builtin::SyncWarp, [_]) => return self.effect("llvm.nvvm.bar.warp.sync", &values),
            (Builtin::Fence(scope), []) => return self.effect(fence_name(scope), &[]),
            (Builtin::Trap, []) => {
                self.emit_trap()?;
                return Ok(None);
            }
            (Builtin::Shuffle(mode), [mask, value, lane]) => {
                self.shuffle(mode, *mask, *value, *lane)?
            }
            (Builtin::Vote(mode), [mask, predicate]) => self.vote(mode, *mask, *predicate)?,
            (Builtin::MatchAny, [mask, value]) => self.match_any(*mask, *value)?,
            (Builtin::Reduce(op), [mask, value]) => {
                self.reduce(op, *mask, *value, ty.as_scalar().ok_or_else(wrong)?)?
            }
            (Builtin::ActiveMask, []) => self.assembly("activemask.b32 $0;", 32, &[])?,
            (Builtin::LaneId, []) => self.lane_id()?,
            (Builtin::SmId, []) => self.special_register("smid")?,
            // As assembly, because LLVM 7 merges two reads of the intrinsic.
            (Builtin::Clock64, []) => self.assembly("mov.u64 $0, %clock64;", 64, &[])?,
            (Builtin::GlobalTimer, []) => self.assembly("mov.u64 $0, %globaltimer;", 64, &[])?,
            (Builtin::Atomic(op, scope), [address, value]) => {
                let scalar = ty.as_scalar().ok_or_else(wrong)?;
                self.atomic(op, scope, *address, *value, scalar)?
            }
            (Builtin::AtomicCas(scope), [address, expected, new]) => {
                self.atomic_cas(scope, *address, *expected, *new)?
            }
            (Builtin::AtomicLoad(order, scope), [address]) => {
                self.atomic_load(order, scope, *address, ty)?
            }
            (Builtin::AtomicStore(order, scope), [address, value]) => {
                self.atomic_store(order, scope, *address, *value)?;
                return Ok(None);
            }
            (Builtin::Math(op), _) => self.math(op, ty.as_scalar().ok_or_else(wrong)?, &values)?,
            (Builtin::Bit(op), [value]) => self.bit(op, *value)?,
            (Builtin::MulHi, [left, right]) => {
                self.mul_hi(*left, *right, ty.as_scalar().ok_or_else(wrong)?)?
            }
            (Builtin::Bitcast, [value]) => {
                self.build().build_bit_cast(*value, self.cx.value_type(ty)?, "")?
            }
            (Builtin::Assert, [message, file, line, function]) => {
                self.assert_fail(*message, *file, *line, *function)?;
                return Ok(None);
            }
            (Builtin::Malloc, [bytes]) => self.malloc(*bytes)?,
            (Builtin::Free, [_]) => return self.effect("free", &values),
            (Builtin::Printf, _) => self.printf(format.ok_or_else(wrong)?, &values, &types)?,
            // Other numbers of arguments, and built-ins that an earlier stage replaces.
            (
                Builtin::SyncThreads
                | Builtin::SyncThreadsReduce(_)
                | Builtin::SyncWarp
                | Builtin::Fence(_)
                | Builtin::Trap
                | Builtin::Shuffle(_)
                | Builtin::Vote(_)
                | Builtin::MatchAny
                | Builtin::Reduce(_)
                | Builtin::ActiveMask
                | Builtin::LaneId
                | Builtin::SmId
                | Builtin::Clock64
                | Builtin::GlobalTimer
                | Builtin::Atomic(..)
                | Builtin::AtomicCas(_)
                | Builtin::AtomicLoad(..)
                | Builtin::AtomicStore(..)
                | Builtin::Bit(_)
                | Builtin::MulHi
                | Builtin::Bitcast
                | Builtin::Assert
                | Builtin::Malloc
                | Builtin::Free
                | Builtin::SizeOf
                | Builtin::AlignOf
                | Builtin::StreamCreate
                | Builtin::StreamDestroy
                | Builtin::MemcpyAsync
                | Builtin::MemsetAsync
                | Builtin::DeviceLastError,
                _,
            ) => return Err(wrong()),
        };
        Ok(Some(value))
    }

    /// Calls an intrinsic or a CUDA function without a result.
    pub(super) fn effect(
        &self,
        name: &str,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let types: Vec<_> = arguments.iter().map(|argument| argument.get_type()).collect();
        let function = self.cx.declare(name, None, &types)?;
        self.emit_call(function, arguments, "")?;
        Ok(None)
    }

    /// Stops the grid with an error.
    pub(super) fn emit_trap(&self) -> Result<()> {
        self.effect("llvm.trap", &[])?;
        Ok(())
    }

    /// Stops the grid with an error, in a way that optimisers take for an instruction which has an effect that no other
    /// code sees, and which may or may not return. They know that `llvm.trap` never does.
    pub(super) fn trap_and_go_on(&self) -> Result<()> {
        let ty = self.cx.function_type(None, &[]);
        let assembly = self.cx.context.create_inline_asm(
            ty,
            TRAP.into(),
            String::new(),
            true,
            false,
            None,
            false,
        );
        let call = self.build().build_indirect_call(ty, assembly, &[], "")?;
        for (name, value) in [("nounwind", 0), ("memory", INACCESSIBLE_MEMORY)] {
            let kind = Attribute::get_named_enum_kind_id(name);
            let attribute = self.cx.context.create_enum_attribute(kind, value);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        Ok(())
    }

    /// Reads a 32-bit special register that does not change while a thread runs.
    pub(super) fn special_register(&self, name: &str) -> Result<BasicValueEnum<'ctx>> {
        let intrinsic = format!("llvm.nvvm.read.ptx.sreg.{name}");
        let function = self.cx.declare(&intrinsic, Some(self.cx.int_type(32).into()), &[])?;
        result(self.emit_call(function, &[], name)?)
    }

    /// The lane. LLVM knows by itself that it is less than 32, but libNVVM does not.
    fn lane_id(&self) -> Result<BasicValueEnum<'ctx>> {
        let lane = self.special_register("laneid")?;
        if let Some(read) = lane.as_instruction_value() {
            let word = self.cx.int_type(32);
            let range = [0, 32].map(|bound| word.const_int(bound, false).into());
            let kind = self.cx.context.get_kind_id("range");
            read.set_metadata(self.cx.context.metadata_node(&range), kind)
                .map_err(|error| bug(format!("range of the lane: {error}")))?;
        }
        Ok(lane)
    }

    /// Assembly that computes an integer of `bits` from 32-bit integers, and must not be moved.
    pub(super) fn assembly(
        &self,
        text: &str,
        bits: u32,
        arguments: &[IntValue<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        if self.cx.cpu().is_some() {
            return Err(bug(format!("`{text}` on the CPU")));
        }
        let word = self.cx.int_type(32).into();
        let parameters = vec![word; arguments.len()];
        let ty = self.cx.function_type(Some(self.cx.int_type(bits).into()), &parameters);
        let mut constraints = String::from(if bits == 64 { "=l" } else { "=r" });
        constraints.push_str(&",r".repeat(arguments.len()));
        let assembly = self.cx.context.create_inline_asm(
            ty,
            text.into(),
            constraints,
            true,
            false,
            None,
            false,
        );
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> =
            arguments.iter().map(|&argument| argument.into()).collect();
        let call = self.build().build_indirect_call(ty, assembly, &arguments, "")?;
        for name in ["convergent", "nounwind"] {
            let kind = Attribute::get_named_enum_kind_id(name);
            let attribute = self.cx.context.create_enum_attribute(kind, 0);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        result(call)
    }
}

/// `membar` at each level (NVVM IR Specification, "Barrier and Memory Fence").
fn fence_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "llvm.nvvm.membar.cta",
        Scope::Device => "llvm.nvvm.membar.gl",
        Scope::System => "llvm.nvvm.membar.sys",
    }
}
