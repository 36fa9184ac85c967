//! Numbers of 16 bits in registers of 32 bits.
//!
//! ptxas does not know what is in the upper half of a register of 16 bits to which several ways lead, and clears it before a
//! comparison. It moves that before a loop that compares, which then waits for the load of the number. A register of 32 bits is known to
//! have zeros there:
//!
//! | PTX | becomes |
//! |---|---|
//! | `ld.global.u16 %rs1, [%rd1];` | `ld.global.u16 %gridlet_wide1, [%rd1];` |
//! | `mov.u16 %rs1, -1;` | `mov.u32 %gridlet_wide1, 65535;` |
//! | `setp.lt.u16 %p1, %rs2, %rs1;` | `setp.lt.u32 %p1, %gridlet_wide2, %gridlet_wide1;` |
//!
//! It applies to registers that are only loaded, copied, selected, compared without a sign, widened without a sign and stored, and to those
//! that they are compared with.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::lane_reads::first_instruction;
use super::reductions::named;
use super::workarounds::{functions, instruction, writes};

const NARROW: &str = "%rs";

/// Widens the registers.
pub(super) fn widen(ptx: String) -> String {
    if !ptx.contains(NARROW) {
        return ptx;
    }
    functions(&ptx).map(widened).collect()
}

/// Everything up to a function's end.
fn widened(function: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let Some(begin) = first_instruction(&lines) else { return function.into() };
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    // Registers of one instruction, which have one width.
    let mut groups: Vec<Vec<&str>> = vec![];
    for line in &lines[begin..] {
        let those: Vec<&str> = named(line).filter(|it| is_narrow(it)).collect();
        if those.is_empty() {
            continue;
        }
        match Use::of(line) {
            None => kept.extend(those),
            Some(_) => groups.push(those),
        }
    }
    spread(&mut kept, &groups);
    let ways = writes(lines[begin..].iter().copied());
    let several =
        ways.into_iter().filter(|(it, ways)| *ways > 1 && is_narrow(it) && !kept.contains(it));
    let mut wide: BTreeSet<&str> = several.map(|(it, _)| it).collect();
    spread(&mut wide, &groups);
    let names: BTreeMap<&str, String> =
        wide.iter().map(|it| (*it, format!("%gridlet_wide{}", &it[NARROW.len()..]))).collect();
    if names.is_empty() {
        return function.into();
    }
    let mut text = lines[..begin].concat();
    for name in names.values() {
        text += &format!("\t.reg .b32 \t{name};\n");
    }
    for line in &lines[begin..] {
        let is_wide = named(line).any(|it| names.contains_key(it));
        let wide = Use::of(line).filter(|_| is_wide).map(|of| of.wide(&names));
        text += wide.as_deref().unwrap_or(line);
    }
    text.into()
}

/// Adds all registers of groups that have one.
fn spread<'p>(registers: &mut BTreeSet<&'p str>, groups: &[Vec<&'p str>]) {
    loop {
        let before = registers.len();
        for group in groups {
            if group.iter().any(|it| registers.contains(it)) {
                registers.extend(group);
            }
        }
        if registers.len() == before {
            return;
        }
    }
}

fn is_narrow(register: &str) -> bool {
    let number = register.strip_prefix(NARROW);
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An instruction that does the same with registers of 32 bits.
struct Use<'p> {
    /// What comes before the instruction's word: white space, and a condition.
    before: &'p str,
    /// The word for registers of 32 bits.
    word: String,
    operands: Vec<&'p str>,
    end: &'p str,
}

impl<'p> Use<'p> {
    fn of(line: &'p str) -> Option<Use<'p>> {
        let [indent, mut word, mut operands, end] = instruction(line)?;
        let mut before = indent;
        if word.starts_with('@') {
            let rest = operands.trim_start();
            before = &line[..line.len() - rest.len() - end.len() - 1];
            (word, operands) = rest.split_once(char::is_whitespace)?;
        }
        let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
        let parts: Vec<&str> = word.split('.').collect();
        let is_number = |it: &&str| is_narrow(it) || it.parse::<i32>().is_ok();
        let are_numbers = |those: &[&str]| those.iter().all(is_number);
        let wide = match (&parts[..], &operands[..]) {
            (["ld", kinds @ .., kind], [result, _]) => {
                let kind = match *kind {
                    "u8" | "b8" => "u8",
                    "u16" | "b16" => "u16",
                    _ => return None,
                };
                is_narrow(result).then(|| [&["ld"], kinds, &[kind]].concat().join("."))?
            }
            (["st", .., "u8" | "b8" | "u16" | "b16"], [_, value]) if is_narrow(value) => {
                word.to_owned()
            }
            (["mov", "u16" | "b16"], [_, from]) if is_number(from) => "mov.u32".to_owned(),
            (["selp", "b16" | "u16"], [_, a, b, _]) if are_numbers(&[a, b]) => {
                "selp.b32".to_owned()
            }
            (["setp", comparison, kind @ ("u16" | "b16" | "s16")], [_, a, b])
                if are_numbers(&[a, b])
                    && (*kind == "u16" || ["eq", "ne"].contains(comparison)) =>
            {
                format!("setp.{comparison}.u32")
            }
            (["cvt", "u32", "u16"], [_, from]) if is_narrow(from) => "mov.u32".to_owned(),
            (["cvt", "u64", "u16"], [_, from]) if is_narrow(from) => "cvt.u64.u32".to_owned(),
            _ => return None,
        };
        Some(Use { before, word: wide, operands, end })
    }

    fn wide(&self, names: &BTreeMap<&str, String>) -> String {
        let operands = self.operands.iter().map(|it| match (names.get(it), it.parse::<i32>()) {
            (Some(name), _) => name.clone(),
            // The lower 16 bits of a constant.
            (None, Ok(number)) => (number & 0xffff).to_string(),
            (None, Err(_)) => (*it).to_owned(),
        });
        let operands: Vec<String> = operands.collect();
        format!("{}{} \t{};{}", self.before, self.word, operands.join(", "), self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::widen;

    fn kernel(code: &str) -> String {
        let code: String = code.lines().map(|line| format!("\t{}\n", line.trim())).collect();
        format!(".visible .entry k(\n{{\n\t.reg .b16 \t%rs<9>;\n{code}\tret;\n}}\n")
    }

    #[test]
    fn numbers_that_are_only_moved_and_compared_have_32_bits() {
        let ptx = kernel(
            "mov.u16 %rs1, -1;
            @%p1 ld.global.nc.u16 %rs1, [%rd1+2];
            ld.shared.b8 %rs2, [%rd2];
            selp.b16 %rs3, %rs2, -2, %p2;
            setp.lt.u16 %p3, %rs1, %rs3;
            setp.eq.s16 %p4, %rs3, 7;
            cvt.u32.u16 %r1, %rs3;
            cvt.u64.u16 %rd3, %rs1;
            st.global.u8 [%rd1], %rs3;",
        );
        insta::assert_snapshot!(widen(ptx));
    }

    #[test]
    fn numbers_with_a_sign_or_of_which_others_are_computed_stay() {
        // And those to which one way leads.
        for code in [
            "ld.global.u16 %rs1, [%rd1];\nsetp.lt.u16 %p1, %rs1, 3;",
            "mov.u16 %rs1, 0;\nld.global.u16 %rs1, [%rd1];\nsetp.lt.s16 %p1, %rs1, 3;",
            "mov.u16 %rs1, 0;\nld.global.s16 %rs1, [%rd1];\nsetp.eq.s16 %p1, %rs1, 3;",
            "mov.u16 %rs1, 0;\nld.global.u16 %rs1, [%rd1];\nadd.s16 %rs2, %rs1, 3;\nst.global.u16 [%rd1], %rs2;",
            "mov.u16 %rs1, 0;\nld.global.u16 %rs1, [%rd1];\nmov.u16 %rs2, %rs1;\nneg.s16 %rs3, %rs2;",
            "mov.u16 %rs1, 0;\nld.global.v2.u16 {%rs1, %rs2}, [%rd1];\nsetp.eq.u16 %p1, %rs1, %rs2;",
            "mov.u16 %rs1, 0;\nld.global.u16 %rs1, [%rd1];\ncvt.s32.s16 %r1, %rs1;",
            "mov.u16 %rs1, 0;\nld.global.u16 %rs1, [%rd1];\ncvt.rn.f32.u16 %f1, %rs1;",
        ] {
            let ptx = kernel(code);
            assert_eq!(widen(ptx.clone()), ptx);
        }
    }
}
