//! What does not change in a loop, computed before it.
//!
//! Where registers are scarce, libNVVM moves computations to their uses, also into loops, and ptxas leaves them there: the bound of an inner
//! loop, or what all addresses of a block have in common, is computed again in each round. Here a few of these results get registers again,
//! the longest computations first.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::blocks::Blocks;
use super::graph::{jumps_back, natural_loop, predecessors};
use super::lane_reads::first_instruction;
use super::reductions::named;
use super::workarounds::{functions, instruction, writes, written};

/// The most lines of a function. In longer ones a register that is held throughout is dearer than the computation.
const MOST_LINES: usize = 2000;

/// The most registers of 32 bits that a function's results take.
const MOST_REGISTERS: usize = 4;

/// The fewest instructions of a computation: one costs less than a register.
const FEWEST_INSTRUCTIONS: usize = 2;

/// A computation, wherever it is repeated, is at least this part of the loop's lines. Otherwise it takes little of the time, and a register
/// may be dear.
const LEAST_PART: usize = 20;

/// Computes before loops what does not change in them.
pub(super) fn hoist(ptx: String) -> String {
    functions(&ptx).map(hoisted).collect()
}

/// Everything up to a function's end.
fn hoisted(function: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let Some(begin) = first_instruction(&lines).filter(|_| lines.len() <= MOST_LINES) else {
        return function.into();
    };
    let code = Code::of(&lines, begin);
    let mut hoisting = Hoisting::default();
    for this in &code.loops {
        hoisting.hoist(&code, this);
    }
    if hoisting.replaced.is_empty() {
        return function.into();
    }
    let mut text = String::with_capacity(function.len() + 1000);
    for (at, line) in lines.iter().enumerate() {
        if at == begin {
            hoisting.declarations.iter().for_each(|line| text += line);
        }
        hoisting.inserted.get(&at).into_iter().flatten().for_each(|line| text += line);
        text += hoisting.replaced.get(&at).map_or(line, String::as_str);
    }
    text.into()
}

/// An instruction that computes with integers and does nothing else.
struct Computation<'p> {
    word: &'p str,
    result: &'p str,
    operands: Vec<&'p str>,
    end: &'p str,
}

/// A function.
struct Code<'p> {
    /// The first line with an instruction.
    begin: usize,
    /// By line.
    computations: Vec<Option<Computation<'p>>>,
    /// By register that one line writes, that line.
    definitions: BTreeMap<&'p str, usize>,
    /// By register, the lines that mention it.
    mentions: BTreeMap<&'p str, Vec<usize>>,
    /// The lines of each loop, the largest loops first.
    loops: Vec<BTreeSet<usize>>,
    /// The first line of each basic block.
    starts: Vec<usize>,
}

impl<'p> Code<'p> {
    fn of(lines: &[&'p str], begin: usize) -> Code<'p> {
        let writes = writes(lines.iter().copied());
        let blocks = Blocks::read(lines);
        let mut code = Code {
            begin,
            computations: vec![],
            definitions: BTreeMap::new(),
            mentions: BTreeMap::new(),
            loops: loops(lines, &blocks),
            starts: blocks.starts,
        };
        // Assembly in braces has registers of its own.
        let mut depth = 0;
        for (at, line) in lines.iter().enumerate() {
            depth += line.matches('{').count();
            depth -= line.matches('}').count().min(depth);
            let computation = computation(line).filter(|_| at >= begin && depth == 1);
            for register in named(line) {
                code.mentions.entry(register).or_default().push(at);
            }
            if at >= begin && depth == 1 {
                let once = written(line).into_iter().filter(|it| writes.get(it) == Some(&1));
                code.definitions.extend(once.map(|register| (register, at)));
            }
            let is_once = |it: &Computation<'_>| writes.get(it.result) == Some(&1);
            code.computations.push(computation.filter(is_once));
        }
        code
    }

    /// The lines of a loop whose results are the same in each round, each with the line before which it can stand.
    fn unchanged(&self, this: &BTreeSet<usize>) -> BTreeMap<usize, usize> {
        let mut found: BTreeMap<usize, usize> = BTreeMap::new();
        for &at in this {
            let Some(computation) = &self.computations[at] else { continue };
            let place = |operand: &&str| match self.definitions.get(operand) {
                _ if !operand.starts_with('%') => Some(self.begin),
                _ if is_steady(operand) => Some(self.begin),
                Some(line) if this.contains(line) => found.get(line).copied(),
                Some(line) => self.is_around(*line, this).then_some(line + 1),
                None => None,
            };
            let places: Option<Vec<usize>> = computation.operands.iter().map(place).collect();
            if let Some(place) = places.and_then(|places| self.behind_all(&places)) {
                found.insert(at, place);
            }
        }
        found
    }

    /// The last of some places, if it is behind the others when the function runs: the order of blocks in the text tells nothing. So all are
    /// in one block, or in the first, where every function begins.
    fn behind_all(&self, places: &[usize]) -> Option<usize> {
        let block = |place: usize| self.starts.partition_point(|start| *start < place);
        let later: Vec<usize> = places.iter().copied().filter(|place| block(*place) > 1).collect();
        let Some(&last) = later.iter().max() else {
            return Some(places.iter().copied().max().unwrap_or(self.begin));
        };
        later.iter().all(|place| block(*place) == block(last)).then_some(last)
    }

    /// By line, a number that lines with the same result share.
    fn results(&self, unchanged: &BTreeMap<usize, usize>) -> BTreeMap<usize, usize> {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut found: BTreeMap<usize, usize> = BTreeMap::new();
        for &at in unchanged.keys() {
            let Some(computation) = &self.computations[at] else { continue };
            let operand = |it: &&str| match self.definitions.get(it).and_then(|of| found.get(of)) {
                Some(number) => format!("#{number}"),
                None => (*it).to_owned(),
            };
            let operands: Vec<String> = computation.operands.iter().map(operand).collect();
            let next = numbers.len();
            let text = format!("{} {}", computation.word, operands.join(","));
            found.insert(at, *numbers.entry(text).or_insert(next));
        }
        found
    }

    /// Whether a line outside a loop is in no other loop than those around it.
    fn is_around(&self, line: usize, this: &BTreeSet<usize>) -> bool {
        let with = self.loops.iter().filter(|other| other.contains(&line));
        with.into_iter().all(|other| this.is_subset(other))
    }
}

/// What is changed in a function.
#[derive(Default)]
struct Hoisting {
    registers: usize,
    names: usize,
    declarations: Vec<String>,
    /// By line, what comes before it.
    inserted: BTreeMap<usize, Vec<String>>,
    replaced: BTreeMap<usize, String>,
    /// By place and instruction, the register with its result.
    known: BTreeMap<(usize, String), String>,
}

impl Hoisting {
    fn hoist(&mut self, code: &Code<'_>, this: &BTreeSet<usize>) {
        let unchanged = code.unchanged(this);
        let is_left = |line: &usize| this.contains(line) && !unchanged.contains_key(line);
        // By result, how many instructions compute it, and the lines that have it.
        let results = code.results(&unchanged);
        let mut roots: BTreeMap<usize, (usize, Vec<usize>)> = BTreeMap::new();
        for &at in unchanged.keys() {
            let Some(computation) = &code.computations[at] else { continue };
            let mentions = code.mentions.get(computation.result);
            let is_root = mentions.is_some_and(|lines| lines.iter().any(is_left));
            if !is_root || self.replaced.contains_key(&at) || registers_of(computation.result) == 0
            {
                continue;
            }
            let needed = needed(code, &unchanged, at);
            let cost = needed.iter().filter(|line| is_work(&code.computations[**line])).count();
            if cost >= FEWEST_INSTRUCTIONS {
                let root = roots.entry(results[&at]).or_default();
                root.0 += cost;
                root.1.push(at);
            }
        }
        let mut roots: Vec<(usize, Vec<usize>)> = roots.into_values().collect();
        roots.sort_by_key(|(cost, lines)| (std::cmp::Reverse(*cost), lines[0]));
        for (cost, lines) in roots {
            let around = code.loops.iter().filter(|of| of.contains(&lines[0]));
            let size = around.map(BTreeSet::len).min().unwrap_or(0);
            if cost * LEAST_PART >= size {
                for at in lines {
                    self.compute_before(code, &unchanged, at, &needed(code, &unchanged, at));
                }
            }
        }
    }

    /// Computes the result of a line, and of those that it needs, before the loop, if there is a register left.
    fn compute_before(
        &mut self,
        code: &Code<'_>,
        unchanged: &BTreeMap<usize, usize>,
        root: usize,
        needed: &[usize],
    ) {
        let mut results: BTreeMap<&str, String> = BTreeMap::new();
        let mut new: Vec<((usize, String), String, &str)> = vec![];
        for at in needed {
            let Some(computation) = &code.computations[*at] else { return };
            let operand = |it: &&str| results.get(it).cloned().unwrap_or_else(|| (*it).to_owned());
            let operands: Vec<String> = computation.operands.iter().map(operand).collect();
            let key = (unchanged[at], format!("{} {}", computation.word, operands.join(", ")));
            let known = self.known.get(&key).cloned();
            let name = known.unwrap_or_else(|| {
                let name = format!("%gridlet_unchanged{}", self.names + new.len());
                new.push((key, name.clone(), computation.result));
                name
            });
            results.insert(computation.result, name);
        }
        let Some(computation) = &code.computations[root] else { return };
        let own = if new.is_empty() { 0 } else { registers_of(computation.result) };
        if self.registers + own > MOST_REGISTERS {
            return;
        }
        self.registers += own;
        self.names += new.len();
        for (key, name, like) in new {
            self.declarations.push(format!("\t.reg .{} \t{name};\n", type_of(like)));
            let (word, operands) = key.1.split_once(' ').unwrap_or((&key.1, ""));
            let line = format!("\t{word} \t{name}, {operands};\n");
            self.inserted.entry(key.0).or_default().push(line);
            self.known.insert(key, name);
        }
        let Computation { result, end, .. } = computation;
        let (name, ty) = (&results[result], type_of(result));
        self.replaced.insert(root, format!("\tmov.{ty} \t{result}, {name};{end}"));
    }
}

/// The lines that a line needs among those that do not change, and that line, in order.
fn needed(code: &Code<'_>, unchanged: &BTreeMap<usize, usize>, root: usize) -> Vec<usize> {
    let mut found = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        let operands = code.computations[at].iter().flat_map(|it| &it.operands);
        for line in operands.filter_map(|operand| code.definitions.get(operand)) {
            if unchanged.contains_key(line) && found.insert(*line) {
                open.push(*line);
            }
        }
    }
    found.into_iter().collect()
}

/// The loops of a function, by the numbers of their lines.
fn loops(lines: &[&str], blocks: &Blocks) -> Vec<BTreeSet<usize>> {
    let before = predecessors(&blocks.successors);
    let lines_of = |block: usize| {
        blocks.starts[block]..blocks.starts.get(block + 1).copied().unwrap_or(lines.len())
    };
    let mut found: Vec<BTreeSet<usize>> = vec![];
    for (head, latches) in jumps_back(&blocks.successors) {
        let parts = latches.iter().map(|latch| natural_loop(head, *latch, &before));
        let all: BTreeSet<usize> = parts.flatten().collect();
        if !all.contains(&0) {
            found.push(all.into_iter().flat_map(lines_of).collect());
        }
    }
    found.sort_by_key(|lines| std::cmp::Reverse(lines.len()));
    found
}

fn computation(line: &str) -> Option<Computation<'_>> {
    let [_, word, operands, end] = instruction(line)?;
    let (name, kind) = word.split_once('.')?;
    let is_integer = kind.split('.').next_back().is_some_and(|ty| {
        ["b32", "b64", "u32", "u64", "s32", "s64"].contains(&ty)
            || ty == "pred" && ["and", "or", "xor", "not"].contains(&name)
    });
    let computes = [
        "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg", "min", "max",
        "selp", "setp", "cvt", "mov",
    ];
    let mut operands = operands.split(',').map(str::trim);
    let result = operands.next()?;
    let operands: Vec<&str> = operands.collect();
    // With `cc`, an addition reads or writes the carry.
    let is_plain = is_integer && computes.contains(&name) && !kind.contains("cc");
    let is_simple = !operands
        .iter()
        .any(|operand| operand.contains(['{', '|', '[', '.']) && !is_steady(operand));
    let has_result =
        ["%r", "%p"].iter().any(|kind| result.starts_with(kind)) && !result.starts_with("%rs");
    (is_plain && is_simple && has_result).then_some(Computation { word, result, operands, end })
}

/// Whether an operand is a special register that never changes.
fn is_steady(operand: &str) -> bool {
    ["%tid.", "%ntid.", "%ctaid.", "%nctaid."].iter().any(|prefix| operand.starts_with(prefix))
}

/// Whether a computation becomes an instruction of its own: copies do not, nor do numbers that get wider.
fn is_work(computation: &Option<Computation<'_>>) -> bool {
    computation
        .as_ref()
        .is_some_and(|it| !["mov.", "cvt."].iter().any(|name| it.word.starts_with(name)))
}

/// How many registers of 32 bits a register takes; none if it is a condition.
fn registers_of(register: &str) -> usize {
    match type_of(register) {
        "b64" => 2,
        "b32" => 1,
        _ => 0,
    }
}

fn type_of(register: &str) -> &'static str {
    match register {
        _ if register.starts_with("%rd") => "b64",
        _ if register.starts_with("%p") => "pred",
        _ => "b32",
    }
}

#[cfg(test)]
mod tests {
    use super::hoist;

    const PTX: &str = "\
.visible .entry k(
\t.param .u32 k_param_0
)
{
\t.reg .pred \t%p<4>;
\t.reg .b32 \t%r<20>;

\tld.param.u32 \t%r1, [k_param_0];
\tmov.u32 \t%r2, 0;
$L__BB0_1:
\tmov.u32 \t%r3, %ntid.x;
\tsetp.eq.s32 \t%p1, %r3, 0;
\tmax.u32 \t%r4, %r3, 624;
\tsub.s32 \t%r5, %r4, %r3;
\tselp.b32 \t%r6, %r1, %r5, %p1; // the bound
\tadd.s32 \t%r2, %r2, %r6;
\tmul.lo.s32 \t%r7, %r1, 624;
\tadd.s32 \t%r2, %r2, %r7;
\tsetp.lt.u32 \t%p2, %r2, 100;
\t@%p2 bra \t$L__BB0_1;
\tret;
}
";

    #[test]
    fn what_does_not_change_is_computed_before_a_loop() {
        insta::assert_snapshot!(hoist(PTX.to_owned()));
    }

    #[test]
    fn what_changes_stays_in_its_loop() {
        for (from, to) in [
            // Of a number that the loop counts, and one that two lines write.
            ("max.u32 \t%r4, %r3", "max.u32 \t%r4, %r2"),
            ("\tret;", "\tmov.u32 \t%r5, 1;\n\tret;"),
            // Of memory.
            ("mov.u32 \t%r3, %ntid.x", "ld.global.u32 \t%r3, [%rd1]"),
            // Under a condition.
            ("\tmax.u32", "\t@%p3 max.u32"),
            // Not in a loop.
            ("\t@%p2 bra \t$L__BB0_1;\n", ""),
        ] {
            let ptx = PTX.replace(from, to);
            assert_ne!(ptx, PTX);
            assert_eq!(hoist(ptx.clone()), ptx, "{to}");
        }
    }

    #[test]
    fn what_comes_first_is_not_read_off_the_text() {
        // The second block runs after the third.
        let moved = PTX
            .replace("$L__BB0_1:", "\tbra.uni \t$L__BB0_3;\n$L__BB0_2:\n\tadd.s32 \t%r8, %r1, 7;\n\tbra.uni \t$L__BB0_1;\n$L__BB0_3:\n\tadd.s32 \t%r9, %r1, 8;\n\tbra.uni \t$L__BB0_2;\n$L__BB0_1:")
            .replace("\tsub.s32 \t%r5, %r4, %r3;", "\tsub.s32 \t%r5, %r8, %r9;")
            .replace("\tmax.u32 \t%r4, %r3, 624;\n", "");
        assert_eq!(hoist(moved.clone()), moved);
        let both = moved.replace("%r8, %r9;", "%r8, %r3;");
        assert_ne!(hoist(both.clone()), both);
    }

    #[test]
    fn little_of_a_long_loop_stays() {
        let long =
            PTX.replace("\tmul.lo", &("\tadd.s32 \t%r2, %r2, %r1;\n".repeat(80) + "\tmul.lo"));
        assert_eq!(hoist(long.clone()), long);
    }

    #[test]
    fn no_more_than_a_few_registers_are_taken() {
        let parts = |count: usize| -> String {
            let part = |at| {
                format!(
                    "\tmul.lo.s32 \t%r{at}01, %r1, {at};\n\tadd.s32 \t%r{at}00, %r{at}01, 5;\n\tadd.s32 \t%r2, %r2, %r{at}00;\n"
                )
            };
            (1..=count).map(part).collect()
        };
        let many = PTX.replace("\tmul.lo.s32 \t%r7", &(parts(6) + "\tmul.lo.s32 \t%r7"));
        let found = hoist(many);
        assert_eq!(found.lines().filter(|line| line.contains("mov.b32")).count(), 4, "{found}");
    }
}
