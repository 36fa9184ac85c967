//! Callbacks into the CPU device: built-ins and the device runtime.

use gridlet_artifact::cpu::abi::{self, Callback};
use inkwell::AtomicOrdering;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, IntValue, PointerValue,
};

use crate::codegen::bug;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::values::{int, pointer, result};
use crate::error::Result;
use gridlet_lang::builtins::{Builtin, ReduceOp, ShuffleMode, VoteMode};
use gridlet_lang::ir::{Block, BlockId, Extern, InstKind};
use gridlet_lang::launch::{CpuArgument, CpuCall, DeviceFunction};
use gridlet_lang::types::{Scalar, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Emits a callback.
    pub(in crate::codegen) fn callback(
        &self,
        callback: Callback,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<CallSiteValue<'ctx>> {
        let Some(cpu) = self.cx.cpu() else { return Err(bug("a callback on a GPU")) };
        let build = self.build();
        let pointer_type = self.cx.pointer_type();
        let table = pointer(self.load_invariant(cpu.table)?)?;
        let entry = self.offset(table, callback as u64 * 8, "")?;
        let function = pointer(self.load_invariant(entry)?)?;
        let (word, wide): (BasicTypeEnum<'ctx>, BasicTypeEnum<'ctx>) =
            (self.cx.int_type(32).into(), self.cx.int_type(64).into());
        let result = match callback {
            Callback::SharedBase | Callback::GetParameterBuffer | Callback::Malloc => {
                Some(pointer_type.into())
            }
            Callback::Shuffle | Callback::Combine | Callback::Clock64 | Callback::GlobalTimer => {
                Some(wide)
            }
            Callback::Vote
            | Callback::ActiveMask
            | Callback::LaneId
            | Callback::LaunchDevice
            | Callback::Printf
            | Callback::SmId
            | Callback::StreamCreate
            | Callback::StreamDestroy
            | Callback::MemcpyAsync
            | Callback::MemsetAsync
            | Callback::LastError => Some(word),
            Callback::SyncThreads
            | Callback::SyncWarp
            | Callback::Trap
            | Callback::CheckAccess
            | Callback::Poll
            | Callback::Free
            | Callback::AssertFail
            | Callback::IndexOutOfBounds
            | Callback::LocalBegins
            | Callback::LocalsEnd
            | Callback::ReturnsEarly => None,
        };
        let types: Vec<_> = arguments.iter().map(|argument| argument.get_type()).collect();
        let ty = self.cx.function_type(result, &types);
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> =
            arguments.iter().map(|&argument| argument.into()).collect();
        let call = build.build_indirect_call(ty, function, &arguments, "")?;
        let attributes: &[&str] = match callback {
            // The result is constant within a function; a `memory` attribute of 0 means no access
            // at all.
            Callback::SharedBase | Callback::LaneId => &["nounwind", "willreturn", "memory"],
            Callback::Trap | Callback::AssertFail | Callback::IndexOutOfBounds => {
                &["nounwind", "noreturn", "cold"]
            }
            _ => &["nounwind"],
        };
        for name in attributes {
            let kind = Attribute::get_named_enum_kind_id(name);
            let attribute = self.cx.context.create_enum_attribute(kind, 0);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        Ok(call)
    }

    /// Loads a pointer that never changes while kernels run.
    fn load_invariant(&self, from: PointerValue<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let value = self.build().build_load(self.cx.pointer_type(), from, "")?;
        if let Some(load) = value.as_instruction_value() {
            self.mark_invariant(load)?;
        }
        Ok(value)
    }

    /// A constant `u32`.
    pub(super) fn word(&self, value: u32) -> BasicValueEnum<'ctx> {
        self.cx.int_type(32).const_int(u64::from(value), false).into()
    }

    /// The current source position, as an `abi::Location`.
    pub(in crate::codegen) fn location(&self) -> BasicValueEnum<'ctx> {
        let span = self.span.get();
        self.word(abi::location(span.file.0, self.cx.ir.sources.line(span)))
    }

    /// Sets the current source position to an instruction's.
    pub(in crate::codegen) fn enter_instruction(&self, id: gridlet_lang::ir::InstId) {
        if let Some(inst) = self.function.instructions.get(id.index()) {
            self.span.set(inst.span);
            let is_prologue = self.in_prologue.replace(self.begins_parameter(&inst.kind));
            self.set_debug_location();
            self.in_prologue.set(is_prologue);
        }
    }

    /// Sets the current source position to that of a block's end, if it has one.
    pub(in crate::codegen) fn enter_end(&self, block: &Block) {
        if let Some(span) = block.end {
            self.span.set(span);
            self.set_debug_location();
        }
    }

    /// Emits a trap, which ends the grid.
    pub(in crate::codegen) fn trap(&self, kind: u32) -> Result<()> {
        let thread = self.known_thread()?;
        self.callback(Callback::Trap, &[self.word(kind), self.location(), thread])?;
        Ok(())
    }

    /// The thread's number in its block, if the function takes the geometry.
    pub(super) fn known_thread(&self) -> Result<BasicValueEnum<'ctx>> {
        match self.function.takes_geometry {
            true => Ok(self.thread_number()?.into()),
            false => Ok(self.word(abi::THREAD_UNKNOWN)),
        }
    }

    /// Whether the last instruction of a block is a trap.
    pub(in crate::codegen) fn ends_in_trap(&self, block: &Block) -> bool {
        let last = block.instructions.last();
        let last = last.and_then(|id| self.function.instructions.get(id.index()));
        last.is_some_and(
            |inst| matches!(inst.kind, InstKind::Builtin { builtin, .. } if builtin.ends()),
        )
    }

    /// Whether a block only traps because of a zero divisor: see `ir::build::arithmetic`.
    pub(in crate::codegen) fn is_division_trap(&self, id: BlockId) -> bool {
        let block = self.function.blocks.get(id.index());
        block.is_some_and(|block| {
            block.name.starts_with("div.by_zero")
                && block.instructions.len() == 1
                && self.ends_in_trap(block)
        })
    }

    /// Emits a built-in that the device implements. The outer `None` means that the device is not
    /// needed, the inner one that there is no result.
    pub(in crate::codegen) fn device_builtin(
        &self,
        builtin: Builtin,
        values: &[BasicValueEnum<'ctx>],
        ty: &Type,
    ) -> Result<Option<Option<BasicValueEnum<'ctx>>>> {
        let value = |call: CallSiteValue<'ctx>| Ok(Some(Some(result(call)?)));
        match (builtin, values) {
            (Builtin::SyncThreads, []) => {
                self.callback(Callback::SyncThreads, &[self.location()])?;
            }
            (Builtin::SyncWarp, [mask]) => {
                self.callback(Callback::SyncWarp, &[*mask, self.location()])?;
            }
            (Builtin::Fence(_), []) => {
                let order = AtomicOrdering::SequentiallyConsistent;
                self.build().build_fence(order, false, "")?;
            }
            (Builtin::Trap, []) => self.trap(abi::TRAP_EXPLICIT)?,
            (Builtin::Assert, [message, file, line, function]) => {
                self.cpu_assert([*message, *file, *line, *function])?;
            }
            (Builtin::AtomicLoad(order, _), [address]) => {
                return Ok(Some(Some(self.cpu_atomic_load(order, *address, ty)?)));
            }
            (Builtin::AtomicStore(order, _), [address, value]) => {
                self.cpu_atomic_store(order, *address, *value)?;
            }
            (Builtin::Vote(mode), [mask, predicate]) => {
                return Ok(Some(Some(self.device_vote(mode, *mask, int(*predicate)?)?)));
            }
            (Builtin::MatchAny, [mask, operand]) => {
                let lanes = self.device_combine(abi::COMBINE_MATCH, *mask, *operand)?;
                let word = self.cx.int_type(32);
                return Ok(Some(Some(self.build().build_int_truncate(lanes, word, "")?.into())));
            }
            (Builtin::Reduce(op), [mask, operand]) => {
                return Ok(Some(Some(self.device_reduce(op, *mask, *operand, ty)?)));
            }
            (Builtin::ActiveMask, []) => return value(self.callback(Callback::ActiveMask, &[])?),
            (Builtin::LaneId, []) if self.function.takes_geometry => {
                return Ok(Some(Some(self.lane_of_geometry()?)));
            }
            (Builtin::LaneId, []) => return value(self.callback(Callback::LaneId, &[])?),
            (Builtin::Malloc, [bytes]) => {
                let address = result(self.callback(Callback::Malloc, &[*bytes])?)?;
                self.check_malloc(address, *bytes)?;
                return Ok(Some(Some(address)));
            }
            (Builtin::Free, [address]) => {
                self.check_free(*address)?;
                self.callback(Callback::Free, &[*address, self.location()])?;
            }
            (Builtin::SmId, []) => return value(self.callback(Callback::SmId, &[])?),
            (Builtin::Clock64, []) => return value(self.callback(Callback::Clock64, &[])?),
            (Builtin::GlobalTimer, []) => {
                return value(self.callback(Callback::GlobalTimer, &[])?);
            }
            // Wrong numbers of arguments, which `builtin` reports, and built-ins that need no device.
            (
                Builtin::SyncThreads
                | Builtin::SyncWarp
                | Builtin::Fence(_)
                | Builtin::Trap
                | Builtin::Assert
                | Builtin::AtomicLoad(..)
                | Builtin::AtomicStore(..)
                | Builtin::Vote(_)
                | Builtin::ActiveMask
                | Builtin::LaneId
                | Builtin::Malloc
                | Builtin::Free
                | Builtin::SmId
                | Builtin::Clock64
                | Builtin::GlobalTimer
                | Builtin::SyncThreadsReduce(_)
                | Builtin::Shuffle(_)
                | Builtin::MatchAny
                | Builtin::Reduce(_)
                | Builtin::Atomic(..)
                | Builtin::AtomicCas(_)
                | Builtin::Math(_)
                | Builtin::Bit(_)
                | Builtin::MulHi
                | Builtin::Bitcast
                | Builtin::Printf
                | Builtin::SizeOf
                | Builtin::AlignOf
                | Builtin::StreamCreate
                | Builtin::StreamDestroy
                | Builtin::MemcpyAsync
                | Builtin::MemsetAsync
                | Builtin::DeviceLastError,
                _,
            ) => return Ok(None),
        }
        Ok(Some(None))
    }

    fn device_vote(
        &self,
        mode: VoteMode,
        mask: BasicValueEnum<'ctx>,
        predicate: IntValue<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let number = match mode {
            VoteMode::Ballot => abi::VOTE_BALLOT,
            VoteMode::Any => abi::VOTE_ANY,
            VoteMode::All => abi::VOTE_ALL,
        };
        let word = self.cx.int_type(32);
        let predicate = self.build().build_int_z_extend(predicate, word, "")?.into();
        let arguments = [self.word(number), mask, predicate, self.location()];
        let value = result(self.callback(Callback::Vote, &arguments)?)?;
        match mode {
            VoteMode::Ballot => Ok(value),
            VoteMode::Any | VoteMode::All => Ok(self.byte_to_bool(int(value)?, "")?.into()),
        }
    }

    fn device_reduce(
        &self,
        op: ReduceOp,
        mask: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
    ) -> Result<BasicValueEnum<'ctx>> {
        let scalar = ty.as_scalar().ok_or_else(|| bug(format!("a reduction of {ty:?}")))?;
        let combined = self.device_combine(combine_mode(op, scalar)?, mask, value)?;
        let bits = int(self.number_bits(value)?)?.get_type();
        let bits = self.build().build_int_truncate_or_bit_cast(combined, bits, "")?;
        Ok(self.build().build_bit_cast(bits, value.get_type(), "")?)
    }

    /// Combines a number with those of the other lanes.
    fn device_combine(
        &self,
        mode: u32,
        mask: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let (bits, wide) = (int(self.number_bits(value)?)?, self.cx.int_type(64));
        let value = self.build().build_int_z_extend_or_bit_cast(bits, wide, "")?.into();
        let arguments = [self.word(mode), mask, value, self.location()];
        int(result(self.callback(Callback::Combine, &arguments)?)?)
    }

    /// Shuffles up to 64 bits.
    pub(in crate::codegen) fn device_shuffle(
        &self,
        mode: ShuffleMode,
        mask: BasicValueEnum<'ctx>,
        bits: IntValue<'ctx>,
        lane: BasicValueEnum<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let number = match mode {
            ShuffleMode::Index => abi::SHUFFLE_INDEX,
            ShuffleMode::Up => abi::SHUFFLE_UP,
            ShuffleMode::Down => abi::SHUFFLE_DOWN,
            ShuffleMode::Xor => abi::SHUFFLE_XOR,
        };
        let (ty, wide) = (bits.get_type(), self.cx.int_type(64));
        let value = self.build().build_int_z_extend_or_bit_cast(bits, wide, "")?.into();
        let arguments = [self.word(number), mask, value, lane, self.location()];
        let moved = int(result(self.callback(Callback::Shuffle, &arguments)?)?)?;
        Ok(self.build().build_int_truncate_or_bit_cast(moved, ty, "")?)
    }

    /// Calls the device in place of a function that it provides.
    pub(in crate::codegen) fn call_device_runtime(
        &self,
        item: &Extern,
        function: &DeviceFunction,
        arguments: &[BasicValueEnum<'ctx>],
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let CpuCall { callback, arguments: kinds, tells_position } = function.cpu;
        if [kinds.len(), item.parameters.len()] != [arguments.len(); 2] {
            return Err(bug(format!("a call of `{}` on the CPU", item.name)));
        }
        let mut passed = Vec::with_capacity(arguments.len() + 1);
        for ((kind, &value), ty) in kinds.iter().zip(arguments).zip(&item.parameters) {
            match kind {
                CpuArgument::Value => passed.push(value),
                CpuArgument::Copy(name) => passed.push(self.in_memory(value, ty, name)?),
                CpuArgument::Number => passed.push(self.address(value)?),
                CpuArgument::Omitted => {}
            }
        }
        if tells_position {
            passed.push(self.location());
        }
        let value = result(self.callback(callback, &passed)?)?;
        value.set_name(name);
        Ok(Some(value))
    }

    /// A pointer as a number.
    fn address(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let wide = self.cx.int_type(64);
        Ok(self.build().build_ptr_to_int(pointer(value)?, wide, "")?.into())
    }

    /// The address of a stack copy of a value, until the next value of that name is copied.
    fn in_memory(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
        name: &'static str,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (size, alignment) = (self.cx.size(ty), self.cx.alignment(ty));
        let key = (name, size, alignment);
        let known = self.argument_copies.borrow().get(&key).copied();
        let copy = match known {
            Some(known) => known,
            None => self.temporary(size, alignment, name)?,
        };
        self.argument_copies.borrow_mut().insert(key, copy);
        self.store_part(copy, 0, value, ty)?;
        Ok(copy.into())
    }
}

/// The mode of [`abi::Callbacks::combine`] for a reduction.
fn combine_mode(op: ReduceOp, scalar: Scalar) -> Result<u32> {
    let operation = match op {
        ReduceOp::Add => abi::COMBINE_ADD,
        ReduceOp::Min => abi::COMBINE_MIN,
        ReduceOp::Max => abi::COMBINE_MAX,
        ReduceOp::And => abi::COMBINE_AND,
        ReduceOp::Or => abi::COMBINE_OR,
        ReduceOp::Xor => abi::COMBINE_XOR,
    };
    let ordered = matches!(op, ReduceOp::Min | ReduceOp::Max);
    let ty = match scalar {
        Scalar::F32 => abi::COMBINE_F32,
        Scalar::F64 => abi::COMBINE_F64,
        Scalar::I32 if ordered => abi::COMBINE_I32,
        Scalar::U32 if ordered => abi::COMBINE_U32,
        Scalar::I64 if ordered => abi::COMBINE_I64,
        Scalar::U64 if ordered => abi::COMBINE_U64,
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 => abi::COMBINE_BITS,
        _ => return Err(bug(format!("a reduction of {}", scalar.name()))),
    };
    Ok(operation | ty)
}
