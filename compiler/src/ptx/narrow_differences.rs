//! Differences of 16 bits, computed with 32.
//!
//! ptxas negates the second number, clears the upper half of the register and adds: three instructions, and one more where the result is
//! widened. With 32 bits it is one, and its lower half is the same:
//!
//! | PTX | becomes |
//! |---|---|
//! | `sub.s16 %rs3, %rs1, %rs2;` | `cvt.u32.u16 %a, %rs1; cvt.u32.u16 %b, %rs2; sub.s32 %a, %a, %b; cvt.u16.u32 %rs3, %a;` |

use super::negations::operands;
use super::workarounds::{instruction, scope};

const WORD: &str = "sub.s16";

/// Widens the differences whose second number is in a register.
pub(super) fn widen(ptx: String) -> String {
    if !ptx.contains(WORD) {
        return ptx;
    }
    let line = |line: &str| difference(line).unwrap_or_else(|| line.to_owned());
    ptx.split_inclusive('\n').map(line).collect()
}

fn difference(line: &str) -> Option<String> {
    let [result, left, right] = operands(line, &[WORD])?;
    let [indent, _, _, end] = instruction(line)?;
    if !right.starts_with('%') {
        return None;
    }
    let left = match left.parse::<i32>() {
        Ok(number) => format!("mov.u32 %gridlet_left, {};", number & 0xffff),
        Err(_) => format!("cvt.u32.u16 %gridlet_left, {left};"),
    };
    let lines = [
        ".reg .b32 %gridlet_left, %gridlet_right;".to_owned(),
        left,
        format!("cvt.u32.u16 %gridlet_right, {right};"),
        "sub.s32 %gridlet_left, %gridlet_left, %gridlet_right;".to_owned(),
        format!("cvt.u16.u32 {result}, %gridlet_left;"),
    ];
    Some(scope(indent, &lines, end))
}

#[cfg(test)]
mod tests {
    use super::widen;

    #[test]
    fn differences_from_registers_have_32_bits() {
        let ptx = "\
\tsub.s16 \t%rs3, %rs1, %rs2;
\tsub.s16 \t%rs4, -3, %rs2; // a remark
\tsub.s16 \t%rs5, %rs1, 3;
\tsub.s32 \t%r3, %r1, %r2;
";
        insta::assert_snapshot!(widen(ptx.to_owned()));
    }
}
