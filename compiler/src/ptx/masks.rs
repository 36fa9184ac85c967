//! Bit masks of numbers that `cvt` makes of `f32`.
//!
//! ptxas (CUDA 13.0, sm_80 to sm_120, from `-O1` on) drops `and.b16`, `and.b32` and conversions from `u8` with a constant mask if their
//! operand is such a number of 16 bits, possibly copied, and their result becomes the lower half of a register:
//!
//! ```text
//! cvt.rn.f16.f32 %rs1, %f1;
//! and.b16        %rs2, %rs1, 32767;
//! mov.b32        %r1, {%rs2, %rs3};
//! ```
//!
//! The machine code converts with F2FP, and takes the mask for the removal of the upper half. `lop3` means the same as `and`, becomes the
//! same LOP3, and is not affected.

use std::collections::{BTreeMap, BTreeSet};

use super::workarounds::instruction;

/// Replaces the masks.
pub(super) fn apply(ptx: String) -> String {
    if !ptx.lines().any(|line| half_result(line).is_some()) {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    let mut halves = BTreeSet::new();
    let mut lines = ptx.split_inclusive('\n');
    while let Some(line) = lines.next() {
        // Each function numbers its registers anew.
        if line.starts_with('{') {
            halves = halves_of(lines.clone().take_while(|line| !line.starts_with('}')));
        }
        match masked(line, &halves) {
            Some(rewritten) => text += &rewritten,
            None => text += line,
        }
    }
    text
}

/// The register that a conversion from `f32` to 16 bits, or to two such numbers, writes.
fn half_result(line: &str) -> Option<&str> {
    let [_, word, operands, _] = instruction(line)?;
    let ty = word.strip_prefix("cvt.")?.strip_suffix(".f32")?.rsplit('.').next()?;
    let is_half = matches!(ty, "f16" | "bf16") || ty.ends_with("x2");
    is_half.then(|| operands.split(',').next().unwrap_or_default().trim())
}

/// The registers of a function with the bits of such numbers.
fn halves_of<'a>(body: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut waiting = vec![];
    let mut copies: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in body {
        waiting.extend(half_result(line));
        let Some([_, word, operands, _]) = instruction(line) else { continue };
        if !is_copy(word) {
            continue;
        }
        let (results, sources) = parts(operands);
        for source in sources {
            copies.entry(source).or_default().extend(&results);
        }
    }
    let mut halves = BTreeSet::new();
    while let Some(half) = waiting.pop() {
        if halves.insert(half) {
            waiting.extend(copies.get(half).into_iter().flatten());
        }
    }
    halves
}

/// Whether an instruction copies bits of its operands.
fn is_copy(word: &str) -> bool {
    let is_integer = |ty: &str| ty.starts_with(['u', 's']) && ty[1..].parse::<u32>().is_ok();
    match word.split_once('.') {
        Some(("mov" | "selp" | "and", _)) => true,
        Some(("cvt", types)) => types.split('.').all(is_integer),
        _ => false,
    }
}

/// The registers that an instruction writes, and those that it reads.
fn parts(operands: &str) -> (Vec<&str>, Vec<&str>) {
    let operands = operands.trim();
    let split = match operands.starts_with('{') {
        true => operands.split_once('}'),
        false => operands.split_once(','),
    };
    let (results, sources) = split.unwrap_or((operands, ""));
    (registers(results), registers(sources))
}

fn registers(list: &str) -> Vec<&str> {
    list.split(['{', '}', ',']).map(str::trim).filter(|name| name.starts_with('%')).collect()
}

/// A mask of such a number, rewritten.
fn masked(line: &str, halves: &BTreeSet<&str>) -> Option<String> {
    let [indent, word, operands, end] = instruction(line)?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let (result, operands) = match (word, &operands[..]) {
        ("and.b16" | "and.b32", &[result, left, right]) => (result, [left, right]),
        ("cvt.u16.u8" | "cvt.u32.u8", &[result, operand]) => (result, [operand, "255"]),
        _ => return None,
    };
    if !operands.iter().any(|operand| halves.contains(operand)) {
        return None;
    }
    let mut text = format!("{indent}{{\n{indent}.reg .b32 %half, %mask;\n");
    for (operand, copy) in operands.into_iter().zip(["%half", "%mask"]) {
        let copying = if is_narrow(operand) { "cvt.u32.u16" } else { "mov.b32" };
        text += &format!("{indent}{copying} \t{copy}, {operand};\n");
    }
    text += &format!("{indent}lop3.b32 \t%half, %half, %mask, 0, 0xC0;\n");
    let copying = if is_narrow(result) { "cvt.u16.u32" } else { "mov.b32" };
    Some(text + &format!("{indent}{copying} \t{result}, %half;\n{indent}}}{end}"))
}

/// Whether this is a register of 16 bits.
fn is_narrow(operand: &str) -> bool {
    operand.starts_with("%rs")
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn masks_of_converted_numbers_are_rewritten() {
        let ptx = "\
{
\tcvt.rn.f16.f32 \t%rs1, %r1;
\tand.b16 \t%rs2, %rs1, 32767; // why
\tmov.b32 \t%r2, {%rs3, %rs1};
\tmov.b32 \t{%rs4, %rs5}, %r2;
\tand.b16 \t%rs6, %rs5, %rs7;
\tcvt.u32.u16 \t%r3, %rs6;
\tand.b32 \t%r4, %r3, -32768;
\tcvt.u32.u8 \t%r5, %rs1;
\tcvt.u16.u8 \t%rs8, %r3;
\tadd.rn.f16 \t%rs9, %rs1, %rs1;
\tand.b16 \t%rs10, %rs9, 32767;
\tcvt.u16.f32 \t%rs11, %r1;
\tand.b16 \t%rs12, %rs11, 32767;
\tcvt.rn.bf16x2.f32 \t%r6, %r1, %r1;
\tmov.b32 \t{%rs13, %rs14}, %r6;
$L__BB0_2:
\tand.b16 \t%rs15, %rs16, 32767;
\tmov.b16 \t%rs16, %rs14;
}
{
\tand.b16 \t%rs2, %rs1, 32767;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
        let other = "{\n\tcvt.f32.f16 \t%r1, %rs1;\n\tand.b16 \t%rs2, %rs1, 32767;\n}\n";
        assert_eq!(apply(other.to_owned()), other);
    }
}
