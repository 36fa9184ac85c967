//! Fields of bits as a shift and a mask.
//!
//! LLVM's back end makes one instruction of `(s >> k) & m`, also where other instructions need `s >> k` or part of the mask. ptxas needs two
//! for it anyway, but for whole bytes and fields at the end, and cannot join these with others:
//!
//! | PTX | becomes |
//! |---|---|
//! | `bfe.u32 %d, %s, 3, 5;` | `shr.u32 %t, %s, 3; and.b32 %d, %t, 31;` |

use super::negations::operands;
use super::workarounds::{instruction, scope};

/// Writes two instructions for fields of constant place and width.
pub(super) fn split(ptx: String) -> String {
    if !ptx.contains("bfe.u32") {
        return ptx;
    }
    let lines = ptx.split_inclusive('\n');
    lines.map(|line| shifted_and_masked(line).unwrap_or_else(|| line.into())).collect()
}

fn shifted_and_masked(line: &str) -> Option<String> {
    let [result, source, at, bits] = operands(line, &["bfe.u32"])?;
    let [indent, _, _, end] = instruction(line)?;
    let (at, bits): (u32, u32) = (at.parse().ok()?, bits.parse().ok()?);
    let is_bytes = matches!(bits, 8 | 16) && at.is_multiple_of(8);
    if is_bytes || at.saturating_add(bits) >= u32::BITS || bits == 0 {
        return None;
    }
    let mask = (1_u32 << bits) - 1;
    let lines = [
        ".reg .b32 %gridlet_t;".to_owned(),
        format!("shr.u32 %gridlet_t, {source}, {at};"),
        format!("and.b32 {result}, %gridlet_t, {mask};"),
    ];
    Some(scope(indent, &lines, end))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn fields_are_shifted_and_masked() {
        let ptx = "\tbfe.u32 \t%r2, %r1, 3, 5; // x\n\tbfe.u32 \t%r3, %r1, 8, 8;\n\tbfe.u32 \t%r4, %r1, 27, 5;\n\
            \tbfe.u32 \t%r5, %r1, %r2, 5;\n\tbfe.s32 \t%r6, %r1, 3, 5;\n\tbfe.u32 \t%r7, %r1, 4, 0;\n";
        let expected = "\t{\n\t.reg .b32 %gridlet_t;\n\tshr.u32 %gridlet_t, %r1, 3;\n\tand.b32 %r2, %gridlet_t, 31;\n\t} // x\n\
            \tbfe.u32 \t%r3, %r1, 8, 8;\n\tbfe.u32 \t%r4, %r1, 27, 5;\n\
            \tbfe.u32 \t%r5, %r1, %r2, 5;\n\tbfe.s32 \t%r6, %r1, 3, 5;\n\tbfe.u32 \t%r7, %r1, 4, 0;\n";
        assert_eq!(split(ptx.into()), expected);
    }
}
