//! Reads of the thread's index, and addresses in `shared` variables, before the loops that use them.
//!
//! libNVVM moves them to their uses. In a loop, ptxas repeats the `S2R` of a `mov %r1, %tid.x` in each round, and another one for the
//! address of a `shared` variable, where a register would do. Where registers are scarce, libNVVM also computes the address of the thread's
//! own element again in each block of a loop: one that several instructions give has a register, too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::lane_reads::first_instruction;
use super::negations::operands;
use super::workarounds::{functions, instruction, writes};

/// The most lines of a function. In longer ones a register that is held throughout is dearer than the reads.
const MOST_LINES: usize = 2000;

/// Reads before the loops what does not change in them.
pub(super) fn hoist(ptx: String) -> String {
    let shared: BTreeSet<String> = ptx.lines().filter_map(shared_variable).collect();
    functions(&ptx).map(|function| hoisted(function, &shared)).collect()
}

/// The variable that a line declares in shared memory.
fn shared_variable(line: &str) -> Option<String> {
    let (_, declaration) = line.split_once(".shared ")?;
    let name = declaration.split_once(';')?.0.split_whitespace().last()?;
    Some(name.split('[').next()?.to_owned())
}

/// Everything up to a function's end.
fn hoisted<'p>(function: &'p str, shared: &BTreeSet<String>) -> Cow<'p, str> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let Some(begin) = first_instruction(&lines).filter(|_| lines.len() <= MOST_LINES) else {
        return function.into();
    };
    let is_steady = |source: &str| source.starts_with("%tid.") || shared.contains(source);
    let in_loops = in_loops(&lines);
    let sources = lines.iter().zip(&in_loops).filter(|(_, in_loop)| **in_loop);
    let sources = sources.filter_map(|(line, _)| Some(read(line)?.1));
    let mut names = BTreeMap::new();
    for source in sources.filter(|source| is_steady(source)) {
        let name = format!("%gridlet_steady{}", names.len());
        names.entry(source).or_insert(name);
    }
    if names.is_empty() {
        return function.into();
    }
    let mut text = lines[..begin].concat();
    for (source, name) in &names {
        text += &format!("\t.reg .b32 \t{name};\n\tmov.u32 \t{name}, {source};\n");
    }
    let elements = elements(&lines, &in_loops, is_steady);
    for (at, Element { base, index, shift }) in elements.keys().enumerate() {
        let name = element_name(at);
        text += &format!("\t.reg .b32 \t{name}, {name}_base;\n\tmov.u32 \t{name}, {index};\n");
        text +=
            &format!("\tshl.b32 \t{name}, {name}, {shift};\n\tmov.u32 \t{name}_base, {base};\n");
        text += &format!("\tadd.s32 \t{name}, {name}_base, {name};\n");
    }
    let results: BTreeMap<&str, String> = (0..)
        .zip(elements.values())
        .flat_map(|(at, results)| results.iter().map(move |it| (*it, element_name(at))))
        .collect();
    for (line, in_loop) in lines.iter().zip(in_loops).skip(begin) {
        let moved =
            |result: &str, from: &str, end: &str| format!("\tmov.u32 \t{result}, {from};{end}");
        let name = read(line)
            .filter(|_| in_loop)
            .and_then(|(result, source, end)| Some(moved(result, names.get(source)?, end)));
        let element = || {
            let [result, ..] = operands::<3>(line, &["add.s32"])?;
            Some(moved(result, results.get(result)?, instruction(line)?[3]))
        };
        text += name.or_else(element).as_deref().unwrap_or(line);
    }
    text.into()
}

/// The address of an element of a `shared` variable, of which only steady reads decide.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Element<'p> {
    base: &'p str,
    index: &'p str,
    shift: &'p str,
}

fn element_name(at: usize) -> String {
    format!("%gridlet_element{at}")
}

/// The elements whose addresses several instructions in loops give, each in a register of its own, with these registers.
fn elements<'p>(
    lines: &[&'p str],
    in_loops: &[bool],
    is_steady: impl Fn(&str) -> bool,
) -> BTreeMap<Element<'p>, Vec<&'p str>> {
    let writes = writes(lines.iter().copied());
    let is_once = |register: &str| writes.get(register) == Some(&1);
    // By register, what it holds: a steady read, and how far it is shifted.
    let mut reads: BTreeMap<&str, &str> = BTreeMap::new();
    let mut shifted: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut found: BTreeMap<Element<'p>, Vec<&'p str>> = BTreeMap::new();
    for (line, in_loop) in lines.iter().zip(in_loops) {
        if let Some((result, source, _)) = read(line)
            && is_steady(source)
            && is_once(result)
        {
            reads.insert(result, source);
        } else if let Some([result, number, shift]) = operands(line, &["shl.b32"])
            && let Some(index) = reads.get(number).filter(|_| is_once(result))
            && shift.bytes().all(|byte| byte.is_ascii_digit())
        {
            shifted.insert(result, (index, shift));
        } else if let Some([result, left, right]) = operands(line, &["add.s32"])
            && let Some(base) = reads.get(left).filter(|base| !base.starts_with('%'))
            && let Some((index, shift)) = shifted.get(right).filter(|_| *in_loop && is_once(result))
        {
            found.entry(Element { base, index, shift }).or_default().push(result);
        }
    }
    found.retain(|_, results| results.len() > 1);
    found
}

/// By line, whether it is between a label and a jump back to it.
fn in_loops(lines: &[&str]) -> Vec<bool> {
    let mut labels = BTreeMap::new();
    // How many loops begin at a line, less those that end before it.
    let mut changes = vec![0; lines.len() + 1];
    for (at, line) in lines.iter().enumerate() {
        if let Some((label, _)) = line.split_once(':').filter(|(label, _)| label.starts_with('$')) {
            labels.insert(label, at);
        } else if let Some(&head) = target(line).and_then(|label| labels.get(label)) {
            changes[head] += 1;
            changes[at + 1] -= 1;
        }
    }
    let mut depth = 0;
    let depths = changes.iter().map(|change| {
        depth += change;
        depth > 0
    });
    depths.take(lines.len()).collect()
}

/// The label that a line jumps to.
pub(super) fn target(line: &str) -> Option<&str> {
    let [_, word, operands, _] = instruction(line)?;
    // `@%p1 bra \t$L__BB0_2;` or `bra.uni \t$L__BB0_2;`
    let (jump, label) = match word.starts_with('@') {
        true => operands.split_once(char::is_whitespace)?,
        false => (word, operands),
    };
    matches!(jump, "bra" | "bra.uni").then(|| label.trim())
}

/// The register and the source of a `mov.u32`, and what follows the instruction.
fn read(line: &str) -> Option<(&str, &str, &str)> {
    let [_, word, operands, end] = instruction(line)?;
    let (result, source) = operands.split_once(',')?;
    (word == "mov.u32").then(|| (result.trim(), source.trim(), end))
}

#[cfg(test)]
mod tests {
    use super::hoist;

    const PTX: &str = "\
.visible .entry k(
\t.param .u32 k_param_0
)
{
\t.reg .pred \t%p<3>;
\t.reg .b32 \t%r<9>;
\t// demoted variable
\t.shared .align 4 .b8 own_$_k_$_tile[128];

\tld.param.u32 \t%r1, [k_param_0];
\tmov.u32 \t%r2, %tid.y;
\tbra.uni \t$L__BB0_2;
$L__BB0_1:
\tmov.u32 \t%r3, own_$_k_$_tile;
\tmov.u32 \t%r4, %tid.x;
\tmov.u32 \t%r5, %ctaid.x;
\tmov.u32 \t%r6, %r1;
$L__BB0_2:
\tmov.u32 \t%r7, %tid.x; // again
\t@%p1 bra \t$L__BB0_1;
\tmov.u32 \t%r8, %tid.y;
\tret;
}
";

    #[test]
    fn loops_read_nothing_that_does_not_change() {
        insta::assert_snapshot!(hoist(PTX.to_owned()));
    }

    #[test]
    fn addresses_that_several_blocks_of_a_loop_compute_are_computed_before() {
        let element = |register: u32| {
            format!(
                "\tmov.u32 \t%r{register}0, %tid.x;\n\tshl.b32 \t%r{register}1, %r{register}0, 2;\n\tmov.u32 \t%r{register}2, own_$_k_$_tile;\n\
                 \tadd.s32 \t%r{register}3, %r{register}2, %r{register}1;\n\tst.shared.u32 \t[%r{register}3], %r1;\n"
            )
        };
        let body = format!("{}\tbar.sync \t0;\n{}", element(2), element(3));
        let twice = PTX.replace("\tmov.u32 \t%r6, %r1;\n", &body);
        insta::assert_snapshot!(hoist(twice));
        let once = PTX.replace("\tmov.u32 \t%r6, %r1;\n", &element(2));
        assert!(!hoist(once).contains("element"));
    }

    #[test]
    fn variables_are_known_behind_the_first_position() {
        let variable = "\t// demoted variable\n";
        let with_position = PTX.replace(variable, &format!("\t.loc\t1 3 0\n{variable}"));
        let expected =
            hoist(PTX.to_owned()).replace(variable, &format!("\t.loc\t1 3 0\n{variable}"));
        assert_eq!(hoist(with_position), expected);
    }

    #[test]
    fn code_without_loops_and_long_functions_stay() {
        let straight = PTX.replace("\t@%p1 bra \t$L__BB0_1;\n", "");
        assert_eq!(hoist(straight.clone()), straight);
        let long = PTX.replace("\tret;", &"\tadd.s32 \t%r1, %r1, %r2;\n".repeat(2000));
        assert_eq!(hoist(long.clone()), long);
    }
}
