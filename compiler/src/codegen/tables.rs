//! Short tables of small numbers, as one number.
//!
//! A table like `const LENGTHS: [u8; 16] = [1, 1, 2, …]` has 16 numbers of 4 bits, which fit into 64 bits. An element is a shift and a mask
//! then, and nobody waits for memory. `#[unroll]` and constant indices lose nothing, because LLVM computes with either form.

use inkwell::values::BasicValueEnum;

use crate::codegen::function::FunctionEmitter;
use crate::error::Result;
use gridlet_lang::ir::{Global, Init, InstKind, Operand, Space};
use gridlet_lang::types::Type;

use super::values::int;

/// All elements of a table.
struct Packed {
    word: u64,
    /// The bits of `word` that are needed: 32 or 64.
    width: u32,
    /// Of an element, as a logarithm.
    log_bits: u32,
}

impl Packed {
    /// `None` if the elements have a sign or do not fit.
    fn of(elements: &[u64]) -> Option<Packed> {
        let largest = elements.iter().max()?;
        let needed = (u64::BITS - largest.leading_zeros()).max(1);
        let bits = needed.next_power_of_two();
        let all = u64::from(bits) * elements.len() as u64;
        if elements.len() < 2 || all > 64 {
            return None;
        }
        let places = (0..).step_by(bits as usize);
        let word = elements.iter().zip(places).fold(0, |word, (one, at)| word | one << at);
        Some(Packed { word, width: if all <= 32 { 32 } else { 64 }, log_bits: bits.ilog2() })
    }
}

/// The elements of a constant table of integers; `None` for others, and if one is negative.
fn elements(global: &Global, size: u64) -> Option<Vec<u64>> {
    let (Type::Array(element, _), Init::Bytes(bytes), Space::Constant) =
        (&global.ty, &global.init, global.space)
    else {
        return None;
    };
    let Type::Scalar(scalar) = &**element else { return None };
    let size = usize::try_from(size).ok().filter(|size| (1..=8).contains(size))?;
    let parts = bytes.chunks_exact(size).map(|bytes| {
        let mut all = [0; 8];
        all[..size].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    });
    let is_negative = |one: &u64| scalar.is_signed() && one >> (8 * size - 1) != 0;
    let parts: Vec<u64> = parts.collect();
    (scalar.is_integer() && !parts.iter().any(is_negative)).then_some(parts)
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// An element, chosen at run time, of a short table. `None` for other loads, and for the CPU, whose checks must see the access.
    pub(super) fn load_packed(
        &self,
        from: &Operand,
        ty: &Type,
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let Operand::Inst(id) = from else { return Ok(None) };
        let InstKind::ElementAddress { base: Operand::Global(table), index } =
            &self.function.instructions[id.index()].kind
        else {
            return Ok(None);
        };
        let global = &self.cx.ir.globals[table.index()];
        if self.cx.cpu().is_some() || matches!(index, Operand::Const(_)) {
            return Ok(None);
        }
        let elements = elements(global, self.cx.size(ty));
        let Some(packed) = elements.and_then(|all| Packed::of(&all)) else { return Ok(None) };
        let word = self.cx.int_type(packed.width);
        let index_type = self.type_of(index);
        let index = self.cast(self.operand(index)?, &index_type, &Type::U32)?;
        let index = self.build().build_int_z_extend_or_bit_cast(int(index)?, word, "")?;
        let bits = word.const_int(u64::from(packed.log_bits), false);
        let place = self.build().build_left_shift(index, bits, "")?;
        let all = word.const_int(packed.word, false);
        let shifted = self.build().build_right_shift(all, place, false, "")?;
        let mask = word.const_int((1 << (1 << packed.log_bits)) - 1, false);
        let element = self.build().build_and(shifted, mask, "")?;
        let result = self.cx.int_type(u32::try_from(8 * self.cx.size(ty)).unwrap_or(64));
        Ok(Some(self.build().build_int_cast_sign_flag(element, result, false, name)?.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::Packed;

    #[test]
    fn what_fits_is_packed() {
        let packed =
            |elements: &[u64]| Packed::of(elements).map(|it| (it.word, it.width, it.log_bits));
        assert_eq!(packed(&[1, 0, 1]), Some((0b101, 32, 0)));
        assert_eq!(packed(&[1, 2, 3, 15]), Some((0xf321, 32, 2)));
        assert_eq!(packed(&[5; 9]), Some((0x5_5555_5555, 64, 2)));
        assert_eq!(packed(&[0; 64]), Some((0, 64, 0)));
        assert_eq!(packed(&[1 << 31, 7]), Some((7 << 32 | 1 << 31, 64, 5)));
        assert_eq!(packed(&[0; 65]), None);
        assert_eq!(packed(&[16; 9]), None);
        assert_eq!(packed(&[3]), None);
    }
}
