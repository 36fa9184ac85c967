//! Selections by two conditions.
//!
//! LLVM's back end makes two selections of one by `a || b` or `a && b`. ptxas needs two instructions for each selection of 64 bits, and one for
//! the condition of both. It needs one for a selection of 32 bits, and none for the condition if a comparison is needed for nothing else:
//! it compares and joins the result with the other condition at once.
//!
//! | PTX | becomes |
//! |---|---|
//! | `selp.b64 %t, %z, %x, %p; selp.b64 %d, %z, %t, %q;` | `or.pred %c, %p, %q; selp.b64 %d, %z, %x, %c;` |
//! | `selp.b64 %t, %x, %z, %p; selp.b64 %d, %t, %z, %q;` | `and.pred %c, %p, %q; selp.b64 %d, %x, %z, %c;` |

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::lane_reads::first_instruction;
use super::negations::operands;
use super::reductions::registers;
use super::workarounds::{functions, instruction, written};

const WIDE: [&str; 2] = ["selp.b64", "selp.f64"];
const NARROW: [&str; 2] = ["selp.b32", "selp.f32"];

/// The names of the conditions of both, before their numbers.
const BOTH: &str = "%gridlet_both";

/// Joins the two where nothing else reads the first.
pub(super) fn join(ptx: String) -> String {
    if !WIDE.iter().chain(&NARROW).any(|word| ptx.contains(word)) {
        return ptx;
    }
    functions(&ptx).map(joined).collect()
}

/// Joins selections until there are no more two to join: a choice by three conditions is three selections.
fn joined(function: &str) -> Cow<'_, str> {
    let mut text = Cow::from(function);
    let mut count = 0;
    while let Some(next) = join_once(&text, &mut count) {
        text = next.into();
    }
    if count == 0 {
        return text;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (before, after) = lines.split_at(first_instruction(&lines).unwrap_or(0));
    format!("{}\t.reg .pred \t{BOTH}<{count}>;\n{}", before.concat(), after.concat()).into()
}

/// A selection, `yes` if the condition holds, whose result one other instruction reads.
struct Selection<'a> {
    line: usize,
    result: &'a str,
    yes: &'a str,
    no: &'a str,
    condition: &'a str,
    is_wide: bool,
}

impl<'a> Selection<'a> {
    fn of(line: &'a str, at: usize) -> Option<Selection<'a>> {
        let wide = operands(line, &WIDE);
        let is_wide = wide.is_some();
        let [result, yes, no, condition] = wide.or_else(|| operands(line, &NARROW))?;
        Some(Selection { line: at, result, yes, no, condition, is_wide })
    }

    fn reads(&self, register: &str) -> bool {
        [self.yes, self.no, self.condition].contains(&register)
    }
}

/// Joins pairs of selections, with conditions numbered from `count`. `None` without such a pair.
fn join_once(function: &str, count: &mut usize) -> Option<String> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let mentions = registers(function);
    let comparisons: BTreeSet<&str> = lines.iter().filter_map(|line| comparison(line)).collect();
    // Comparisons that are needed for one selection only.
    let is_free =
        |condition: &&str| mentions.get(condition) == Some(&2) && comparisons.contains(condition);
    // Those before in the same block, by their results.
    let mut firsts: BTreeMap<&str, Selection<'_>> = BTreeMap::new();
    let mut changed: BTreeMap<usize, String> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        // Another way leads to a label.
        if line.trim_start().starts_with('$') {
            firsts.clear();
        }
        let mut selection = Selection::of(line, at);
        if let Some(Selection { yes, no, condition, is_wide, .. }) = selection {
            let of_either = firsts.get(no).filter(|first| first.yes == yes);
            let of_both = firsts.get(yes).filter(|first| first.no == no);
            let both = match (of_either, of_both) {
                (Some(first), _) => Some((first, "or.pred", [yes, first.no])),
                (_, Some(first)) => Some((first, "and.pred", [first.yes, no])),
                _ => None,
            };
            let both = both
                .filter(|(first, ..)| is_wide || [first.condition, condition].iter().any(&is_free));
            if let Some((first, word, alternatives)) = both {
                let conditions = [first.condition, condition];
                changed.insert(first.line, String::new());
                changed.insert(at, by_both(line, word, conditions, alternatives, *count));
                *count += 1;
                selection = None;
            }
        }
        for register in written(line) {
            firsts.retain(|result, first| *result != register && !first.reads(register));
        }
        if let Some(selection) = selection
            && !selection.reads(selection.result)
            && mentions.get(selection.result) == Some(&2)
        {
            firsts.insert(selection.result, selection);
        }
    }
    let text = |(at, line): (usize, &&str)| match changed.get(&at) {
        Some(text) => text.clone(),
        None => (*line).to_owned(),
    };
    (!changed.is_empty()).then(|| lines.iter().enumerate().map(text).collect())
}

/// The condition that a line computes: the result of a comparison, or of two conditions that were joined.
fn comparison(line: &str) -> Option<&str> {
    let [_, word, operands, _] = instruction(line)?;
    let result = operands.split(',').next()?.trim();
    (word.starts_with("setp.") || result.starts_with(BOTH)).then_some(result)
}

/// A selection by two conditions.
fn by_both(
    line: &str,
    word: &str,
    [first, second]: [&str; 2],
    [yes, no]: [&str; 2],
    number: usize,
) -> String {
    let Some([indent, selp, operands, end]) = instruction(line) else { return line.into() };
    let result = operands.split(',').next().unwrap_or_default().trim();
    format!(
        "{indent}{word} \t{BOTH}{number}, {first}, {second};\n\
         {indent}{selp} \t{result}, {yes}, {no}, {BOTH}{number};{end}"
    )
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn selections_by_two_conditions_are_one() {
        let ptx = "\
.visible .entry joined(
{
\tselp.b64 \t%rd2, 0, %rd1, %p1;
\tselp.b64 \t%rd3, 0, %rd2, %p2;
\tselp.f64 \t%fd2, %fd1, %fd0, %p1;
\tadd.s64 \t%rd9, %rd9, 1;
\tselp.f64 \t%fd3, %fd2, %fd0, %p2;
}
.visible .entry kept(
{
\t// The result is read elsewhere, too.
\tselp.b64 \t%rd2, 0, %rd1, %p1;
\tselp.b64 \t%rd3, 0, %rd2, %p2;
\tst.global.b64 \t[%rd9], %rd2;
\t// Other alternatives.
\tselp.b64 \t%rd4, 0, %rd1, %p1;
\tselp.b64 \t%rd5, 1, %rd4, %p2;
\t// The condition, or an alternative, changes between.
\tselp.b64 \t%rd6, 0, %rd1, %p1;
\tsetp.eq.s32 \t%p1, %r1, 0;
\tselp.b64 \t%rd7, 0, %rd6, %p2;
\tselp.b64 \t%rd8, 0, %rd1, %p1;
\t@%p3 mov.b64 \t%rd1, 7;
\tselp.b64 \t%rd10, 0, %rd8, %p2;
\t// Another way.
\tselp.b64 \t%rd11, 0, %rd0, %p1;
$L__BB1_1:                              // %name
\tselp.b64 \t%rd12, 0, %rd11, %p2;
\t// 32 bits, by conditions that other instructions read, too.
\tselp.b32 \t%r2, 0, %r1, %p1;
\tselp.b32 \t%r3, 0, %r2, %p2;
}
.visible .entry narrow(
{
\t.reg .b32 \t%r<9>;
\tsetp.eq.b32 \t%p4, %r5, 0;
\tsetp.eq.b32 \t%p5, %r6, 0;
\tsetp.eq.b32 \t%p6, %r7, 0;
\tselp.f32 \t%r2, %r0, %r1, %p4;
\tselp.f32 \t%r3, %r0, %r2, %p5;
\tselp.f32 \t%r4, %r0, %r3, %p6;
}
";
        insta::assert_snapshot!(join(ptx.to_owned()));
    }
}
