//! Traps for divisors that are zero, several in one.
//!
//! Each test of a divisor ends a basic block, and ptxas schedules instructions within a block: it computes one division after another,
//! and takes 2 to 10 % longer than for divisions without tests. A division by zero itself gives just a number.
//! So where only computation lies between tests, the tests are combined, and one branch to a `trap` follows the last computation. A
//! test that the same code has passed since the last label is dropped:
//!
//! ```text
//!     setp.ne.s32 %p1, %r1, 0;              setp.ne.s32 %p1, %r1, 0;
//!     @%p1 bra $L__BB0_4;                   not.pred %gridlet_zero, %p1;
//!     trap;                                 div.s32 %r3, %r2, %r1;
//! $L__BB0_4:                                setp.ne.s32 %p2, %r4, 0;
//!     div.s32 %r3, %r2, %r1;                not.pred %gridlet_other, %p2;
//!     setp.ne.s32 %p2, %r4, 0;              or.pred %gridlet_zero, %gridlet_zero, %gridlet_other;
//!     @%p2 bra $L__BB0_6;                   div.s32 %r5, %r3, %r4;
//!     trap;                                 @!%gridlet_zero bra $L__gridlet_0;
//! $L__BB0_6:                                trap;
//!     div.s32 %r5, %r3, %r4;            $L__gridlet_0:
//!     st.global.u32 [%rd1], %r5;            st.global.u32 [%rd1], %r5;
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::workarounds::{instruction, is_no_instruction};

/// Instructions that only compute.
const COMPUTATIONS: [&str; 29] = [
    "abs", "add", "and", "bfe", "bfi", "brev", "clz", "cvt", "div", "fma", "lop3", "mad", "max",
    "min", "mov", "mul", "neg", "not", "or", "popc", "prmt", "rem", "selp", "setp", "shf", "shl",
    "shr", "sub", "xor",
];

/// A part of a function.
enum Piece<'a> {
    /// A computation, or a line without an instruction.
    Line(&'a str),
    /// A branch around a trap, with the trap and the label.
    Guard { lines: &'a [&'a str], predicate: &'a str, is_negated: bool },
}

/// Combines the tests.
pub(super) fn combine(ptx: String) -> String {
    if !ptx.contains("trap;") {
        return ptx;
    }
    let lines: Vec<&str> = ptx.split_inclusive('\n').collect();
    let mut text = String::with_capacity(ptx.len());
    let mut combined = 0;
    let mut rest = lines.as_slice();
    while !rest.is_empty() {
        let end = rest.iter().position(|line| line.starts_with('}'));
        let (function, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        text += &body(function, &mut combined);
        rest = after;
    }
    text
}

/// A function with its head, up to its closing brace. `combined` numbers the labels.
fn body(lines: &[&str], combined: &mut usize) -> String {
    let mut labels: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        let line = line.trim();
        if let Some(at) = line.find("$L") {
            let label = line[at..].split([':', ';', ',', ' ']).next().unwrap_or_default();
            *labels.entry(label).or_default() += 1;
        }
    }
    let tests = tests(lines);
    let before = *combined;
    // Tests on every way to a line.
    let mut known = BTreeSet::new();
    let (mut text, mut pending) = (String::new(), vec![]);
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        if let Some((guard, length)) = guard(rest, &labels) {
            pending.push(guard);
            rest = &rest[length..];
            continue;
        }
        rest = after;
        if !pending.is_empty() && computes(line) {
            pending.push(Piece::Line(line));
            continue;
        }
        write(&mut text, &mut pending, &tests, &mut known, combined);
        if line.trim().ends_with(':') {
            known.clear();
        }
        text += line;
    }
    write(&mut text, &mut pending, &tests, &mut known, combined);
    if *combined > before {
        let declaration = "{\n\t.reg .pred \t%gridlet_zero, %gridlet_other;\n";
        text = text.replacen("{\n", declaration, 1);
    }
    text
}

/// A branch around a trap at the start of these lines, and how many of them it takes.
fn guard<'a>(lines: &'a [&'a str], labels: &BTreeMap<&str, usize>) -> Option<(Piece<'a>, usize)> {
    let (predicate, target) = lines[0].trim().strip_prefix('@')?.split_once(" bra")?;
    let target = target.trim().strip_suffix(';')?;
    let mut has_trap = false;
    for (at, line) in lines.iter().enumerate().skip(1) {
        match line.trim() {
            "trap;" if !has_trap => has_trap = true,
            line if is_no_instruction(line) => {}
            line => {
                // No other branch goes to the label.
                let is_end =
                    line.strip_suffix(':') == Some(target) && labels.get(target) == Some(&2);
                let (is_negated, predicate) = match predicate.strip_prefix('!') {
                    Some(predicate) => (true, predicate),
                    None => (false, predicate),
                };
                let lines = &lines[..=at];
                return (has_trap && is_end)
                    .then_some((Piece::Guard { lines, predicate, is_negated }, at + 1));
            }
        }
    }
    None
}

/// Whether a line is a computation, reads a parameter or has no instruction.
fn computes(line: &str) -> bool {
    let line = line.trim();
    let word = line.split(['.', ' ', '\t']).next().unwrap_or_default();
    is_no_instruction(line) || COMPUTATIONS.contains(&word) || line.starts_with("ld.param.")
}

/// By predicate, the comparison that gives it, of registers that one instruction writes.
fn tests<'a>(lines: &[&'a str]) -> BTreeMap<&'a str, [&'a str; 2]> {
    let parsed = || lines.iter().filter_map(|line| instruction(line));
    let mut writes: BTreeMap<&str, usize> = BTreeMap::new();
    for [_, _, operands, _] in parsed() {
        *writes.entry(operands.split(',').next().unwrap_or_default().trim()).or_default() += 1;
    }
    let is_fixed = |operand: &str| !operand.starts_with('%') || writes.get(operand) == Some(&1);
    let tests = parsed().filter_map(|[_, word, operands, _]| {
        let (predicate, compared) = operands.split_once(',')?;
        let is_test = word.starts_with("setp.") && is_fixed(predicate.trim());
        let is_test = is_test && compared.split(',').all(|operand| is_fixed(operand.trim()));
        is_test.then_some((predicate.trim(), [word, compared.trim()]))
    });
    tests.collect()
}

/// A comparison and its operands, and whether the trap is for its opposite.
type Test<'a> = ([&'a str; 2], bool);

/// Writes what is pending, with one trap for several tests. Of equal tests, the first one counts.
fn write<'a>(
    text: &mut String,
    pending: &mut Vec<Piece<'a>>,
    tests: &BTreeMap<&'a str, [&'a str; 2]>,
    known: &mut BTreeSet<Test<'a>>,
    combined: &mut usize,
) {
    let mut is_new = vec![];
    for piece in pending.iter() {
        if let Piece::Guard { predicate, is_negated, .. } = piece {
            // A predicate that is written again says nothing later.
            is_new.push(match tests.get(predicate) {
                Some(test) => known.insert((*test, *is_negated)),
                None => true,
            });
        }
    }
    let guards = is_new.iter().filter(|is_new| **is_new).count();
    let (mut is_new, mut is_first) = (is_new.into_iter(), true);
    for piece in pending.drain(..) {
        match piece {
            Piece::Line(line) => *text += line,
            Piece::Guard { lines, predicate, is_negated } => {
                if is_new.next() == Some(false) {
                    continue;
                }
                if guards == 1 {
                    text.extend(lines.iter().copied());
                    continue;
                }
                let negation = if is_negated { "mov" } else { "not" };
                let result = if is_first { "zero" } else { "other" };
                *text += &format!("\t{negation}.pred \t%gridlet_{result}, {predicate};\n");
                if !is_first {
                    *text += "\tor.pred \t%gridlet_zero, %gridlet_zero, %gridlet_other;\n";
                }
                is_first = false;
            }
        }
    }
    if guards > 1 {
        let label = format!("$L__gridlet_{combined}");
        *text += &format!("\t@!%gridlet_zero bra \t{label};\n\ttrap;\n{label}:\n");
        *combined += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::combine;

    #[test]
    fn tests_between_computations_are_combined() {
        let ptx = "\
.visible .entry k()
{
\t.reg .pred \t%p<4>;
\tsetp.ne.s32 \t%p1, %r1, 0;
\t@%p1 bra \t$L__BB0_4;

\t// begin inline asm
\ttrap;
\t// end inline asm

$L__BB0_4:
\t.loc 1 4 9
\tdiv.s32 \t%r3, %r2, %r1;
\tsetp.eq.s32 \t%p2, %r4, 0;
\t@!%p2 bra \t$L__BB0_6;
\t.loc 1 4 2
\ttrap;
$L__BB0_6:
\tdiv.s32 \t%r5, %r3, %r4;
\tst.global.u32 \t[%rd1], %r5;
\tsetp.ne.s32 \t%p3, %r5, 0;
\t@%p3 bra \t$L__BB0_8;
\ttrap;
$L__BB0_8:
\trem.s32 \t%r6, %r3, %r5;
\tret;
}
.visible .entry l()
{
\t@%p1 bra \t$L__BB1_2;
\ttrap;
$L__BB1_2:
\t@%p2 bra \t$L__BB1_3;
\ttrap;
$L__BB1_3:
\t@%p3 bra \t$L__BB1_3;
\tret;
}
.visible .entry m()
{
\tld.param.u32 \t%r1, [m_param_0];
\tsetp.ne.s32 \t%p1, %r1, 0;
\t@%p1 bra \t$L__BB2_2;
\ttrap;
$L__BB2_2:
\tdiv.s32 \t%r3, %r2, %r1;
\tsetp.ne.s32 \t%p2, %r1, 0;
\t@%p2 bra \t$L__BB2_3;
\ttrap;
$L__BB2_3:
\tret;
}
";
        insta::assert_snapshot!(combine(ptx.to_owned()));
    }

    #[test]
    fn a_test_that_another_way_goes_around_is_done_again() {
        let ptx = "\
.visible .entry k()
{
\tld.param.u32 \t%r1, [k_param_0];
\t@%p3 bra \t$L__BB0_3;
\tsetp.ne.s32 \t%p1, %r1, 0;
\t@%p1 bra \t$L__BB0_2;
\ttrap;
$L__BB0_2:
\tdiv.s32 \t%r3, %r2, %r1;
$L__BB0_3:
\tsetp.ne.s32 \t%p2, %r1, 0;
\t@%p2 bra \t$L__BB0_4;
\ttrap;
$L__BB0_4:
\tdiv.s32 \t%r4, %r2, %r1;
\tret;
}
";
        assert_eq!(combine(ptx.to_owned()), ptx);
    }
}
