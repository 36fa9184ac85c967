//! Selections of 64 bits by two conditions.
//!
//! LLVM's back end makes two selections of one by `a || b` or `a && b`. ptxas needs two instructions for each selection of 64 bits, and one for
//! the condition of both:
//!
//! | PTX | becomes |
//! |---|---|
//! | `selp.b64 %t, %z, %x, %p; selp.b64 %d, %z, %t, %q;` | `or.pred %c, %p, %q; selp.b64 %d, %z, %x, %c;` |
//! | `selp.b64 %t, %x, %z, %p; selp.b64 %d, %t, %z, %q;` | `and.pred %c, %p, %q; selp.b64 %d, %x, %z, %c;` |

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::negations::operands;
use super::reductions::registers;
use super::workarounds::{functions, instruction, scope};

/// Joins the two where nothing else reads the first.
pub(super) fn join(ptx: String) -> String {
    if !ptx.contains("selp.b64") && !ptx.contains("selp.f64") {
        return ptx;
    }
    functions(&ptx).map(joined).collect()
}

/// A selection, `yes` if the condition holds, whose result one other instruction reads.
struct Selection<'a> {
    line: usize,
    result: &'a str,
    yes: &'a str,
    no: &'a str,
    condition: &'a str,
}

impl<'a> Selection<'a> {
    fn of(line: &'a str, at: usize) -> Option<Selection<'a>> {
        let [result, yes, no, condition] = operands(line, &["selp.b64", "selp.f64"])?;
        Some(Selection { line: at, result, yes, no, condition })
    }

    fn reads(&self, register: &str) -> bool {
        [self.yes, self.no, self.condition].contains(&register)
    }
}

fn joined(function: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let mentions = registers(function);
    // Those before in the same block, by their results.
    let mut firsts: BTreeMap<&str, Selection<'_>> = BTreeMap::new();
    let mut changed: BTreeMap<usize, String> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        // Another way leads to a label.
        if line.trim_start().starts_with('$') {
            firsts.clear();
        }
        let mut selection = Selection::of(line, at);
        if let Some(Selection { yes, no, condition, .. }) = selection {
            let of_either = firsts.get(no).filter(|first| first.yes == yes);
            let of_both = firsts.get(yes).filter(|first| first.no == no);
            let both = match (of_either, of_both) {
                (Some(first), _) => Some((first, "or.pred", [yes, first.no])),
                (_, Some(first)) => Some((first, "and.pred", [first.yes, no])),
                _ => None,
            };
            if let Some((first, word, alternatives)) = both {
                let conditions = [first.condition, condition];
                changed.insert(first.line, String::new());
                changed.insert(at, by_both(line, word, conditions, alternatives));
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
    if changed.is_empty() {
        return function.into();
    }
    let text = |(at, line): (usize, &&str)| match changed.get(&at) {
        Some(text) => text.clone(),
        None => (*line).to_owned(),
    };
    lines.iter().enumerate().map(text).collect::<String>().into()
}

/// A selection by two conditions.
fn by_both(line: &str, word: &str, conditions: [&str; 2], [yes, no]: [&str; 2]) -> String {
    let Some([indent, selp, operands, end]) = instruction(line) else { return line.into() };
    let result = operands.split(',').next().unwrap_or_default().trim();
    let [first, second] = conditions;
    let lines = [
        ".reg .pred %gridlet_p;".to_owned(),
        format!("{word} %gridlet_p, {first}, {second};"),
        format!("{selp} {result}, {yes}, {no}, %gridlet_p;"),
    ];
    scope(indent, &lines, end)
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
\t// 32 bits.
\tselp.b32 \t%r2, 0, %r1, %p1;
\tselp.b32 \t%r3, 0, %r2, %p2;
}
";
        insta::assert_snapshot!(join(ptx.to_owned()));
    }
}
