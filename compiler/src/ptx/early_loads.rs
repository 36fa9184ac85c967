//! Loads before what they would wait for.
//!
//! ptxas ends a block of code at a shuffle, a vote and a division that may take its slow path, and moves no load over one. A load behind
//! one starts when that is done, though nothing keeps it: what `ld.global.nc` reads does not change while the kernel runs. So such loads
//! move up within a block of PTX, with the addresses that they need, a few at a time because each holds a register. Other loads from global
//! memory move over divisions alone: a shuffle may tell of what another lane wrote, and a volatile or acquiring load of what another thread did.
//!
//! | PTX | becomes |
//! |---|---|
//! | `div.rn.f32 %f2, %f1, %f0; add.s64 %rd2, %rd1, 4; ld.global.nc.f32 %f3, [%rd2];` | `add.s64 …; ld.global.nc.f32 …; div.rn.f32 …;` |

use std::collections::BTreeMap;

use super::reductions::registers;
use super::workarounds::{functions, instruction, is_no_instruction, written};

/// The most words of 32 bits that wait in registers for their uses.
const MOST_WORDS: u32 = 8;

/// How many lines ahead loads are looked for.
const FARTHEST: usize = 400;

/// Instructions without effects, which may move with a load.
const MOVABLE: [&str; 22] = [
    "abs", "add", "and", "bfe", "bfi", "cvt", "cvta", "fma", "mad", "max", "min", "mov", "mul",
    "neg", "not", "or", "selp", "setp", "shl", "shr", "sub", "xor",
];

/// Other instructions over which loads may move.
const PASSED: [&str; 27] = [
    "brev", "clz", "copysign", "cos", "div", "dp2a", "dp4a", "ex2", "ld", "lg2", "lop3", "match",
    "popc", "prmt", "rcp", "redux", "rem", "rsqrt", "sad", "set", "shf", "shfl", "sin", "slct",
    "sqrt", "tanh", "vote",
];

const LOAD: &str = "ld.global.";

/// Moves the loads.
pub(super) fn hoist(ptx: String) -> String {
    if !ptx.contains(LOAD) {
        return ptx;
    }
    functions(&ptx).map(hoisted).collect()
}

fn hoisted(function: &str) -> String {
    if !function.contains(LOAD) {
        return function.into();
    }
    let mut text = String::with_capacity(function.len());
    let mut block = vec![];
    for line in function.split_inclusive('\n') {
        match Line::of(line) {
            Some(line) => block.push(line),
            None => {
                Block::of(&block).write(&mut text);
                block.clear();
                text += line;
            }
        }
    }
    Block::of(&block).write(&mut text);
    text
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A load of so many words.
    Load(u32),
    Movable,
    /// ptxas ends a block here.
    Ends,
    Passed,
}

/// A line over which a load can move.
struct Line<'p> {
    text: &'p str,
    kind: Kind,
    /// Whether other threads' writes matter to it.
    order: Order,
    writes: Vec<&'p str>,
    reads: Vec<&'p str>,
}

/// What memory has to do with an instruction.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    None,
    /// It reads memory that other threads may write before.
    Reads,
    /// It may tell that others have written.
    Tells,
}

impl<'p> Line<'p> {
    fn of(text: &'p str) -> Option<Line<'p>> {
        if is_no_instruction(text) {
            let (kind, order) = (Kind::Passed, Order::None);
            return Some(Line { text, kind, order, writes: vec![], reads: vec![] });
        }
        let [_, word, operands, _] = instruction(text)?;
        let name = word.split('.').next()?;
        // A carry goes to the next instruction.
        if word.contains(".cc") {
            return None;
        }
        let plain = word.strip_prefix(LOAD).and_then(plain_words);
        let is_ordered = ["volatile", "relaxed", "acquire", "mmio"];
        let order = match name {
            "ld" if plain.is_some() => Order::Reads,
            "ld" if word.split('.').any(|part| is_ordered.contains(&part)) => Order::Tells,
            "shfl" | "vote" | "match" | "redux" => Order::Tells,
            _ => Order::None,
        };
        let kind = if let Some(ty) = word.strip_prefix("ld.global.nc.") {
            Kind::Load(words(ty)?)
        } else if let Some(words) = plain {
            Kind::Load(words)
        } else if ends_block(word) {
            Kind::Ends
        } else if MOVABLE.contains(&name)
            && !operands.contains("clock")
            && !operands.contains("timer")
        {
            Kind::Movable
        } else if PASSED.contains(&name) || name == "mov" {
            Kind::Passed
        } else {
            return None;
        };
        let writes = written(text);
        // The results come first.
        let sources = match operands.trim_start().strip_prefix('{') {
            Some(list) => list.split_once('}')?.1,
            None => operands.split_once(',')?.1,
        };
        let reads = registers(sources).into_keys().collect();
        Some(Line { text, kind, order, writes, reads })
    }
}

/// The words of a load that is neither volatile nor ordered, nor chooses a cache: `v2.f32`, `u8`.
fn plain_words(ty: &str) -> Option<u32> {
    let one = ty.strip_prefix("v2.").or_else(|| ty.strip_prefix("v4.")).unwrap_or(ty);
    if one.contains('.') { None } else { words(ty) }
}

/// The words of a load of this type.
fn words(ty: &str) -> Option<u32> {
    let (count, ty) = match ty.rsplit_once('.') {
        Some((before, ty)) => (before.rsplit('.').find_map(|word| word.strip_prefix('v')), ty),
        None => (None, ty),
    };
    let bits: u32 = ty.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    let count: u32 = count.map_or(Some(1), |count| count.parse().ok())?;
    Some(count * bits.div_ceil(32))
}

/// Whether ptxas ends a block at an instruction: lanes may come together there, or it calls a function for rare numbers.
fn ends_block(word: &str) -> bool {
    const WARP: [&str; 4] = ["shfl.", "vote.", "match.", "redux."];
    const EXACT: [&str; 3] = ["div.rn.", "sqrt.rn.", "rcp.rn."];
    let is_long = word.ends_with("64") && (word.starts_with("div.") || word.starts_with("rem."));
    is_long || WARP.iter().chain(&EXACT).any(|start| word.starts_with(start))
}

/// Lines that run one after another.
struct Block<'a, 'p> {
    lines: &'a [Line<'p>],
    /// By register, the lines that write it.
    writers: BTreeMap<&'p str, Vec<usize>>,
    /// By register, the lines that read it.
    readers: BTreeMap<&'p str, Vec<usize>>,
}

impl<'a, 'p> Block<'a, 'p> {
    fn of(lines: &'a [Line<'p>]) -> Block<'a, 'p> {
        let is_any = |kind: fn(&Kind) -> bool| lines.iter().any(|line| kind(&line.kind));
        let (mut writers, mut readers) = (BTreeMap::new(), BTreeMap::new());
        if is_any(|kind| *kind == Kind::Ends) && is_any(|kind| matches!(kind, Kind::Load(_))) {
            for (at, line) in lines.iter().enumerate() {
                for register in &line.writes {
                    writers.entry(*register).or_insert_with(Vec::new).push(at);
                }
                for register in &line.reads {
                    readers.entry(*register).or_insert_with(Vec::new).push(at);
                }
            }
        }
        Block { lines, writers, readers }
    }

    fn write(&self, text: &mut String) {
        if self.writers.is_empty() {
            self.lines.iter().for_each(|line| *text += line.text);
            return;
        }
        let mut is_written = vec![false; self.lines.len()];
        // The loads that were moved and are not used yet.
        let mut waiting: Vec<usize> = vec![];
        for at in 0..self.lines.len() {
            if is_written[at] {
                continue;
            }
            // Behind its own place, a load holds its registers no longer than before.
            let reads = &self.lines[at].reads;
            waiting.retain(|load| {
                let is_read = self.lines[*load].writes.iter().any(|one| reads.contains(one));
                *load > at && !is_read
            });
            // Several together: with one load before each division, a hidden Markov model took 1.02 of nvcc's time, so 0.95.
            if self.lines[at].kind == Kind::Ends && waiting.is_empty() {
                waiting = self.write_loads(at, &mut is_written, text);
            }
            *text += self.lines[at].text;
            is_written[at] = true;
        }
    }

    /// Writes the loads behind a line that may come before it, as far as there is room.
    fn write_loads(&self, at: usize, is_written: &mut [bool], text: &mut String) -> Vec<usize> {
        let (mut room, mut loads) = (MOST_WORDS, vec![]);
        for load in at + 1..self.lines.len().min(at + FARTHEST) {
            let Kind::Load(words) = self.lines[load].kind else { continue };
            if is_written[load] {
                continue;
            }
            if self.lines[load].order == Order::Reads && self.is_told(at, load) {
                continue;
            }
            let Some(needed) = self.needed(load, at, is_written) else { continue };
            if words > room {
                break;
            }
            room -= words;
            for one in needed {
                *text += self.lines[one].text;
                is_written[one] = true;
            }
            loads.push(load);
        }
        loads
    }

    /// Whether others may have written by what an instruction from `at` to `load` tells.
    fn is_told(&self, at: usize, load: usize) -> bool {
        self.lines[at..load].iter().any(|line| line.order == Order::Tells)
    }

    /// The lines that must move with a load before the line `at`, in order. `None` if it cannot.
    fn needed(&self, load: usize, at: usize, is_written: &[bool]) -> Option<Vec<usize>> {
        let (mut needed, mut open) = (vec![], vec![load]);
        while let Some(one) = open.pop() {
            if needed.contains(&one) {
                continue;
            }
            let line = &self.lines[one];
            let moves = match line.kind {
                Kind::Movable => true,
                Kind::Load(_) => one == load,
                Kind::Ends | Kind::Passed => false,
            };
            if !moves || !line.writes.iter().all(|register| self.is_free(register, at, one)) {
                return None;
            }
            for register in &line.reads {
                match self.writers.get(register).map(Vec::as_slice) {
                    None => {}
                    Some([writer]) if is_written[*writer] || *writer > one => {}
                    Some([writer]) if *writer != at => open.push(*writer),
                    Some(_) => return None,
                }
            }
            needed.push(one);
        }
        needed.sort_unstable();
        Some(needed)
    }

    /// Whether a register is written once, by `one`, and nothing from `at` to there reads what it had before.
    fn is_free(&self, register: &str, at: usize, one: usize) -> bool {
        let is_read = self
            .readers
            .get(register)
            .is_some_and(|readers| readers.iter().any(|reader| (at..=one).contains(reader)));
        !is_read && self.writers.get(register).is_some_and(|writers| writers.len() == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::hoist;

    #[test]
    fn loads_move_over_shuffles_and_divisions() {
        let ptx = "\
.visible .entry moved(
{
\tshfl.sync.bfly.b32 \t%r2|%p1, %r1, 16, 31, -1;
\tadd.s64 \t%rd2, %rd1, 4;
\t// comment
\tdiv.rn.f32 \t%f2, %f1, %f0;
\tld.global.nc.f32 \t%f3, [%rd2];
\tld.global.nc.v4.f32 \t{%f4, %f5, %f6, %f7}, [%rd2+16];
\tadd.f32 \t%f8, %f3, %f2;
}
.visible .entry kept(
{
\t// The address is of the shuffle's result.
\tshfl.sync.idx.b32 \t%r2, %r1, 0, 31, -1;
\tmul.wide.u32 \t%rd2, %r2, 4;
\tld.global.nc.f32 \t%f3, [%rd2];
\t// Something may be written between.
\tdiv.rn.f32 \t%f2, %f1, %f0;
\tbar.sync \t0;
\tld.global.nc.f32 \t%f4, [%rd1];
\t// Under a condition.
\tsqrt.rn.f32 \t%f5, %f1;
\t@%p1 ld.global.nc.f32 \t%f6, [%rd1];
\t// The register has another number before, and after.
\tdiv.rn.f32 \t%f7, %f1, %f0;
\tadd.f32 \t%f9, %f8, %f8;
\tld.global.nc.f32 \t%f8, [%rd1];
\tdiv.rn.f32 \t%f10, %f1, %f0;
\tld.global.nc.f32 \t%f11, [%rd1];
\tmov.f32 \t%f11, %f10;
\t// What another lane wrote before.
\tshfl.sync.idx.b32 \t%r3, %r1, 0, 31, -1;
\tld.global.f32 \t%f13, [%rd1];
\trcp.rn.f32 \t%f12, %f1;
\tld.acquire.gpu.global.u32 \t%r4, [%rd1];
\tld.global.f32 \t%f14, [%rd1];
\tsqrt.rn.f32 \t%f15, %f1;
\tst.global.f32 \t[%rd1], %f14;
\tld.global.f32 \t%f16, [%rd1];
\trcp.rn.f32 \t%f17, %f1;
\tld.volatile.global.f32 \t%f18, [%rd1];
}
.visible .entry over_a_division(
{
\tdiv.rn.f32 \t%f2, %f1, %f0;
\tld.global.v2.f32 \t{%f3, %f4}, [%rd1];
\tld.shared.f32 \t%f5, [%rd2];
\tsqrt.rn.f32 \t%f6, %f1;
\tld.global.u8 \t%rs1, [%rd1+8];
}
";
        insta::assert_snapshot!(hoist(ptx.to_owned()));
    }

    #[test]
    fn sums_with_a_carry_stay_before_those_that_add_it() {
        let ptx = "{\n\tdiv.rn.f32 \t%f2, %f1, %f0;\n\tadd.cc.u32 \t%r2, %r1, 4;\n\taddc.u32 \t%r3, %r0, 0;\n\
            \tmov.b64 \t%rd1, {%r2, %r3};\n\tld.global.nc.f32 \t%f3, [%rd1];\n}\n";
        assert_eq!(hoist(ptx.to_owned()), ptx);
        // The address is the lower half alone.
        let ptx = "{\n\tdiv.rn.f32 \t%f2, %f1, %f0;\n\tadd.cc.u32 \t%r2, %r1, 4;\n\
            \tcvt.u64.u32 \t%rd1, %r2;\n\tld.global.nc.f32 \t%f3, [%rd1];\n\taddc.u32 \t%r3, %r0, 0;\n}\n";
        assert_eq!(hoist(ptx.to_owned()), ptx);
    }

    #[test]
    fn no_more_loads_move_than_registers_are_for() {
        let loads: String = (0..12)
            .map(|at| {
                format!(
                    "\tld.global.nc.v2.f32 \t{{%f{at}0, %f{at}1}}, [%rd1+{at}];\n\
                     \tdiv.rn.f32 \t%f{at}2, %f{at}0, %f{at}1;\n"
                )
            })
            .collect();
        let text = hoist(format!("{{\n\trcp.rn.f32 \t%f1, %f0;\n{loads}}}\n"));
        let lines: Vec<&str> =
            text.lines().map(|line| line.trim().split('.').next().unwrap_or("")).collect();
        insta::assert_snapshot!(lines.join(" "));
    }
}
