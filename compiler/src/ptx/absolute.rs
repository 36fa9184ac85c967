//! Absolute differences of narrow numbers.
//!
//! LLVM's back end computes one of two bytes as the greater less the smaller, with 16 bits. The difference
//! with 32 bits and its absolute value are two instructions, fewer than ptxas makes of that:
//!
//! | PTX | becomes |
//! |---|---|
//! | `min.u16 %n, %a, %b; max.u16 %m, %a, %b; sub.s16 %d, %m, %n; cvt.u32.u16 %r, %d;` | the first three, `cvt.u32.u16 %x, %a; cvt.u32.u16 %y, %b; sub.s32 %r, %x, %y; abs.s32 %r, %r;` |
//!
//! ptxas removes the first three if nothing else reads their results.

use std::collections::BTreeMap;

use super::negations::operands;
use super::workarounds::{instruction, scope, written};

/// Computes them with 32 bits.
pub(super) fn widen(ptx: String) -> String {
    if !ptx.contains("min.u16") || !ptx.contains("cvt.u32.u16") {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len() * 2);
    // What the instructions before in the same block computed, by their results.
    let mut known: BTreeMap<&str, Value<'_>> = BTreeMap::new();
    for line in ptx.split_inclusive('\n') {
        // Another way leads to a label, and each function numbers its registers anew.
        if line.trim_start().starts_with('$') || line.starts_with('{') {
            known.clear();
        }
        let wide = operands(line, &["cvt.u32.u16"]).and_then(|[result, narrow]| {
            let Some(Value::Difference(of)) = known.get(narrow) else { return None };
            Some((result, *of))
        });
        match (wide, instruction(line)) {
            (Some((result, [left, right])), Some([indent, _, _, end])) => {
                let lines = [
                    ".reg .b32 %gridlet_x, %gridlet_y;".to_owned(),
                    format!("cvt.u32.u16 %gridlet_x, {left};"),
                    format!("cvt.u32.u16 %gridlet_y, {right};"),
                    format!("sub.s32 {result}, %gridlet_x, %gridlet_y;"),
                    format!("abs.s32 {result}, {result};"),
                ];
                text += &scope(indent, &lines, end);
            }
            _ => text += line,
        }
        let value = value(line, &known);
        for register in written(line) {
            known.retain(|result, value| {
                *result != register && !value.operands().contains(&register)
            });
        }
        if let Some((result, value)) = value
            && !value.operands().contains(&result)
        {
            known.insert(result, value);
        }
    }
    text
}

/// What an instruction computes of two registers of 16 bits.
#[derive(Clone, Copy)]
enum Value<'a> {
    Smaller([&'a str; 2]),
    Greater([&'a str; 2]),
    /// The greater less the smaller.
    Difference([&'a str; 2]),
}

impl<'a> Value<'a> {
    fn operands(self) -> [&'a str; 2] {
        let (Value::Smaller(of) | Value::Greater(of) | Value::Difference(of)) = self;
        of
    }
}

fn value<'a>(line: &'a str, known: &BTreeMap<&str, Value<'a>>) -> Option<(&'a str, Value<'a>)> {
    for (word, of) in [("min.u16", Value::Smaller as fn(_) -> _), ("max.u16", Value::Greater)] {
        if let Some([result, left, right]) = operands(line, &[word]) {
            let are_registers = left.starts_with('%') && right.starts_with('%');
            return are_registers.then_some((result, of([left, right])));
        }
    }
    let [result, greater, smaller] = operands(line, &["sub.s16"])?;
    match (known.get(greater)?, known.get(smaller)?) {
        (Value::Greater(of), Value::Smaller(same)) if of == same => {
            Some((result, Value::Difference(*of)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::widen;

    #[test]
    fn differences_of_narrow_numbers_are_wide() {
        let ptx = "\
.visible .entry k(
{
\tmin.u16 \t%rs3, %rs1, %rs2;
\tmax.u16 \t%rs4, %rs1, %rs2;
\tsub.s16 \t%rs5, %rs4, %rs3;
\tadd.s32 \t%r9, %r9, 1;
\tcvt.u32.u16 \t%r1, %rs5;
\t// Of other numbers.
\tmax.u16 \t%rs6, %rs1, %rs7;
\tsub.s16 \t%rs8, %rs6, %rs3;
\tcvt.u32.u16 \t%r2, %rs8;
\t// The smaller less the greater.
\tsub.s16 \t%rs9, %rs3, %rs4;
\tcvt.u32.u16 \t%r3, %rs9;
\t// A number changes.
\tmov.b16 \t%rs1, 7;
\tcvt.u32.u16 \t%r4, %rs5;
$L__BB0_1:
\tcvt.u32.u16 \t%r5, %rs5;
}
";
        insta::assert_snapshot!(widen(ptx.to_owned()));
    }
}
