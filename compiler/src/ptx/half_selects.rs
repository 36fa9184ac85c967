//! Selections between 16-bit numbers that are computed with as well.
//!
//! ptxas (CUDA 13.0, sm_80 to sm_90, from `-O1` on) joins two operations on numbers of 16 bits to one on two halves of a register. The
//! operands of both are then taken where the second stands, but a selection in between may have overwritten one:
//!
//! ```text
//! fma.rn.bf16 %rs1, %rs2, %rs3, %rs4;
//! selp.b16    %rs5, %rs4, %rs6, %p1;
//! fma.rn.bf16 %rs7, %rs8, %rs9, %rs10;
//! ```
//!
//! The machine code selects in the register of `%rs4`, and adds the result to the first product. A selection of 32 bits has a
//! register of its own.

use std::collections::BTreeSet;

use super::workarounds::instruction;

/// Widens the selections.
pub(super) fn apply(ptx: String) -> String {
    if !ptx.contains("selp.b16") || !ptx.lines().any(|line| computed_with(line).is_some()) {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    let mut used = BTreeSet::new();
    let mut lines = ptx.split_inclusive('\n');
    while let Some(line) = lines.next() {
        // Each function numbers its registers anew.
        if line.starts_with('{') {
            let body = lines.clone().take_while(|line| !line.starts_with('}'));
            used = body.filter_map(computed_with).flatten().collect();
        }
        match widened(line, &used) {
            Some(rewritten) => text += &rewritten,
            None => text += line,
        }
    }
    text
}

/// The operands of an operation that ptxas may join with another.
fn computed_with(line: &str) -> Option<impl Iterator<Item = &str>> {
    let [_, word, operands, _] = instruction(line)?;
    let (name, types) = word.split_once('.')?;
    let is_half = types.split('.').all(|part| !part.starts_with("f32"))
        && matches!(types.rsplit('.').next(), Some("f16" | "bf16"));
    let is_joined = matches!(name, "add" | "sub" | "mul" | "fma" | "min" | "max" | "neg" | "abs");
    (is_half && is_joined).then(|| operands.split(',').skip(1).map(str::trim))
}

/// A selection of 16 bits with such an operand, rewritten.
fn widened(line: &str, used: &BTreeSet<&str>) -> Option<String> {
    let [indent, word, operands, end] = instruction(line)?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let [result, left, right, predicate] = operands[..] else { return None };
    if word != "selp.b16" || ![left, right].iter().any(|operand| used.contains(operand)) {
        return None;
    }
    let mut text = format!("{indent}{{\n{indent}.reg .b32 %left, %right;\n");
    for (operand, pair) in [(left, "%left"), (right, "%right")] {
        let both = match operand.parse::<i32>() {
            Ok(number) => (number & 0xffff | number << 16).to_string(),
            Err(_) => format!("{{{operand}, {operand}}}"),
        };
        text += &format!("{indent}mov.b32 \t{pair}, {both};\n");
    }
    text += &format!("{indent}selp.b32 \t%left, %left, %right, {predicate};\n");
    Some(text + &format!("{indent}cvt.u16.u32 \t{result}, %left;\n{indent}}}{end}"))
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn selections_of_operands_are_widened() {
        let ptx = "\
{
\tfma.rn.bf16 \t%rs1, %rs2, %rs3, %rs4;
\tselp.b16 \t%rs5, %rs4, %rs6, %p1; // why
\tselp.b16 \t%rs7, -16512, %rs3, %p2;
\tselp.b16 \t%rs8, %rs1, %rs7, %p2;
\tadd.s16 \t%rs9, %rs10, %rs11;
\tselp.b16 \t%rs12, %rs10, %rs11, %p2;
\tcvt.rn.bf16.f32 \t%rs13, %r1;
\tadd.rn.f16 \t%rs14, %rs13, %rs13;
\tselp.b32 \t%r2, %r3, %r1, %p2;
}
{
\tselp.b16 \t%rs5, %rs4, %rs6, %p1;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
        let other = "{\n\tadd.f32 \t%r1, %r2, %r3;\n\tselp.b16 \t%rs2, %rs1, %rs3, %p1;\n}\n";
        assert_eq!(apply(other.to_owned()), other);
    }
}
