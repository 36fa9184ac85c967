//! Bounds of the integers in registers, as far as single instructions show them.

use std::collections::BTreeMap;

use super::workarounds::{instruction, writes};

/// How often a function is read for bounds that follow from those of later lines.
const MOST_ROUNDS: u32 = 4;

/// For registers of a function, a number of bits such that all values are from -2^bits to 2^bits.
pub(super) struct Magnitudes<'a>(BTreeMap<&'a str, u32>);

impl<'a> Magnitudes<'a> {
    /// Reads a function's PTX. A register that several instructions write has the largest of their bounds.
    ///
    /// A bound follows only from others that are known before, so a register that is computed from itself has none.
    pub(super) fn of(function: &'a str) -> Magnitudes<'a> {
        let lines: Vec<_> = function.lines().filter_map(parts).collect();
        let writes = writes(function.lines());
        let mut known = Magnitudes(BTreeMap::new());
        for _ in 0..MOST_ROUNDS {
            let before = known.0.len();
            // By register that several lines write, the bounds of those that have one.
            let mut several: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
            for (word, result, sources) in &lines {
                match (known.of_result(word, sources), writes.get(result)) {
                    (Some(bits), Some(1)) => _ = known.0.insert(result, bits),
                    (Some(bits), Some(_)) => several.entry(result).or_default().push(bits),
                    _ => {}
                }
            }
            for (register, all) in several {
                if writes.get(register) == Some(&all.len()) {
                    known.0.extend(all.into_iter().max().map(|bits| (register, bits)));
                }
            }
            if known.0.len() == before {
                break;
            }
        }
        known
    }

    /// The bound of an operand.
    pub(super) fn bits(&self, operand: &str) -> Option<u32> {
        match operand.parse::<i64>() {
            Ok(number) => Some(u64::BITS - number.unsigned_abs().leading_zeros()),
            Err(_) => self.0.get(operand).copied(),
        }
    }

    fn of_result(&self, word: &str, sources: &[&str]) -> Option<u32> {
        let mut parts = word.split('.');
        let operation = parts.next()?;
        let bits = |at: usize| self.bits(sources.get(at)?);
        let number = |at: usize| sources.get(at)?.parse::<u32>().ok();
        // A negative number in a register of 16 bits is a great one here.
        let unsigned = |at: usize| number(at).map(|number| u32::BITS - number.leading_zeros());
        match (operation, parts.next_back()?) {
            ("ld", "u8" | "b8" | "s8") => Some(8),
            ("ld", "u16" | "s16") => Some(16),
            ("cvt", ty @ ("u8" | "s8" | "u16" | "s16" | "u32" | "s32")) => {
                let width = ty[1..].parse().ok()?;
                let is_wider = word.split('.').nth(1).is_some_and(|to| {
                    to.get(1..).and_then(|to| to.parse::<u32>().ok()) > Some(width)
                });
                let known = bits(0).filter(|_| ty.starts_with('s'));
                is_wider.then_some(known.map_or(width, |bits| bits.min(width)))
            }
            ("and", "b32" | "b64") => match sources.get(1)?.parse::<i64>() {
                Ok(mask) if mask >= 0 => bits(1),
                _ => None,
            },
            ("add" | "sub", "s32" | "s64") => Some(bits(0)?.max(bits(1)?) + 1),
            ("mul", "s16") if word.contains(".wide.") => {
                Some(bits(0).unwrap_or(16) + bits(1).unwrap_or(16))
            }
            ("mul", "u16") if word.contains(".wide.") => Some(16 + unsigned(1).unwrap_or(16)),
            ("mul", "s32" | "s64") if !word.contains(".hi") => Some(bits(0)? + bits(1)?),
            ("mad", "s32" | "s64") if !word.contains(".hi") => {
                Some((bits(0)? + bits(1)?).max(bits(2)?) + 1)
            }
            // What a lane gets is what another one has, or nothing that means anything.
            ("shfl", "b32") => bits(0),
            ("min" | "max", "s32" | "s64") => Some(bits(0)?.max(bits(1)?)),
            ("selp", "b32" | "s32" | "u32" | "b64" | "s64" | "u64") => Some(bits(0)?.max(bits(1)?)),
            ("mov", "b32" | "s32" | "u32" | "b64" | "s64" | "u64") | ("neg", "s32" | "s64") => {
                bits(0)
            }
            ("shl", "b32" | "b64") => Some(bits(0)? + number(1)?),
            ("prmt", "b32") if word == "prmt.b32" && sources.get(1) == Some(&"0") => {
                let selector = sources.get(2)?.strip_prefix("0x")?.trim_end_matches('U');
                bytes_selected(u32::from_str_radix(selector, 16).ok()?).map(|bytes| 8 * bytes)
            }
            ("bfe", "u32") => number(2).filter(|bits| (1..32).contains(bits)),
            ("shr", "u32") => Some(32 - number(1).filter(|count| (1..32).contains(count))?),
            _ => None,
        }
        // Larger values may have wrapped around.
        .filter(|bits| *bits <= width_of(word).saturating_sub(2))
    }
}

/// How many bytes of a `prmt` from zero may be others than zero, from the lowest on: the rest selects bytes of the second operand. `None` if
/// all may.
fn bytes_selected(selector: u32) -> Option<u32> {
    let is_zero = |byte: &u32| (4..8).contains(&(selector >> (byte * 4) & 15));
    let zeros = (0..4).rev().take_while(is_zero).count() as u32;
    (zeros > 0).then_some(4 - zeros)
}

/// The width of an instruction's result.
fn width_of(word: &str) -> u32 {
    let wide = word.contains("64") || word.ends_with(".wide.s32");
    if wide { 64 } else { 32 }
}

/// An instruction's word, result and sources.
fn parts(line: &str) -> Option<(&str, &str, Vec<&str>)> {
    let [_, word, operands, _] = instruction(line)?;
    let operands = operands.trim();
    let end = match operands.strip_prefix('{') {
        Some(vector) => vector.find('}')? + 2,
        None => operands.find(',').unwrap_or(operands.len()),
    };
    let (result, rest) = operands.split_at(end);
    let sources = rest.trim_start_matches(',').split(',').map(str::trim).collect();
    Some((word.trim(), result.trim(), sources))
}

#[cfg(test)]
mod tests {
    use super::Magnitudes;

    #[test]
    fn bounds_follow_from_single_instructions() {
        let known = Magnitudes::of(
            "\tld.global.nc.u8 \t%rs1, [%rd1];
\tcvt.u32.u16 \t%r1, %rs1;
\tand.b32 \t%r2, %r9, 255;
\tsub.s32 \t%r3, %r1, %r2;
\tmul.lo.s32 \t%r4, %r3, 100;
\tmul.lo.s32 \t%r5, %r4, %r4;
\tadd.s32 \t%r6, %r9, 1;
\tmov.u32 \t%r7, 5;
\tmov.u32 \t%r7, %r9;
\tld.global.v2.u8 \t{%r8, %r10}, [%rd1];
\tcvt.s64.s32 \t%rd2, %r9;
\tsub.s64 \t%rd3, %rd2, %rd2;
\tcvt.u16.u32 \t%rs2, %r9;
\tmul.wide.u16 \t%r11, %rs1, 2;
\tld.global.s8 \t%rs4, [%rd1];
\tcvt.u32.u16 \t%r14, %rs4;
\tcvt.s32.s16 \t%r15, %rs4;
\tmul.wide.s16 \t%r12, %rs3, %rs3;
\tmul.wide.s16 \t%r13, %rs3, 100;
\tprmt.b32 \t%r16, %r9, 0, 0x7771U;
\tprmt.b32 \t%r17, %r9, 0, 0x7731U;
\tprmt.b32 \t%r18, %r9, 0, 0x8881U;
\tprmt.b32 \t%r19, %r9, %r1, 0x7771U;
\tbfe.u32 \t%r20, %r9, 8, 12;
\tmov.u32 \t%r21, 0;
\tmov.u32 \t%r21, %r22;
\tand.b32 \t%r22, %r9, 255;
\tmov.u32 \t%r23, 0;
\tadd.s32 \t%r23, %r23, 1;
\tmov.u32 \t%r24, 0;
\t@%p1 mov.u32 \t%r24, %r9;
\tmov.u32 \t%r25, 0;
\tld.global.v2.u32 \t{%r25, %r26}, [%rd1];
\tshfl.sync.bfly.b32 \t%r27, %r2, 4, 31, -1;
\tshfl.sync.bfly.b32 \t%r28, %r9, 4, 31, -1;
",
        );
        let bits = |register| known.bits(register);
        assert_eq!(bits("%r1"), Some(16));
        assert_eq!(bits("%r2"), Some(8));
        assert_eq!(bits("%r3"), Some(17));
        assert_eq!(bits("%r4"), Some(24));
        assert_eq!(bits("%rd3"), Some(33));
        assert_eq!(bits("%r11"), Some(18));
        // -1 becomes 65,535.
        assert_eq!(bits("%r14"), Some(16));
        assert_eq!(bits("%r16"), Some(8));
        assert_eq!(bits("%r17"), Some(16));
        // The sign of a byte, and bytes of another register.
        assert_eq!(bits("%r18"), None);
        assert_eq!(bits("%r19"), None);
        assert_eq!(bits("%r20"), Some(12));
        assert_eq!(bits("%r15"), Some(8));
        assert_eq!(bits("%r13"), Some(23));
        assert_eq!(bits("-129"), Some(8));
        // Two lines write it, and one of them what is known only later.
        assert_eq!(bits("%r21"), Some(8));
        // From another lane.
        assert_eq!(["%r27", "%r28"].map(bits), [Some(8), None]);
        // From itself, under a condition, and with another register.
        assert_eq!(["%r23", "%r24", "%r25"].map(bits), [None; 3]);
        for unknown in ["%r5", "%r6", "%r7", "%r8", "%r9", "%r10", "%r12", "%rs2"] {
            assert_eq!(bits(unknown), None, "{unknown}");
        }
    }
}
