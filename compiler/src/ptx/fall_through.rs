//! Jumps back that fall through at a loop's end.
//!
//! LLVM's back end (22.1) cannot turn a condition around, and ends a loop whose exit comes next with two jumps. ptxas keeps the order of
//! loads and stores in such a loop, so each load waits for the store before it. It moves the loads of a loop with one jump to its start:
//!
//! | PTX | becomes |
//! |---|---|
//! | `@%p bra $exit; bra.uni $head; $exit:` | `@!%p bra $head; $exit:` |

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
    let mut text = vec![];
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        block = label(line).or(block);
        let back = lines.get(at).and_then(|next| jump(next)).filter(|head| block == Some(*head));
        let one = back.and_then(|head| once(line, head, &lines[at + 1..]));
        at += usize::from(one.is_some());
        text.push(one.unwrap_or_else(|| (*line).to_owned()));
    }
    text
}

/// The jump to `head` in place of one that leaves, if that leads to the next block.
fn once(leave: &str, head: &str, after: &[&str]) -> Option<String> {
    let [indent, condition, _, end] = instruction(leave)?;
    let next = after.iter().find(|line| !is_no_instruction(line))?;
    if label(next)? != target(leave)? {
        return None;
    }
    let condition = condition.strip_prefix('@')?;
    let condition = match condition.strip_prefix('!') {
        Some(condition) => format!("@{condition}"),
        None => format!("@!{condition}"),
    };
    Some(format!("{indent}{condition} bra \t{head};{end}"))
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
}
