//! Jumps back that fall through at a loop's end.
//!
//! LLVM's back end (22.1) cannot turn a condition around, and ends a loop whose exit comes next with two jumps. ptxas keeps the order of
//! loads and stores in such a loop, so each load waits for the store before it. It moves the loads of a loop with one jump to its start:
//!
//! | PTX | becomes |
//! |---|---|
//! | `@%p bra $exit; bra.uni $head; $exit:` | `@!%p bra $head; $exit:` |
//!
//! ptxas does not unroll a loop whose jump back needs a condition that is false. So where the comparison before the jump serves for
//! nothing else, it is turned around, and the jump needs a condition that is true.

use super::reductions::registers;
use super::steady_reads::target;
use super::workarounds::{functions, instruction, is_no_instruction};

/// Writes one jump for two.
pub(super) fn jump_once(ptx: String) -> String {
    if !ptx.contains("bra.uni") {
        return ptx;
    }
    functions(&ptx).flat_map(jumps).collect()
}

fn jumps(function: &str) -> Vec<String> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let mut block = None;
    let mut text: Vec<String> = vec![];
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        block = label(line).or(block);
        let back = lines.get(at).and_then(|next| jump(next)).filter(|head| block == Some(*head));
        let one = back.and_then(|head| once(line, head, &lines[at + 1..]));
        at += usize::from(one.is_some());
        let Some((condition, one)) = one else {
            text.push((*line).to_owned());
            continue;
        };
        let turned = turn(&mut text, function, condition);
        text.push(if turned { one.replacen("@!", "@", 1) } else { one });
    }
    text
}

/// The jump to `head` in place of one that leaves, if that leads to the next block, and the condition.
fn once<'p>(leave: &'p str, head: &str, after: &[&str]) -> Option<(&'p str, String)> {
    let [indent, condition, _, end] = instruction(leave)?;
    let next = after.iter().find(|line| !is_no_instruction(line))?;
    if label(next)? != target(leave)? {
        return None;
    }
    let condition = condition.strip_prefix('@')?;
    let jump = match condition.strip_prefix('!') {
        Some(condition) => format!("@{condition}"),
        None => format!("@!{condition}"),
    };
    Some((condition, format!("{indent}{jump} bra \t{head};{end}")))
}

/// Turns the comparison around that a jump follows, if nothing else reads or writes its result. Gives whether it has.
fn turn(text: &mut [String], function: &str, condition: &str) -> bool {
    if condition.starts_with('!') || registers(function).get(condition) != Some(&2) {
        return false;
    }
    let turned = text.last().and_then(|line| {
        let [indent, word, operands, end] = instruction(line)?;
        let ["setp", comparison, kind] = word.split('.').collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_result = operands.split(',').next()?.trim() == condition;
        let opposite = opposite(comparison, kind.starts_with('f'))?;
        is_result.then(|| format!("{indent}setp.{opposite}.{kind} {operands};{end}"))
    });
    match (turned, text.last_mut()) {
        (Some(turned), Some(line)) => *line = turned,
        _ => return false,
    }
    true
}

/// The comparison that is true where another is false. Of floats, one of the two is true where an operand is no number.
fn opposite(comparison: &str, of_floats: bool) -> Option<String> {
    let (comparison, unordered) = match comparison.strip_suffix('u') {
        Some(comparison) if of_floats => (comparison, true),
        _ => (comparison, false),
    };
    let opposite = match comparison {
        "eq" => "ne",
        "ne" => "eq",
        "lt" => "ge",
        "ge" => "lt",
        "gt" => "le",
        "le" => "gt",
        _ => return None,
    };
    Some(format!("{opposite}{}", if of_floats && !unordered { "u" } else { "" }))
}

/// The label that a line begins with.
fn label(line: &str) -> Option<&str> {
    let (label, _) = line.split_once(':')?;
    label.starts_with('$').then_some(label)
}

/// The target of a jump without a condition.
fn jump(line: &str) -> Option<&str> {
    target(line).filter(|_| !line.trim_start().starts_with('@'))
}

#[cfg(test)]
mod tests {
    use super::jump_once;

    #[test]
    fn a_jump_back_before_the_exit_falls_through() {
        let ptx = "\
.visible .entry loops(
{
$L__BB0_1:                              // %head
\t@%p1 bra \t$L__BB0_2;
\tbra.uni \t$L__BB0_1;
                                        // comment
$L__BB0_2:                              // %exit
\t@!%p2 bra \t$L__BB0_3;
\tbra.uni \t$L__BB0_2;
$L__BB0_3:
\t// A jump forward.
\t@%p3 bra \t$L__BB0_4;
\tbra.uni \t$L__BB0_5;
$L__BB0_4:
\t// The exit is elsewhere.
\t@%p4 bra \t$L__BB0_6;
\tbra.uni \t$L__BB0_4;
$L__BB0_5:
\tret;
$L__BB0_6:
\tret;
}
.visible .entry other(
{
\t// The label is of another function.
\t@%p1 bra \t$L__BB1_1;
\tbra.uni \t$L__BB0_1;
$L__BB1_1:
\tret;
}
";
        insta::assert_snapshot!(jump_once(ptx.to_owned()));
    }

    #[test]
    fn a_comparison_for_a_jump_alone_turns_around() {
        let of = |comparison: &str, more: &str| {
            let ptx = format!(
                "$L__BB0_1:\n\tsetp.{comparison} \t%p1, %r1, %r2;\n{more}\t@%p1 bra \t$L__BB0_2;\n\
                 \tbra.uni \t$L__BB0_1;\n$L__BB0_2:\n\tret;\n"
            );
            jump_once(ptx)
                .lines()
                .skip(1)
                .take_while(|line| !line.starts_with('$'))
                .collect::<String>()
        };
        let of_numbers = ["eq.b32", "ne.s64", "lt.u32", "ge.s32", "gt.u64", "le.s16"];
        let of_floats = ["eq.f32", "neu.f32", "lt.f64", "geu.f32", "leu.f64", "gt.f32"];
        let all = of_numbers.into_iter().chain(of_floats).map(|comparison| of(comparison, ""));
        insta::assert_snapshot!(all.collect::<Vec<_>>().join("\n"));
        // Something else reads the result, or comes between; and what has no opposite.
        let read = "\tselp.b32 \t%r3, 1, 2, %p1;\n";
        let between = "\tadd.s32 \t%r3, %r3, 1;\n";
        let kept =
            [of("eq.b32", read), of("eq.b32", between), of("num.f32", ""), of("eq.and.b32", "")];
        assert!(kept.iter().all(|text| text.contains("@!%p1 bra")), "{kept:?}");
    }
}
