//! Integer divisions without ptxas's own test of the divisor.
//!
//! The result of PTX's divisions for a divisor of zero is unspecified, but ptxas tests each divisor and then returns all ones. A
//! program has tested it already, so two of some twenty instructions are wasted with 32 bits, four with 64, where ptxas
//! also calls a function. Here, the steps that ptxas takes are written down without that test, in the same way for all architectures.
//! With numbers of `w` bits:
//!
//! - The reciprocal of `d` as a float, times about `2^w` by addition to its exponent, is a little less than `2^w / d`: `d` is rounded up,
//!   the addend is less than that factor by 2 in the last bit, and the reciprocal has an error of at most 1 there.
//! - Newton's method makes `2^w / d - 2 < r <= 2^w / d` of it, in one step for 32 bits and in two for 64. (For 32 bits, a program verified
//!   that for every `d` and every such error; with 64 bits the same floats are scaled.)
//! - So `n * r / 2^w` is the quotient or up to 2 less, and two comparisons correct it.
//!
//! Signed divisions divide magnitudes, as unsigned numbers, and set the sign. For the smallest number and -1 that gives the smallest number
//! and a remainder of 0.

use super::workarounds::{instruction, scope};

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

/// `div` or `rem`.
struct Division<'a> {
    indent: &'a str,
    is_quotient: bool,
    is_signed: bool,
    /// 32 or 64.
    bits: u32,
    result: &'a str,
    dividend: &'a str,
    divisor: &'a str,
}

/// The division in a line.
fn division(line: &str) -> Option<Division<'_>> {
    let [indent, word, operands, end] = instruction(line)?;
    let (is_quotient, ty) = match word.split_once('.')? {
        ("div", ty) => (true, ty),
        ("rem", ty) => (false, ty),
        _ => return None,
    };
    let (is_signed, bits) = match ty {
        "u32" => (false, 32),
        "s32" => (true, 32),
        "u64" => (false, 64),
        "s64" => (true, 64),
        _ => return None,
    };
    let [result, dividend, divisor] =
        operands.split(',').map(str::trim).collect::<Vec<_>>().try_into().ok()?;
    let is_plain = end.trim().is_empty() && divisor.starts_with('%');
    is_plain.then_some(Division { indent, is_quotient, is_signed, bits, result, dividend, divisor })
}

impl Division<'_> {
    /// The instructions, in a scope of their own.
    fn steps(&self) -> String {
        let Division { result, dividend, divisor, bits, .. } = *self;
        let (n, d) =
            if self.is_signed { ("%gridlet_n", "%gridlet_d") } else { (dividend, divisor) };
        let mut lines = vec![
            ".reg .pred %gridlet_p;".to_owned(),
            ".reg .f32 %gridlet_f;".to_owned(),
            ".reg .b32 %gridlet_b;".to_owned(),
            format!(
                ".reg .b{bits} %gridlet_n, %gridlet_d, %gridlet_r, %gridlet_e, %gridlet_q, %gridlet_m;"
            ),
        ];
        if self.is_signed {
            lines.push(format!("abs.s{bits} {n}, {dividend};"));
            lines.push(format!("abs.s{bits} {d}, {divisor};"));
        }
        // The exponent of the factor is the number of bits.
        let (scale, to_integer) = match bits {
            32 => ("0x0ffffffe", "cvt.rzi.ftz.u32.f32"),
            _ => ("0x1ffffffe", "cvt.rzi.u64.f32"),
        };
        lines.extend([
            format!("cvt.rp.f32.u{bits} %gridlet_f, {d};"),
            "rcp.approx.ftz.f32 %gridlet_f, %gridlet_f;".to_owned(),
            "mov.b32 %gridlet_b, %gridlet_f;".to_owned(),
            format!("add.u32 %gridlet_b, %gridlet_b, {scale};"),
            "mov.b32 %gridlet_f, %gridlet_b;".to_owned(),
            format!("{to_integer} %gridlet_r, %gridlet_f;"),
        ]);
        for _ in 0..bits / 32 {
            lines.extend([
                format!("neg.s{bits} %gridlet_e, %gridlet_r;"),
                format!("mul.lo.u{bits} %gridlet_e, %gridlet_e, {d};"),
                format!("mad.hi.u{bits} %gridlet_r, %gridlet_r, %gridlet_e, %gridlet_r;"),
            ]);
        }
        let compared = format!("setp.ge.u{bits} %gridlet_p, %gridlet_m, {d};");
        let less = format!("@%gridlet_p sub.u{bits} %gridlet_m, %gridlet_m, {d};");
        let more = format!("@%gridlet_p add.u{bits} %gridlet_q, %gridlet_q, 1;");
        lines.extend([
            format!("mul.hi.u{bits} %gridlet_q, %gridlet_r, {n};"),
            format!("neg.s{bits} %gridlet_e, %gridlet_q;"),
            format!("mad.lo.u{bits} %gridlet_m, %gridlet_e, {d}, {n};"),
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
                lines.push(format!("xor.b{bits} %gridlet_e, {dividend}, {divisor};"));
                "%gridlet_e"
            } else {
                dividend
            };
            lines.push(format!("setp.lt.s{bits} %gridlet_p, {sign}, 0;"));
            lines.push(format!("@%gridlet_p neg.s{bits} {magnitude}, {magnitude};"));
        }
        lines.push(format!("mov.b{bits} {result}, {magnitude};"));
        scope(self.indent, &lines, "\n")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::expand;

    /// What the instructions give for a dividend and a divisor, if the reciprocal is off by `error` in its last bit.
    fn run(instruction: &str, dividend: u64, divisor: u64, error: i32) -> u64 {
        let text = expand(format!("{instruction} %r3, %r1, %r2;\n"));
        assert!(!text.contains("\n}"), "{text}");
        let mut registers = BTreeMap::from([("%r1", dividend), ("%r2", divisor)]);
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| line.ends_with(';') && !line.starts_with(".reg")) {
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
                Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
                None => operands[at].parse().unwrap_or_else(|_| registers[operands[at]]),
            };
            let float = |at: usize| f32::from_bits(number(at) as u32);
            let is_wide = word.ends_with("64") || word == "cvt.rzi.u64.f32";
            let shift = if is_wide { 0 } else { 32 };
            let signed = |at: usize| (number(at) << shift) as i64 >> shift;
            let high = || {
                let product = u128::from(number(1)) * u128::from(number(2));
                (product >> if is_wide { 64 } else { 32 }) as u64
            };
            let value = match word.trim_end_matches("32").trim_end_matches("64") {
                "abs.s" => signed(1).unsigned_abs(),
                "cvt.rp.f32.u" => {
                    let float = number(1) as f32;
                    let is_less = (float as u128) < u128::from(number(1));
                    u64::from(float.to_bits() + u32::from(is_less))
                }
                "rcp.approx.ftz.f" => {
                    let reciprocal = (1.0 / f64::from(float(1))) as f32;
                    u64::from(reciprocal.to_bits().wrapping_add_signed(error))
                }
                "cvt.rzi.ftz.u32.f" => u64::from(float(1) as u32),
                "cvt.rzi.u64.f" => float(1) as u64,
                "mov.b" => number(1),
                "neg.s" => number(1).wrapping_neg(),
                "add.u" => number(1).wrapping_add(number(2)),
                "sub.u" => number(1).wrapping_sub(number(2)),
                "xor.b" => number(1) ^ number(2),
                "mul.lo.u" => number(1).wrapping_mul(number(2)),
                "mul.hi.u" => high(),
                "mad.lo.u" => number(1).wrapping_mul(number(2)).wrapping_add(number(3)),
                "mad.hi.u" => high().wrapping_add(number(3)),
                "setp.ge.u" => u64::from(number(1) >= number(2)),
                "setp.lt.s" => u64::from(signed(1) < signed(2)),
                _ => panic!("{line}"),
            };
            registers.insert(operands[0], value << shift >> shift);
        }
        registers["%r3"]
    }

    /// Numbers of all magnitudes and those beside powers of two, but zero.
    fn numbers(bits: u32) -> Vec<u64> {
        let edges = (0..bits)
            .flat_map(|bit| [-3, -1, 0, 1, 5].map(|by| (1u64 << bit).wrapping_add_signed(by)));
        let random = (1..60u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 57));
        let all = edges.chain(random).chain([u64::MAX, u64::MAX - 1]);
        all.map(|number| number << (64 - bits) >> (64 - bits)).filter(|it| *it != 0).collect()
    }

    #[test]
    fn results_are_right_for_every_error_of_the_reciprocal() {
        for &n in numbers(32).iter().step_by(11).chain([&0]) {
            for &d in &numbers(32) {
                let (n, d) = (n as u32, d as u32);
                let (s, t) = (n as i32, d as i32);
                let expected = [
                    ("div.u32", n / d),
                    ("rem.u32", n % d),
                    ("div.s32", s.wrapping_div(t) as u32),
                    ("rem.s32", s.wrapping_rem(t) as u32),
                ];
                for (word, expected) in expected {
                    for error in -1..=1 {
                        let found = run(word, n.into(), d.into(), error);
                        assert_eq!(found, u64::from(expected), "{word} {n} {d} {error}");
                    }
                }
            }
        }
        for &n in numbers(64).iter().step_by(29).chain([&0, &(1 << 63)]) {
            for &d in &numbers(64) {
                let (s, t) = (n as i64, d as i64);
                let expected = [
                    ("div.u64", n / d),
                    ("rem.u64", n % d),
                    ("div.s64", s.wrapping_div(t) as u64),
                    ("rem.s64", s.wrapping_rem(t) as u64),
                ];
                for (word, expected) in expected {
                    for error in -1..=1 {
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
