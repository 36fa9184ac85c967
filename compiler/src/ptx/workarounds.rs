//! Rewrites PTX that ptxas miscompiles.
//!
//! ptxas (CUDA 13.0, at least for sm_90) widens `neg.s16` and `abs.s16` to 32 bits and forgets that
//! the result has 16: for -32,768 it computes 32,768, which `cvt.s32.s16` and `cvt.s64.s16` then
//! pass on. `sub.s16` from zero does not help: it becomes `neg`. The machine code of the
//! replacements computes in 16 bits.
//!
//! | PTX | becomes |
//! |---|---|
//! | `neg.s16 %d, %a;` | `not.b16 %d, %a;` `add.s16 %d, %d, 1;` |
//! | `abs.s16 %d, %a;` | the same, and `max.s16 %d, %a, %d;` |

use std::borrow::Cow;

/// Replaces the instructions that ptxas miscompiles.
pub(super) fn apply(ptx: String) -> String {
    if !["neg.s16", "abs.s16"].iter().any(|word| ptx.contains(word)) {
        return ptx;
    }
    ptx.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> Cow<'_, str> {
    replacement(line).map_or(Cow::Borrowed(line), Cow::Owned)
}

/// The replacement of a line, if ptxas miscompiles it. Back ends write one instruction per line,
/// each with a result register of its own; only because of that may the replacement write the
/// register twice.
fn replacement(line: &str) -> Option<String> {
    let rest = line.trim_start();
    let indent = &line[..line.len() - rest.len()];
    let (instruction, end) = rest.split_once(';')?;
    let (word, operands) = instruction.split_once(char::is_whitespace)?;
    let (result, operand) = operands.split_once(',')?;
    let (result, operand) = (result.trim(), operand.trim());
    if !matches!(word, "neg.s16" | "abs.s16") || result == operand {
        return None;
    }
    let mut text = format!("{indent}not.b16 \t{result}, {operand};\n");
    text += &format!("{indent}add.s16 \t{result}, {result}, 1;");
    if word == "abs.s16" {
        text += &format!("\n{indent}max.s16 \t{result}, {operand}, {result};");
    }
    Some(text + end)
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn narrow_negations_are_rewritten() {
        let ptx = "\
\tld.global.b16 \t%rs1, [%rd8];
\tneg.s16 \t%rs2, %rs1;
\tabs.s16 \t%rs3, %rs1; // why
\tneg.s32 \t%r2, %r1;
\tst.global.b16 \t[%rd8], %rs2;
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
        let other = "\tneg.s32 \t%r2, %r1;\n// abs.s16\n";
        assert_eq!(apply(other.to_owned()), other);
    }
}
