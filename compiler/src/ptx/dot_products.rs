//! Sums of two products that libNVVM makes of numbers which are not packed.
//!
//! libNVVM packs two numbers of 16 bits, and multiplies them with two constants by one `dp2a`. ptxas then has an instruction for the
//! packing and a slower one for the products, where two `mad` do. If the constants are the same, libNVVM even had one product of a sum before:
//!
//! | PTX | becomes |
//! |---|---|
//! | `mov.b32 %r1, {%rs1, %rs2}; mov.u32 %r2, 5140; dp2a.lo.u32.u32 %r3, %r1, %r2, %r0;` | the first two, `cvt.u32.u16 %a, %rs1; cvt.u32.u16 %b, %rs2; add.s32 %a, %a, %b; mad.lo.s32 %r3, %a, 20, %r0;` |
//!
//! Numbers that come packed from memory stay packed. ptxas removes the first two if nothing else reads their results.

use std::collections::{BTreeMap, BTreeSet};

use super::workarounds::{functions, instruction, scope, written};

/// Multiplies numbers that were loaded one by one.
pub(super) fn unpack(ptx: String) -> String {
    if !ptx.contains("dp2a.lo.") {
        return ptx;
    }
    functions(&ptx).map(unpacked).collect()
}

/// Everything up to a function's end.
fn unpacked(function: &str) -> String {
    let known = Known::of(function);
    let found: BTreeMap<usize, Products<'_>> = function
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at, known.products(line)?)))
        .collect();
    // ptxas extends the sign in the load.
    let signed = found.values().filter(|products| products.is_signed);
    let signed: BTreeSet<&str> = signed.flat_map(|products| products.numbers).collect();
    let mut text = String::with_capacity(function.len());
    for (at, line) in function.split_inclusive('\n').enumerate() {
        match found.get(&at) {
            Some(products) => text += &products.written_out(line),
            None if written(line).iter().any(|register| signed.contains(register)) => {
                text += &line.replacen(".u16", ".s16", 1);
            }
            None => text += line,
        }
    }
    text
}

/// The instructions of a function that write a register, if only one does.
struct Known<'p>(BTreeMap<&'p str, Option<&'p str>>);

/// `dp2a` of two numbers that were loaded, and two constants.
struct Products<'p> {
    is_signed: bool,
    result: &'p str,
    numbers: [&'p str; 2],
    factors: [i32; 2],
    added: &'p str,
}

impl<'p> Known<'p> {
    fn of(function: &'p str) -> Known<'p> {
        let mut known = BTreeMap::new();
        for line in function.lines() {
            for register in written(line) {
                known.entry(register).and_modify(|one| *one = None).or_insert(Some(line));
            }
        }
        Known(known)
    }

    /// The word and the operands of the instruction that writes a register.
    fn writer(&self, register: &str) -> Option<(&'p str, &'p str)> {
        let [_, word, operands, _] = instruction(self.0.get(register).copied().flatten()?)?;
        Some((word, operands))
    }

    fn products(&self, line: &'p str) -> Option<Products<'p>> {
        let [_, word, operands, _] = instruction(line)?;
        let types = word.strip_prefix("dp2a.lo.")?;
        let (of_numbers, of_factors) = types.split_once('.')?;
        let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
        let [result, packed, constant, added] = operands[..] else { return None };
        let (word, halves) = self.writer(packed)?;
        let halves = halves.split_once('{')?.1.split_once('}')?.0.split_once(',')?;
        let numbers = [halves.0.trim(), halves.1.trim()];
        let are_loaded = numbers.iter().all(|number| {
            let load = self.writer(number);
            load.is_some_and(|(word, operands)| {
                word.starts_with("ld.") && !operands.trim_start().starts_with('{')
            })
        });
        if word != "mov.b32" || !are_loaded {
            return None;
        }
        let (word, value) = self.writer(constant)?;
        let value: i64 =
            value.split_once(',')?.1.trim().parse().ok().filter(|_| word == "mov.u32")?;
        let bytes = [value as u8, (value >> 8) as u8];
        let factors = bytes.map(|byte| match of_factors {
            "s32" => i32::from(byte as i8),
            _ => i32::from(byte),
        });
        Some(Products { is_signed: of_numbers == "s32", result, numbers, factors, added })
    }
}

impl Products<'_> {
    /// In place of the line with the `dp2a`.
    fn written_out(&self, line: &str) -> String {
        let [indent, _, _, end] = instruction(line).unwrap_or_default();
        let sign = if self.is_signed { 's' } else { 'u' };
        let Products { result, numbers: [first, second], factors, added, .. } = self;
        let mut lines = vec![
            ".reg .b32 %gridlet_first, %gridlet_second;".into(),
            format!("cvt.{sign}32.{sign}16 \t%gridlet_first, {first};"),
            format!("cvt.{sign}32.{sign}16 \t%gridlet_second, {second};"),
        ];
        if factors[0] == factors[1] {
            lines.push("add.s32 \t%gridlet_first, %gridlet_first, %gridlet_second;".into());
            lines.push(format!("mad.lo.s32 \t{result}, %gridlet_first, {}, {added};", factors[0]));
        } else {
            lines.push(format!(
                "mad.lo.s32 \t%gridlet_first, %gridlet_first, {}, {added};",
                factors[0]
            ));
            lines.push(format!(
                "mad.lo.s32 \t{result}, %gridlet_second, {}, %gridlet_first;",
                factors[1]
            ));
        }
        scope(indent, &lines, end)
    }
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn loaded_numbers_are_multiplied_one_by_one() {
        let ptx = "\
.visible .entry apart(
{
\tld.global.nc.u8 \t%rs1, [%rd1];
\tld.global.nc.u8 \t%rs2, [%rd2];
\tmov.b32 \t%r1, {%rs1, %rs2};
\tmov.u32 \t%r2, 5140;
\tdp2a.lo.u32.u32 \t%r3, %r1, %r2, %r0;
\tld.shared.u16 \t%rs3, [%r9];
\tld.shared.u16 \t%rs4, [%r9+2];
\tmov.b32 \t%r4, {%rs3, %rs4};
\tmov.u32 \t%r5, 64507;
\tdp2a.lo.s32.s32 \t%r6, %r4, %r5, %r3;
\tmov.u32 \t%r7, 769;
\tdp2a.lo.s32.s32 \t%r8, %r4, %r7, -1;
}
.visible .entry packed(
{
\tld.global.v2.u16 \t{%rs1, %rs2}, [%rd1];
\tmov.b32 \t%r1, {%rs1, %rs2};
\tmov.u32 \t%r2, 5140;
\tdp2a.lo.u32.u32 \t%r3, %r1, %r2, %r0;
\tld.global.u32 \t%r4, [%rd1];
\tdp2a.lo.u32.u32 \t%r5, %r4, %r2, %r0;
\tld.global.u32 \t%r6, [%rd1];
\tdp2a.lo.u32.u32 \t%r7, %r1, %r6, %r0;
}
";
        insta::assert_snapshot!(unpack(ptx.to_owned()));
    }
}
