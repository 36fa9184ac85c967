//! Warp shuffles and votes.

use inkwell::values::{BasicValueEnum, IntValue};

use super::bug;
use super::function::FunctionEmitter;
use super::values::{int, result};
use crate::builtins::{ShuffleMode, VoteMode};
use crate::error::Result;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// A shuffle of a 32- or 64-bit scalar or a pointer. The hardware moves 32 bits, so 64 go in two halves.
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
            BasicValueEnum::FloatValue(_) => {
                let is_single = ty == self.cx.context.f32_type().into();
                int(build.build_bit_cast(value, if is_single { word } else { wide }, "")?)?
            }
            BasicValueEnum::PointerValue(value) => build.build_ptr_to_int(value, wide, "")?,
            other => return Err(bug(format!("a shuffle of {other}"))),
        };
        let moved = match bits.get_type().get_bit_width() {
            _ if self.cx.cpu().is_some() => self.host_shuffle(mode, mask, bits, lane)?,
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

    /// A vote: `u32` for a ballot, else `bool`.
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
}
