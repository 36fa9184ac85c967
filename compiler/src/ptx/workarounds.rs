//! Rewrites PTX that ptxas miscompiles, or compiles to more instructions than needed.
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
//!
//! ptxas (CUDA 13.0, sm_75 to sm_120) takes the result of `abs.s32` and `abs.s64` for positive and removes comparisons with zero, but that
//! of the least number is itself. A negation under a condition hides that. It is not needed where the operand has fewer bits.
//!
//! ptxas (CUDA 13.0, sm_90) drops a 16-bit part of a function's result if a division that becomes a call comes between its
//! `st.param` and that of a later part in the same register. So all parts are stored together, just before `ret`.
//!
//! ptxas (CUDA 13.0, sm_90) converts where PTX asks for bits: `st.b32 [%d], %a;` stores a 64-bit register's lower half, but
//! if an instruction with a float result wrote the register, ptxas converts the float to an integer and stores that. A `mov`
//! in between keeps the bits.
//!
//! ptxas (CUDA 13.0, sm_90) takes `min.u16 %d, %a, %b;` and `setp.eq.u16 %p, %d, %b;` for one instruction, of two halves of a
//! register, both of which write `%p`, and the comparison gives wrong results. The same goes for `max`, for signed numbers, and for a
//! result that is widened before the comparison. `setp.ne` and `not` become two instructions.
//!
//! With line tables, LLVM writes labels between instructions that nothing refers to. ptxas begins a block at each, and other machine code
//! results, so they are removed.
//!
//! ptxas tests the divisor of `div.u32` and `rem.u32` once more, and merges only an unsigned comparison with that test:
//! `setp.ne.s32 %p, %d, 0;` becomes `setp.ne.u32`, which means the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{
    differences, division_traps, half_selects, lane_reads, magnitudes::Magnitudes, masks,
    negations, reductions, shared_atomics, shared_heads,
};

/// Replaces the instructions that ptxas compiles badly.
pub(super) fn apply(ptx: String) -> String {
    let ptx = braces_of_assembly(labels_of_line_tables(ptx));
    // Results move first: a copy of one stands in a block of its own, beyond which it could not move.
    let ptx =
        parts_of_floats(results_last(narrow_signs(differences::apply(negations::apply(ptx)))));
    let ptx = half_selects::apply(masks::apply(plain_file_names(ptx)));
    let ptx = lane_reads::merge(division_traps::combine(ptx));
    let ptx = shared_atomics::apply(reductions::apply(tests_of_divisors(tests_of_extremes(ptx))));
    shared_heads::part(ptx)
}

/// The indentation, word and operands of a line with an instruction, and what follows its semicolon.
pub(super) fn instruction(line: &str) -> Option<[&str; 4]> {
    let rest = line.trim_start();
    let indent = &line[..line.len() - rest.len()];
    let (instruction, end) = rest.split_once(';')?;
    let (word, operands) = instruction.split_once(char::is_whitespace)?;
    Some([indent, word, operands, end])
}

/// The registers that an instruction writes.
pub(super) fn written(line: &str) -> Vec<&str> {
    let Some([_, word, mut operands, _]) = instruction(line) else { return vec![] };
    // After a condition.
    if word.starts_with('@') {
        operands = operands.trim_start().split_once(char::is_whitespace).map_or("", |it| it.1);
    }
    let results = match operands.trim_start().strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or_default(),
        None => operands.split(',').next().unwrap_or_default(),
    };
    results.split([',', '|']).map(str::trim).collect()
}

/// By register, how many of the lines write it.
pub(super) fn writes<'l>(lines: impl IntoIterator<Item = &'l str>) -> BTreeMap<&'l str, usize> {
    let mut found = BTreeMap::new();
    for register in lines.into_iter().flat_map(written) {
        *found.entry(register).or_default() += 1;
    }
    found
}

/// Instructions in a scope of their own, in place of a line that has this indentation and end.
pub(super) fn scope(indent: &str, lines: &[String], end: &str) -> String {
    // A brace at the start of a line would end the function.
    let indent = if indent.is_empty() { "\t" } else { indent };
    let lines: String = lines.iter().map(|line| format!("{indent}{line}\n")).collect();
    format!("{indent}{{\n{lines}{indent}}}{end}")
}

/// The text in parts that end where a function does, with a brace at the start of a line: registers belong to a function.
pub(super) fn functions(ptx: &str) -> impl Iterator<Item = &str> {
    let mut rest = ptx;
    std::iter::from_fn(move || {
        let end = rest.find("\n}").map_or(rest.len(), |at| at + 2);
        let (function, after) = rest.split_at(end);
        rest = after;
        (!function.is_empty()).then_some(function)
    })
}

/// Whether a line is empty, a comment or the place of the next instruction in the source.
pub(super) fn is_no_instruction(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with("//") || line.starts_with(".loc")
}

/// Removes the labels that mark places for debug information, where that does not refer to any.
fn labels_of_line_tables(ptx: String) -> String {
    let marks = |line: &str| ["$L__tmp", "$L__func_"].iter().any(|label| line.contains(label));
    let is_label = |line: &str| line.starts_with('$') && line.trim_end().ends_with(':');
    let mut lines = ptx.lines().filter(|line| marks(line)).peekable();
    if lines.peek().is_none() || !lines.all(is_label) {
        return ptx;
    }
    ptx.split_inclusive('\n').filter(|line| !marks(line)).collect()
}

/// Indents the braces of assembly: one at the start of a line begins or ends a function, for all that follows.
fn braces_of_assembly(ptx: String) -> String {
    const BEGIN: &str = "// begin inline asm";
    if !ptx.contains(BEGIN) {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    let mut is_assembly = false;
    for line in ptx.split_inclusive('\n') {
        match line.trim() {
            BEGIN => is_assembly = true,
            "// end inline asm" => is_assembly = false,
            _ if is_assembly && line.starts_with(['{', '}']) => text.push('\t'),
            _ => {}
        }
        text += line;
    }
    text
}

/// Gives files of the source names that ptxas can read: to it, a quote ends the name, also behind a backslash.
fn plain_file_names(ptx: String) -> String {
    const QUOTE: &str = "\\\"";
    if !ptx.contains(QUOTE) {
        return ptx;
    }
    let lines =
        ptx.split_inclusive('\n').map(|line| match line.trim_start().starts_with(".file") {
            true => Cow::from(line.replace(QUOTE, "'")),
            false => line.into(),
        });
    lines.collect()
}

/// Stores the results of functions just before they return. Back ends write each register of a basic block once, so the
/// stores can move down to its end.
fn results_last(ptx: String) -> String {
    let is_result = |line: &str| {
        let line = line.trim_start();
        line.starts_with("st.param") && line.contains("[func_retval")
    };
    if !ptx.lines().any(is_result) {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    let mut results = vec![];
    for line in ptx.split_inclusive('\n') {
        if is_result(line) {
            results.push(line);
            continue;
        }
        let word = line.trim_start();
        // Every basic block ends in one of these, or before a label.
        if word.starts_with("ret") || word.starts_with("bra") || word.starts_with(['@', '$', '}']) {
            text.extend(results.drain(..));
        }
        text += line;
    }
    text
}

/// Copies floats of which a store takes only the lower bits.
fn parts_of_floats(ptx: String) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut floats = BTreeSet::new();
    let mut lines = ptx.split_inclusive('\n');
    while let Some(line) = lines.next() {
        // Each function numbers its registers anew.
        if line.starts_with('{') {
            let body = lines.clone().take_while(|line| !line.starts_with('}'));
            floats = body.filter_map(float_result).collect();
        }
        match part_of_float(line, &floats) {
            Some(rewritten) => text += &rewritten,
            None => text += line,
        }
    }
    text
}

/// The register that an instruction with a float result writes.
fn float_result(line: &str) -> Option<&str> {
    let (word, operands) = line.trim_start().split_once(char::is_whitespace)?;
    let mut suffixes = word.split('.');
    let name = suffixes.next()?;
    let is_type = |text: &&str| {
        let digits = text.trim_start_matches("bf").trim_start_matches(['f', 'b', 's', 'u']);
        digits.len() < text.len() && digits.starts_with(|digit: char| digit.is_ascii_digit())
    };
    // The first type is that of the result.
    let ty = suffixes.find(is_type)?;
    let is_float = ty.starts_with('f') || ty.starts_with("bf");
    let writes = !matches!(name, "st" | "setp" | "red" | "testp");
    (is_float && writes).then(|| operands.split([',', ';']).next().unwrap_or_default().trim())
}

/// A store of the lower bits of floats, rewritten.
fn part_of_float(line: &str, floats: &BTreeSet<&str>) -> Option<String> {
    let [indent, word, operands, end] = instruction(line)?;
    let bits: u32 = word.strip_prefix("st")?.rsplit_once(".b")?.1.parse().ok()?;
    let (address, values) = operands.split_once("],")?;
    let (mut copies, mut stored) = (String::new(), String::new());
    for value in values.split_inclusive(['{', '}', ',']) {
        let register = value.trim_end_matches(['{', '}', ',']).trim();
        let width = match register.trim_end_matches(|digit: char| digit.is_ascii_digit()) {
            "%rd" => 64,
            "%r" => 32,
            "%rs" => 16,
            _ => 0,
        };
        if width <= bits || !floats.contains(register) {
            stored += value;
            continue;
        }
        let copy = register.replace('%', "%bits_");
        stored += &value.replace(register, &copy);
        let declaration = format!("{indent}.reg .b{width} {copy};\n");
        if !copies.contains(&declaration) {
            copies += &format!("{declaration}{indent}mov.b{width} \t{copy}, {register};\n");
        }
    }
    (!copies.is_empty()).then(|| {
        format!("{indent}{{\n{copies}{indent}{word} {address}],{stored};{end}{indent}}}\n")
    })
}

/// Asks whether the results of 16-bit `min` and `max` differ from a number instead of whether they equal it.
fn tests_of_extremes(ptx: String) -> String {
    let is_extreme = |word: &str| matches!(word, "min.u16" | "min.s16" | "max.u16" | "max.s16");
    if !ptx.lines().any(|line| line.split_whitespace().next().is_some_and(is_extreme)) {
        return ptx;
    }
    let mut extremes = BTreeSet::new();
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        // Each function numbers its registers anew.
        if line.starts_with('{') {
            extremes.clear();
        }
        let parsed = instruction(line).map(|[indent, word, operands, end]| {
            let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
            (indent, word, operands, end)
        });
        match parsed {
            Some((_, word, operands, _)) if is_extreme(word) => {
                extremes.insert(operands[0]);
            }
            Some((_, word, operands, _))
                if matches!(operands[..], [_, from] if extremes.contains(from))
                    && (word.starts_with("cvt.") || word.starts_with("mov.")) =>
            {
                extremes.insert(operands[0]);
            }
            Some((indent, word, operands, end))
                if word.starts_with("setp.eq.")
                    && operands[1..].iter().any(|operand| extremes.contains(operand)) =>
            {
                let (result, tested) = (operands[0], operands[1..].join(", "));
                let word = word.replacen("eq", "ne", 1);
                text += &format!("{indent}{word} \t{result}, {tested};\n");
                text += &format!("{indent}not.pred \t{result}, {result};{end}");
                continue;
            }
            _ => {}
        }
        text += line;
    }
    text
}

/// Compares the divisors of unsigned divisions with zero as unsigned numbers.
fn tests_of_divisors(ptx: String) -> String {
    let divisors: BTreeSet<&str> = ptx
        .lines()
        .filter_map(|line| line.trim_start().split_once(char::is_whitespace))
        .filter(|(word, _)| matches!(*word, "div.u32" | "rem.u32"))
        .filter_map(|(_, operands)| operands.trim_end_matches(';').rsplit_once(", "))
        .map(|(_, divisor)| divisor.trim())
        .collect();
    if divisors.is_empty() {
        return ptx;
    }
    let line = |line: &str| -> Option<String> {
        let (word, operands) = line.trim_start().split_once(char::is_whitespace)?;
        let unsigned = match word {
            "setp.eq.s32" => "setp.eq.u32",
            "setp.ne.s32" => "setp.ne.u32",
            _ => return None,
        };
        let (_, tested) = operands.split_once(',')?;
        let tested = tested.trim().strip_suffix(", 0;")?;
        divisors.contains(tested).then(|| line.replacen(word, unsigned, 1))
    };
    let rewritten = |text| line(text).map_or(Cow::Borrowed(text), Cow::Owned);
    ptx.split_inclusive('\n').map(rewritten).collect()
}

/// Replaces the instructions that ptxas miscompiles.
fn narrow_signs(ptx: String) -> String {
    if !["neg.s16", "abs.s"].iter().any(|word| ptx.contains(word)) {
        return ptx;
    }
    functions(&ptx).map(narrow_signs_of).collect()
}

fn narrow_signs_of(function: &str) -> String {
    let known = Magnitudes::of(function);
    let line = |line| replacement(line, &known).map_or(Cow::Borrowed(line), Cow::Owned);
    function.split_inclusive('\n').map(line).collect()
}

/// The replacement of a line, if ptxas miscompiles it. Back ends write one instruction per line,
/// each with a result register of its own; only because of that may the replacement write the
/// register twice.
fn replacement(line: &str, known: &Magnitudes<'_>) -> Option<String> {
    let [indent, word, operands, end] = instruction(line)?;
    let (result, operand) = operands.split_once(',')?;
    let (result, operand) = (result.trim(), operand.trim());
    if !matches!(word, "neg.s16" | "abs.s16" | "abs.s32" | "abs.s64") || result == operand {
        return None;
    }
    if let Some(bits @ ("32" | "64")) = word.strip_prefix("abs.s") {
        // Not the least number.
        if known.bits(operand).is_some() {
            return None;
        }
        return Some(format!(
            "{indent}{{\n\
             {indent}.reg .pred %is_negative;\n\
             {indent}setp.lt.s{bits} \t%is_negative, {operand}, 0;\n\
             {indent}mov.b{bits} \t{result}, {operand};\n\
             {indent}@%is_negative neg.s{bits} \t{result}, {operand};\n\
             {indent}}}{end}"
        ));
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
\tabs.s64 \t%rd3, %rd1; // why
\tneg.s32 \t%r2, %r1;
\tst.global.b16 \t[%rd8], %rs2;
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
        let other = "\tneg.s32 \t%r2, %r1;\n// abs.s16\n";
        assert_eq!(apply(other.to_owned()), other);
    }

    #[test]
    fn labels_that_nothing_refers_to_are_removed() {
        let code = "\tmov.b32 \t%r1, 5;\n\tbra.uni \t$L__BB0_2;\n$L__BB0_2:\n\tret;\n";
        let marked =
            format!("$L__func_begin0:\n{}$L__func_end0:\n", code.replace('5', "5;\n$L__tmp0:"));
        let marked = marked.replace(":;", ":");
        assert_eq!(apply(marked.clone()), code);
        let referred = format!("{marked}.section .debug_info {{ .b64 $L__func_begin0 }}\n");
        assert_eq!(apply(referred.clone()), referred);
    }

    #[test]
    fn results_are_stored_together() {
        let ptx = "\
\tst.param.b16 \t[func_retval0+0], %rs1;
\tdiv.u16 \t%rs3, %rs1, %rs2;
\tst.param.v2.b8 \t[func_retval0+2], {%rs2, %rs3};
\tmov.b32 \t%r1, 5;
\tret;
$L__BB0_2:
\tst.param.b16 \t[func_retval0+0], %rs4;
\tst.param.b16 \t[param0+0], %rs4;
\tadd.s32 \t%r2, %r1, 1;
\tret;
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }

    #[test]
    fn parts_of_floats_are_copied() {
        let ptx = "\
.visible .entry k(
\t.param .u64 k_param_0
)
{
\tcvt.rn.f64.u32 \t%rd1, %r1;
\tcvt.rn.f16x2.f32 \t%r2, %r3, %r4;
\tadd.rn.bf16 \t%rs1, %rs2, %rs3;
\tcvt.rzi.u32.f32 \t%r5, %r6;
\tsetp.lt.f32 \t%p1, %r5, %r6;
\tst.shared.b32 \t[%r7], %rd1; // why
\tst.global.v4.b8 \t[%rd8], {%rs1, %r5, %r2, %rs1};
\tst.global.b64 \t[%rd8+8], %rd1;
\tst.global.b16 \t[%rd8], %r5;
\tst.b16 \t[%rd8], %rd1;
}
.visible .entry l(
)
{
\tst.global.b16 \t[%rd8], %r2;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }

    /// The copy is declared in a block, so the result must have moved before.
    #[test]
    fn parts_of_floats_that_are_results_are_stored_last() {
        let ptx = "\
{
\tadd.rn.f16 \t%rs1, %rs2, %rs3;
\tst.param.b8 \t[func_retval0+0], %rs1;
\tdiv.u16 \t%rs4, %rs5, %rs6;
\tst.param.b16 \t[func_retval0+2], %rs4;
\tret;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }

    #[test]
    fn extremes_are_tested_for_difference() {
        let ptx = "\
{
\tmin.u16 \t%rs2, %rs1, 8;
\tcvt.u32.u16 \t%r1, %rs2;
\tsetp.eq.s16 \t%p1, %rs2, 8; // why
\tsetp.eq.b32 \t%p2, %r1, 8;
\tsetp.gt.s16 \t%p3, %rs2, 8;
\tsetp.eq.s16 \t%p4, %rs1, 8;
\tmin.u32 \t%r2, %r1, 8;
\tsetp.eq.u32 \t%p5, %r2, 8;
}
{
\tsetp.eq.s16 \t%p1, %rs2, 8;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }

    #[test]
    fn braces_of_assembly_end_no_function() {
        let ptx = "\
.entry k()
{
\tatom.global.add.u32 \t%r1, [%rd1], 1;
\t// begin inline asm
\t{
\tmov.u32 %r2, %laneid;
}

\t// end inline asm
\t// begin inline asm
{
\tmov.u32 %r3, %laneid;
}
\t// end inline asm
\tst.global.u32 \t[%rd1+16], %r1;
\tret;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }

    #[test]
    fn divisors_are_tested_as_unsigned_numbers() {
        let ptx = "\
\tsetp.ne.s32 \t%p1, %r2, 0;
\tsetp.eq.s32 \t%p2, %r3, 0;
\tsetp.ne.s32 \t%p3, %r4, 0;
\tsetp.ne.s32 \t%p4, %r2, 1;
\tsetp.lt.s32 \t%p5, %r2, 0;
\tdiv.u32 \t%r5, %r4, %r2;
\trem.u32 \t%r6, %r4, %r3;
\tdiv.s32 \t%r7, %r2, %r4;
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }
}
