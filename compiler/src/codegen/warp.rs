//! Warp shuffles, votes and reductions, and barriers that reduce.

use inkwell::values::{BasicValueEnum, IntValue};

use super::bug;
use super::function::FunctionEmitter;
use super::values::{int, result};
use crate::error::Result;
use gridlet_lang::builtins::{BlockReduceOp, ReduceOp, ShuffleMode, VoteMode};
use gridlet_lang::types::Scalar;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Shuffles a scalar of at least 16 bits, or a pointer. The hardware moves 32 bits, so 64 go in
    /// two halves.
    pub(super) fn shuffle(
        &self,
        mode: ShuffleMode,
        mask: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
        lane: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let build = self.build();
        let ty = value.get_type();
        let (word, wide) = (self.cx.int_type(32), self.cx.int_type(64));
        let bits = match value {
            BasicValueEnum::IntValue(value) => value,
            BasicValueEnum::FloatValue(float) => {
                let bits = self.cx.int_type(float.get_type().get_bit_width());
                int(build.build_bit_cast(value, bits, "")?)?
            }
            BasicValueEnum::PointerValue(value) => build.build_ptr_to_int(value, wide, "")?,
            other => return Err(bug(format!("a shuffle of {other}"))),
        };
        let moved = match bits.get_type().get_bit_width() {
            _ if self.cx.cpu().is_some() => self.device_shuffle(mode, mask, bits, lane)?,
            16 => {
                let narrow = bits.get_type();
                let bits = build.build_int_z_extend(bits, word, "")?;
                let moved = self.shuffle_word(mode, mask, bits, lane)?;
                build.build_int_truncate(moved, narrow, "")?
            }
            32 => self.shuffle_word(mode, mask, bits, lane)?,
            64 => {
                let half = wide.const_int(32, false);
                let low = build.build_int_truncate(bits, word, "")?;
                let high = build.build_right_shift(bits, half, false, "")?;
                let high = build.build_int_truncate(high, word, "")?;
                let low = self.shuffle_word(mode, mask, low, lane)?;
                let high = self.shuffle_word(mode, mask, high, lane)?;
                let low = build.build_int_z_extend(low, wide, "")?;
                let high = build.build_int_z_extend(high, wide, "")?;
                build.build_or(build.build_left_shift(high, half, "")?, low, "")?
            }
            bits => return Err(bug(format!("a shuffle of {bits} bits"))),
        };
        Ok(match value {
            BasicValueEnum::FloatValue(_) => build.build_bit_cast(moved, ty, "")?,
            BasicValueEnum::PointerValue(_) => {
                build.build_int_to_ptr(moved, self.cx.pointer_type(), "")?.into()
            }
            _ => moved.into(),
        })
    }

    fn shuffle_word(
        &self,
        mode: ShuffleMode,
        mask: BasicValueEnum<'ctx>,
        value: IntValue<'ctx>,
        lane: BasicValueEnum<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        // The last operand clamps the source lane to the warp: PTX ISA, `shfl.sync`.
        let (name, clamp) = match mode {
            ShuffleMode::Index => ("idx", 31),
            ShuffleMode::Up => ("up", 0),
            ShuffleMode::Down => ("down", 31),
            ShuffleMode::Xor => ("bfly", 31),
        };
        let word = self.cx.int_type(32);
        let name = format!("llvm.nvvm.shfl.sync.{name}.i32");
        let function = self.cx.declare(&name, Some(word.into()), &[word.into(); 4])?;
        let clamp = word.const_int(clamp, false).into();
        int(result(self.emit_call(function, &[mask, value.into(), lane, clamp], "")?)?)
    }

    /// A vote: a ballot returns `u32`, the others `bool`.
    pub(super) fn vote(
        &self,
        mode: VoteMode,
        mask: BasicValueEnum<'ctx>,
        predicate: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (word, flag) = (self.cx.int_type(32), self.cx.int_type(1));
        let (name, ty) = match mode {
            VoteMode::Ballot => ("ballot", word),
            VoteMode::Any => ("any", flag),
            VoteMode::All => ("all", flag),
        };
        let name = format!("llvm.nvvm.vote.{name}.sync");
        let parameters = [word.into(), flag.into()];
        let function = self.cx.declare(&name, Some(ty.into()), &parameters)?;
        result(self.emit_call(function, &[mask, predicate], "")?)
    }

    /// The lanes of the mask with the same bits, as a `u32`.
    pub(super) fn match_any(
        &self,
        mask: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let word = self.cx.int_type(32);
        let bits = int(self.number_bits(value)?)?;
        let name = format!("llvm.nvvm.match.any.sync.i{}", bits.get_type().get_bit_width());
        let parameters = [word.into(), bits.get_type().into()];
        let function = self.cx.declare(&name, Some(word.into()), &parameters)?;
        result(self.emit_call(function, &[mask, bits.into()], "")?)
    }

    /// Reduces a 32-bit integer with `redux.sync`, from sm_80 on.
    pub(super) fn reduce(
        &self,
        op: ReduceOp,
        mask: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        let operation = match (op, scalar) {
            (ReduceOp::Add, Scalar::I32 | Scalar::U32) => "add",
            (ReduceOp::Min, Scalar::I32) => "min",
            (ReduceOp::Min, Scalar::U32) => "umin",
            (ReduceOp::Max, Scalar::I32) => "max",
            (ReduceOp::Max, Scalar::U32) => "umax",
            (ReduceOp::And, Scalar::I32 | Scalar::U32) => "and",
            (ReduceOp::Or, Scalar::I32 | Scalar::U32) => "or",
            (ReduceOp::Xor, Scalar::I32 | Scalar::U32) => "xor",
            _ => return Err(bug(format!("`redux.sync` of {}", scalar.name()))),
        };
        let word = self.cx.int_type(32).into();
        let name = format!("llvm.nvvm.redux.sync.{operation}");
        let function = self.cx.declare(&name, Some(word), &[word; 2])?;
        result(self.emit_call(function, &[value, mask], "")?)
    }

    /// A barrier that counts or combines one `bool` per thread. As assembly, because the
    /// intrinsics' names differ between versions of LLVM.
    pub(super) fn barrier_reduction(
        &self,
        op: BlockReduceOp,
        predicate: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let word = self.cx.int_type(32);
        let bit = self.build().build_int_z_extend(int(predicate)?, word, "")?;
        let (name, result, after) = match op {
            BlockReduceOp::Count => ("popc.aligned.u32", "$0", ""),
            BlockReduceOp::And => ("and.aligned.pred", "q", " selp.u32 $0, 1, 0, q;"),
            BlockReduceOp::Or => ("or.aligned.pred", "q", " selp.u32 $0, 1, 0, q;"),
        };
        let text = format!(
            "{{ .reg .pred p, q; setp.ne.u32 p, $1, 0; barrier.red.{name} {result}, 0, p;{after} }}"
        );
        let value = int(self.assembly(&text, 32, &[bit])?)?;
        if op == BlockReduceOp::Count {
            return Ok(value.into());
        }
        Ok(self.byte_to_bool(value, "")?.into())
    }
}
