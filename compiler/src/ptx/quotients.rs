//! Divisions of 32 bits without ptxas's own test of the divisor.
//!
//! The result of `div.u32`, `rem.u32`, `div.s32` and `rem.s32` for a divisor of zero is unspecified, but ptxas tests each divisor and
//! then returns all ones. A program has tested it already, so two of some twenty instructions are wasted. Here, the
//! steps that ptxas takes are written down without that test, in the same way for all architectures:
//!
//! - `r = 0x0ffffffe + bits(1 / d)` as a float is a little less than `2^32 / d`, because `d` is rounded up and the reciprocal has an error
//!   of at most one in its last bit.
//! - One step of Newton's method makes `2^32 / d - 2 < r <= 2^32 / d` of it. (A program verified that for every `d` and every such error.)
//! - So `n * r / 2^32` is the quotient or up to 2 less, and two comparisons correct it.
//!
//! Signed divisions divide magnitudes, as unsigned numbers, and set the sign. For the smallest number and -1 that gives the smallest number
//! and a remainder of 0.

use super::workarounds::instruction;

/// Writes out the divisions by registers.
pub(super) fn expand(ptx: String) -> String {
    if !ptx.lines().any(|line| division(line).is_some()) {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len() * 2);
    for line in ptx.split_inclusive('\n') {
        match division(line) {
            Some(division) => text += &division.steps(),
            None => text += line,
        }
    }
    text
}

/// `div` or `rem` of 32 bits.
struct Division<'a> {
    indent: &'a str,
    is_quotient: bool,
    is_signed: bool,
    result: &'a str,
    dividend: &'a str,
    divisor: &'a str,
}

/// The division in a line.
fn division(line: &str) -> Option<Division<'_>> {
    let [indent, word, operands, end] = instruction(line)?;
    let (is_quotient, is_signed) = match word {
        "div.u32" => (true, false),
        "rem.u32" => (false, false),
        "div.s32" => (true, true),
        "rem.s32" => (false, true),
        _ => return None,
    };
    let [result, dividend, divisor] =
        operands.split(',').map(str::trim).collect::<Vec<_>>().try_into().ok()?;
    let is_plain = end.trim().is_empty() && divisor.starts_with('%');
    is_plain.then_some(Division { indent, is_quotient, is_signed, result, dividend, divisor })
}

impl Division<'_> {
    /// The instructions, in a scope of their own.
    fn steps(&self) -> String {
        let Division { result, dividend, divisor, .. } = *self;
        let (n, d) =
            if self.is_signed { ("%gridlet_n", "%gridlet_d") } else { (dividend, divisor) };
        let mut lines = vec![
            "{".to_owned(),
            ".reg .pred %gridlet_p;".to_owned(),
            ".reg .f32 %gridlet_f;".to_owned(),
            ".reg .b32 %gridlet_n, %gridlet_d, %gridlet_r, %gridlet_e, %gridlet_q, %gridlet_m;"
                .to_owned(),
        ];
        if self.is_signed {
            lines.push(format!("abs.s32 {n}, {dividend};"));
            lines.push(format!("abs.s32 {d}, {divisor};"));
        }
        let compared = format!("setp.ge.u32 %gridlet_p, %gridlet_m, {d};");
        let less = format!("@%gridlet_p sub.u32 %gridlet_m, %gridlet_m, {d};");
        let more = "@%gridlet_p add.u32 %gridlet_q, %gridlet_q, 1;".to_owned();
        lines.extend([
            format!("cvt.rp.f32.u32 %gridlet_f, {d};"),
            "rcp.approx.ftz.f32 %gridlet_f, %gridlet_f;".to_owned(),
            "mov.b32 %gridlet_r, %gridlet_f;".to_owned(),
            "add.u32 %gridlet_r, %gridlet_r, 0x0ffffffe;".to_owned(),
            "mov.b32 %gridlet_f, %gridlet_r;".to_owned(),
            "cvt.rzi.ftz.u32.f32 %gridlet_r, %gridlet_f;".to_owned(),
            "neg.s32 %gridlet_e, %gridlet_r;".to_owned(),
            format!("mul.lo.u32 %gridlet_e, %gridlet_e, {d};"),
            "mad.hi.u32 %gridlet_r, %gridlet_r, %gridlet_e, %gridlet_r;".to_owned(),
            format!("mul.hi.u32 %gridlet_q, %gridlet_r, {n};"),
            "neg.s32 %gridlet_e, %gridlet_q;".to_owned(),
            format!("mad.lo.u32 %gridlet_m, %gridlet_e, {d}, {n};"),
            compared.clone(),
            less.clone(),
        ]);
        let magnitude = if self.is_quotient {
            lines.extend([more.clone(), compared, more]);
            "%gridlet_q"
        } else {
            lines.extend([compared, less]);
            "%gridlet_m"
        };
        if self.is_signed {
            // The sign of the quotient, or of the dividend.
            let sign = if self.is_quotient {
                lines.push(format!("xor.b32 %gridlet_e, {dividend}, {divisor};"));
                "%gridlet_e"
            } else {
                dividend
            };
            lines.push(format!("setp.lt.s32 %gridlet_p, {sign}, 0;"));
            lines.push(format!("@%gridlet_p neg.s32 {magnitude}, {magnitude};"));
        }
        lines.push(format!("mov.b32 {result}, {magnitude};"));
        lines.push("}".to_owned());
        lines.iter().map(|line| format!("{}{line}\n", self.indent)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::expand;

    /// What the instructions give for a dividend and a divisor, if the reciprocal is off by `error` in its last bit.
    fn run(instruction: &str, dividend: u32, divisor: u32, error: i32) -> u32 {
        let text = expand(format!("{instruction} %r3, %r1, %r2;\n"));
        let mut registers = BTreeMap::from([("%r1", dividend), ("%r2", divisor)]);
        for line in text.lines().filter(|line| line.ends_with(';') && !line.starts_with(".reg")) {
            let (condition, line) = match line.strip_prefix('@') {
                Some(rest) => rest.split_once(' ').unwrap(),
                None => ("", line),
            };
            if !condition.is_empty() && registers[condition] == 0 {
                continue;
            }
            let (word, operands) = line.trim_end_matches(';').split_once(' ').unwrap();
            let operands: Vec<&str> = operands.split(", ").collect();
            let number = |at: usize| match operands[at].strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
                None => operands[at].parse().unwrap_or_else(|_| registers[operands[at]]),
            };
            let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
            let value = match word {
                "abs.s32" => (number(1) as i32).unsigned_abs(),
                "cvt.rp.f32.u32" => {
                    let float = number(1) as f32;
                    let is_less = f64::from(float) < f64::from(number(1));
                    float.to_bits() + u32::from(is_less)
                }
                "rcp.approx.ftz.f32" => {
                    let reciprocal = 1.0 / f64::from(f32::from_bits(number(1)));
                    (reciprocal as f32).to_bits().wrapping_add_signed(error)
                }
                "cvt.rzi.ftz.u32.f32" => f32::from_bits(number(1)) as u32,
                "mov.b32" => number(1),
                "neg.s32" => number(1).wrapping_neg(),
                "add.u32" => number(1).wrapping_add(number(2)),
                "sub.u32" => number(1).wrapping_sub(number(2)),
                "xor.b32" => number(1) ^ number(2),
                "mul.lo.u32" => number(1).wrapping_mul(number(2)),
                "mul.hi.u32" => high(number(1), number(2)),
                "mad.lo.u32" => number(1).wrapping_mul(number(2)).wrapping_add(number(3)),
                "mad.hi.u32" => high(number(1), number(2)).wrapping_add(number(3)),
                "setp.ge.u32" => u32::from(number(1) >= number(2)),
                "setp.lt.s32" => u32::from((number(1) as i32) < number(2) as i32),
                _ => panic!("{line}"),
            };
            registers.insert(operands[0], value);
        }
        registers["%r3"]
    }

    #[test]
    fn results_are_right_for_every_error_of_the_reciprocal() {
        let edges = [1, 2, 3, 7, 255, 65_535, 65_537, (1 << 24) - 1, (1 << 24) + 1, 0x7fff_ffff];
        let edges = edges.into_iter().flat_map(|edge: u32| [edge, edge.wrapping_neg(), !edge]);
        let random = (1..100u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 29));
        let numbers: Vec<u32> =
            edges.chain([0x8000_0000, 0xffff_ffff]).chain(random).filter(|it| *it != 0).collect();
        for &n in numbers.iter().chain([&0]) {
            for &d in &numbers {
                for error in -1..=1 {
                    let (s, t) = (n as i32, d as i32);
                    let expected = [
                        ("div.u32", n / d),
                        ("rem.u32", n % d),
                        ("div.s32", s.wrapping_div(t) as u32),
                        ("rem.s32", s.wrapping_rem(t) as u32),
                    ];
                    for (word, expected) in expected {
                        assert_eq!(run(word, n, d, error), expected, "{word} {n} {d} {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn divisions_by_registers_are_written_out() {
        let ptx = "\
\tdiv.u32 \t%r3, %r1, %r2;
\trem.u32 \t%r3, 7, %r2;
\t// begin inline asm
\tdiv.s32 %r3, %r1, %r2;
\t// end inline asm
\trem.s32 \t%r1, %r1, %r2;
\tdiv.u32 \t%r3, %r1, 7;
\tdiv.s64 \t%rd3, %rd1, %rd2;
";
        insta::assert_snapshot!(expand(ptx.to_owned()));
    }
}
