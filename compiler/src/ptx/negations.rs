//! Negations that ptxas forgets.
//!
//! ptxas (CUDA 13.0, sm_90 and sm_100) makes one instruction, `VIMNMX3`, of two `max.s32` or of two `min.s32`. If an operand of the
//! first is the result of `neg.s32`, it takes the number that was not negated: `max(c, max(a, -b))` becomes `max(c, max(a, b))`, so
//! `max(c, abs(a))` is wrong, too, where the absolute value is written as a maximum.
//!
//! | PTX | becomes |
//! |---|---|
//! | `neg.s32 %n, %a;` or `sub.s32 %n, 0, %a;`, if a `max.s32` or `min.s32` reads `%n` or a copy of it | `not.b32 %n, %a;` `add.s32 %n, %n, 1;` |
//! | a `max.s32 %d, %a, %n;` as the next instruction | `abs.s32 %d, %a;` |
//!
//! ptxas does the same to any negation that it finds itself: `sub.s32 %n, %i, %a;` where it unrolls a loop in which `%i` starts
//! at 0, and products with -1. Those stay: LLVM unrolls such loops first and makes `neg.s32` of both. Negations on one of two ways
//! to the instruction, under a predicate or behind `selp` are compiled correctly.

use std::collections::{BTreeMap, BTreeSet};

use super::workarounds::{instruction, is_no_instruction};

/// Rewrites the negations of which ptxas might take the minimum or the maximum.
pub(super) fn apply(ptx: String) -> String {
    if !ptx.contains("neg.s32") && !ptx.contains("sub.s32") {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    let mut compared = BTreeSet::new();
    let mut lines = ptx.split_inclusive('\n');
    // The result and the operand of the instruction before, if that is a negation.
    let mut negation = None;
    while let Some(line) = lines.next() {
        // Each function numbers its registers anew.
        if line.starts_with('{') {
            let body = || lines.clone().take_while(|line| !line.starts_with('}'));
            let extremes = body().filter_map(|line| operands(line, &["max.s32", "min.s32"]));
            compared = extremes.flat_map(|[_, left, right]| [left, right]).collect();
            let copies =
                body().filter_map(|line| operands(line, &["mov.b32", "mov.u32", "mov.s32"]));
            add_sources(&mut compared, &copies.collect::<Vec<_>>());
        }
        let previous = negation.take();
        if is_no_instruction(line) {
            negation = previous;
        }
        if let Some([result, operand]) = negated(line) {
            negation = Some([result, operand]);
            if result != operand && compared.contains(result) {
                let (indent, end) = ends(line);
                text += &format!("{indent}not.b32 \t{result}, {operand};\n");
                text += &format!("{indent}add.s32 \t{result}, {result}, 1;{end}");
                continue;
            }
        }
        if let (Some([negated, operand]), Some([result, left, right])) =
            (previous, operands(line, &["max.s32"]))
            && ([left, right] == [negated, operand] || [left, right] == [operand, negated])
        {
            let (indent, end) = ends(line);
            text += &format!("{indent}abs.s32 \t{result}, {operand};{end}");
            continue;
        }
        text += line;
    }
    text
}

/// Adds the registers that are copied to one of the set, over any number of copies.
pub(super) fn add_sources<'p>(registers: &mut BTreeSet<&'p str>, copies: &[[&'p str; 2]]) {
    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for [result, source] in copies {
        sources.entry(result).or_default().push(source);
    }
    let mut open: Vec<&str> = registers.iter().copied().collect();
    while let Some(result) = open.pop() {
        let found = sources.get(result).into_iter().flatten().copied();
        open.extend(found.filter(|source| registers.insert(source)));
    }
}

/// The result and the operand of a negation.
fn negated(line: &str) -> Option<[&str; 2]> {
    let difference = operands(line, &["sub.s32"])
        .and_then(|[result, left, right]| (left == "0").then_some([result, right]));
    difference.or_else(|| operands(line, &["neg.s32"]))
}

/// The operands of a line with one of these instructions.
pub(super) fn operands<'l, const N: usize>(line: &'l str, words: &[&str]) -> Option<[&'l str; N]> {
    let [_, word, operands, _] = instruction(line)?;
    if !words.contains(&word) {
        return None;
    }
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    operands.try_into().ok()
}

/// The indentation of an instruction's line, and what follows the semicolon.
fn ends(line: &str) -> (&str, &str) {
    instruction(line).map_or(("", "\n"), |[indent, _, _, end]| (indent, end))
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn copies_and_differences_from_zero_are_negations_too() {
        let ptx = "\
{
\tneg.s32 \t%r4, %r3;
\tmov.b32 \t%r5, %r4;
\tmov.u32 \t%r6, %r5;
\tmax.s32 \t%r7, %r1, %r6;
\tsub.s32 \t%r8, 0, %r2;
\tmin.s32 \t%r9, %r8, %r7;
\tsub.s32 \t%r10, %r9, %r2;
\tmin.s32 \t%r11, %r10, %r7;
\tneg.s32 \t%r12, %r3;
\tmov.b32 \t%r13, %r12;
\tst.global.b32 \t[%rd1], %r13;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }

    #[test]
    fn negations_that_are_compared_are_rewritten() {
        let ptx = "\
{
\tneg.s32 \t%r4, %r3; // why
\tmax.s32 \t%r5, %r1, %r4;
\tmax.s32 \t%r6, %r5, %r2;
\tneg.s32 \t%r7, %r6;
\t.loc 1 2 3
\tmax.s32 \t%r8, %r6, %r7;
\tneg.s32 \t%r9, %r8;
\tadd.s32 \t%r10, %r9, %r6;
\tmin.u32 \t%r11, %r9, %r10;
}
{
\tneg.s32 \t%r4, %r3;
\tmin.u32 \t%r5, %r1, %r4;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }
}
