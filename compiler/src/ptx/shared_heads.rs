//! Counters of loops that begin where another loop begins.
//!
//! Where one loop is the first thing in another, both begin at one label, to which two jumps lead back: that of the inner loop leaves the
//! outer loop's counter as it is. ptxas (CUDA 13.0, sm_90) sometimes leads both through one place, where the lanes wait for each other, and
//! still keeps the counter in a register of the whole warp, because all that is added to it is the same for all lanes. So the lanes
//! that stay in the inner loop get the counter of those that have left it. nvcc's code has the same fault.
//!
//! What the lanes have at the start differs, as far as ptxas knows, if something that comes from the thread's index is added to it:
//!
//! ```text
//!     mov.u32 %gridlet_nothing, %tid.x;
//!     shr.u32 %gridlet_nothing, %gridlet_nothing, 31;
//!     ...
//!     mov.u32 %r1, 0;
//!     add.s32 %r1, %r1, %gridlet_nothing;
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::blocks::Blocks;
use super::graph;
use super::lane_reads::first_instruction;
use super::reductions::named;
use super::workarounds::{functions, instruction, written};

/// Zeros that ptxas takes for numbers that differ between lanes, as a register, a predicate and a register of 64 bits.
const ZEROS: &str = "\t.reg .b32 \t%gridlet_nothing;\n\t.reg .pred \t%gridlet_never;\n\t.reg .b64 \t%gridlet_nothing_wide;\n\
    \tmov.u32 \t%gridlet_nothing, %tid.x;\n\tshr.u32 \t%gridlet_nothing, %gridlet_nothing, 31;\n\
    \tsetp.ne.u32 \t%gridlet_never, %gridlet_nothing, 0;\n\tcvt.u64.u32 \t%gridlet_nothing_wide, %gridlet_nothing;\n";

/// Makes such counters differ between lanes where lanes may leave the inner loop at different times.
pub(super) fn part(ptx: String) -> String {
    functions(&ptx).map(parted).collect()
}

/// Everything up to a function's end.
fn parted(function: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let Some(begin) = first_instruction(&lines) else { return function.into() };
    let blocks = Blocks::read(&lines);
    let mut heads = graph::jumps_back(&blocks.successors);
    heads.retain(|_, latches| latches.len() > 1);
    if heads.is_empty() {
        return function.into();
    }
    let differs = differing(&lines[begin..], function.contains(".entry "));
    let before = graph::predecessors(&blocks.successors);
    // The lines of registers' first values, with the register.
    let mut starts: BTreeMap<usize, &str> = BTreeMap::new();
    for (head, latches) in heads {
        let loops: Vec<BTreeSet<usize>> =
            latches.iter().map(|latch| graph::natural_loop(head, *latch, &before)).collect();
        let lines_of = |block: usize| {
            let end = blocks.starts.get(block + 1).copied().unwrap_or(lines.len());
            blocks.starts[block]..end
        };
        let parts = |block: usize| {
            lines_of(block).any(|at| condition(lines[at]).is_some_and(|it| differs.contains(it)))
        };
        let ends_apart = |of: &BTreeSet<usize>| {
            let leaves =
                |block: &&usize| blocks.successors[**block].iter().any(|to| !of.contains(to));
            of.iter().filter(leaves).any(|block| parts(*block))
        };
        if !loops.iter().any(ends_apart) {
            continue;
        }
        let inside: BTreeSet<usize> =
            loops.iter().flatten().flat_map(|block| lines_of(*block)).collect();
        let written_by = |of: &BTreeSet<usize>| -> BTreeSet<&str> {
            of.iter().flat_map(|block| lines_of(*block)).flat_map(|at| written(lines[at])).collect()
        };
        let by_loop: Vec<BTreeSet<&str>> = loops.iter().map(written_by).collect();
        let stays = |register: &&str| by_loop.iter().any(|written| !written.contains(register));
        let changing: BTreeSet<&str> = by_loop.iter().flatten().copied().filter(stays).collect();
        for (at, line) in lines.iter().enumerate().skip(begin) {
            let register = written(line).into_iter().find(|it| changing.contains(it));
            if let Some(register) = register.filter(|_| !inside.contains(&at)) {
                starts.insert(at, register);
            }
        }
    }
    if starts.is_empty() {
        return function.into();
    }
    let mut text = lines[..begin].concat() + ZEROS;
    for (at, line) in lines.iter().enumerate().skip(begin) {
        text += line;
        let zero = starts.get(&at).and_then(|register| with_zero(register));
        text += zero.as_deref().unwrap_or_default();
    }
    text.into()
}

/// Adds a zero to a register whose kind may be in a register of the warp.
fn with_zero(register: &str) -> Option<String> {
    let kind = register.trim_start_matches('%').trim_end_matches(|c: char| c.is_ascii_digit());
    Some(match kind {
        "r" => format!("\tadd.s32 \t{register}, {register}, %gridlet_nothing;\n"),
        "rd" => format!("\tadd.s64 \t{register}, {register}, %gridlet_nothing_wide;\n"),
        "p" => format!("\txor.pred \t{register}, {register}, %gridlet_never;\n"),
        _ => return None,
    })
}

/// The predicate of a conditional jump.
fn condition(line: &str) -> Option<&str> {
    let (predicate, rest) = line.trim_start().strip_prefix('@')?.split_once(char::is_whitespace)?;
    rest.trim_start().starts_with("bra").then(|| predicate.trim_start_matches('!'))
}

/// The registers that may differ between the lanes of a warp because of what they are computed from.
fn differing<'p>(lines: &[&'p str], is_kernel: bool) -> BTreeSet<&'p str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    loop {
        let before = found.len();
        for line in lines {
            if begins_to_differ(line, is_kernel) || named(line).any(|it| found.contains(it)) {
                found.extend(written(line));
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether an instruction has results that differ between lanes although its operands do not.
fn begins_to_differ(line: &str, is_kernel: bool) -> bool {
    const READS: [&str; 6] = ["%tid", "%laneid", "%lanemask", "%clock", "%globaltimer", "%warpid"];
    if READS.iter().any(|name| line.contains(name)) {
        return true;
    }
    let Some([_, word, operands, _]) = instruction(line) else { return false };
    let word = match word.starts_with('@') {
        true => operands.split_whitespace().next().unwrap_or_default(),
        false => word,
    };
    // A kernel's parameters are the same for all, a function's and its result need not be.
    let is_of_kernel = is_kernel && operands.contains("_param_");
    let loads = word.starts_with("ld") && !(word.starts_with("ld.param") && is_of_kernel);
    loads || ["atom", "shfl", "activemask", "match"].iter().any(|name| word.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::part;

    /// Two loops that begin at one label: the inner one ends by `%p1`, the outer one counts in `%r1`.
    fn loops(inner: &str, outer: &str) -> String {
        format!(
            "\
.visible .entry k(
{{
\t.reg .pred \t%p<3>;
\t.reg .b32 \t%r<6>;
\tld.param.b32 \t%r4, [k_param_0];
\tmov.b32 \t%r1, 0;
$L__BB0_1:
{inner}\t@%p1 bra \t$L__BB0_1;
{outer}\tadd.s32 \t%r1, %r1, 1;
\tsetp.lt.u32 \t%p2, %r1, %r4;
\t@%p2 bra \t$L__BB0_1;
\tret;
}}
"
        )
    }

    const OF_LANES: &str = "\tld.global.b32 \t%r2, [%rd1];\n\tsetp.eq.b32 \t%p1, %r2, 0;\n";

    #[test]
    fn a_counter_that_only_the_outer_loop_changes_differs_between_lanes() {
        insta::assert_snapshot!(part(loops(OF_LANES, "")));
    }

    #[test]
    fn what_cannot_part_the_lanes_stays() {
        // The inner loop ends for all lanes together; the counter changes on both ways; there is one loop.
        let together = loops("\tsetp.eq.b32 \t%p1, %r4, 0;\n", "");
        let both = loops(&format!("{OF_LANES}\tadd.s32 \t%r1, %r1, 2;\n"), "");
        let one = loops(OF_LANES, "").replacen("\t@%p1 bra \t$L__BB0_1;\n", "", 1);
        for ptx in [together, both, one] {
            assert_eq!(part(ptx.clone()), ptx);
        }
    }

    #[test]
    fn numbers_of_64_bits_and_conditions_differ_too() {
        let ptx = loops(OF_LANES, "\tadd.s64 \t%rd2, %rd2, 8;\n\tnot.pred \t%p0, %p0;\n");
        let starts = "\tmov.b64 \t%rd2, 0;\n\tsetp.ne.b32 \t%p0, %r4, 0;\n$L__BB0_1:\n";
        let parted = part(ptx.replacen("$L__BB0_1:\n", starts, 1));
        let zeros = parted
            .lines()
            .filter(|line| line.contains("%rd2, %rd2") || line.contains(".pred \t%p0, %p0"));
        insta::assert_snapshot!(zeros.collect::<Vec<_>>().join("\n"));
    }
}
