//! Tests of one half of a 64-bit number.
//!
//! ptxas compares both halves of a number of 64 bits, although those of one are zeros or make no difference:
//!
//! | PTX | becomes |
//! |---|---|
//! | `and.b64 %a, %x, 61440; setp.eq.b64 %p, %a, 0;` | the first, and `setp.eq.b32 %p, %low, 0;` with the lower half of `%a` |
//! | `setp.lt.u64 %p, %x, 1099511627776;` | `setp.lt.u32 %p, %high, 256;` with the upper half of `%x` |

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::negations::operands;
use super::workarounds::{functions, instruction, scope, written};

const LOW: u64 = 0xffff_ffff;

/// Which half of a number a test needs.
#[derive(Clone, Copy)]
enum Half {
    Low,
    High,
}

/// Compares halves where that is the same.
pub(super) fn halve(ptx: String) -> String {
    if !ptx.contains("setp.") || !ptx.contains("64 ") {
        return ptx;
    }
    functions(&ptx).map(halved).collect()
}

/// Everything up to a function's end.
fn halved(function: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    // By register that is written once, the half of it that is not zero.
    let mut halves: BTreeMap<&str, Option<Half>> = BTreeMap::new();
    for line in &lines {
        let half =
            operands(line, &["and.b64"]).and_then(|[_, _, mask]| match mask.parse().ok()? {
                mask @ 0..=i64::MAX if mask as u64 <= LOW => Some(Half::Low),
                mask if mask as u64 & LOW == 0 => Some(Half::High),
                _ => None,
            });
        for register in written(line) {
            halves.entry(register).and_modify(|half| *half = None).or_insert(half);
        }
    }
    let tested = |line: &str| test(line, &halves);
    if !lines.iter().any(|line| tested(line).is_some()) {
        return function.into();
    }
    lines.iter().map(|line| tested(line).unwrap_or_else(|| (*line).to_owned())).collect()
}

/// The test of a half in place of a line.
fn test(line: &str, halves: &BTreeMap<&str, Option<Half>>) -> Option<String> {
    let [indent, word, rest, end] = instruction(line)?;
    let ["setp", comparison, kind] = word.split('.').collect::<Vec<_>>()[..] else { return None };
    let [result, number, constant] = rest.split(',').map(str::trim).collect::<Vec<_>>()[..] else {
        return None;
    };
    let constant = constant.parse::<i64>().ok().filter(|_| number.starts_with("%rd"))?;
    let is_of_high = match comparison {
        "lt" | "ge" => constant as u64 & LOW == 0,
        "gt" | "le" => constant as u64 & LOW == LOW,
        _ => false,
    };
    let (half, kind, constant) = match kind {
        "u64" if is_of_high => (Half::High, "u32", constant >> 32),
        "s64" if is_of_high => (Half::High, "s32", constant >> 32),
        "b64" | "u64" | "s64" if ["eq", "ne"].contains(&comparison) && constant == 0 => {
            ((*halves.get(number)?)?, "b32", 0)
        }
        _ => return None,
    };
    let name = match half {
        Half::Low => "%gridlet_low",
        Half::High => "%gridlet_high",
    };
    let lines = [
        ".reg .b32 %gridlet_low, %gridlet_high;".to_owned(),
        format!("mov.b64 {{%gridlet_low, %gridlet_high}}, {number};"),
        format!("setp.{comparison}.{kind} {result}, {name}, {};", constant as i32),
    ];
    Some(scope(indent, &lines, end))
}

#[cfg(test)]
mod tests {
    use super::halve;

    #[test]
    fn tests_of_masks_and_of_upper_halves_have_32_bits() {
        let ptx = "{
\tand.b64 \t%rd1, %rd9, 61440;
\tand.b64 \t%rd2, %rd9, -4294967296;
\tand.b64 \t%rd3, %rd9, 281474976710656;
\tsetp.eq.b64 \t%p1, %rd1, 0;
\tsetp.ne.s64 \t%p2, %rd2, 0;
\tsetp.eq.b64 \t%p3, %rd3, 0;
\tsetp.lt.u64 \t%p4, %rd9, 1099511627776;
\tsetp.gt.s64 \t%p5, %rd9, -1;
\tsetp.le.u64 \t%p6, %rd9, 4294967295;
\tsetp.ge.s64 \t%p7, %rd9, 0;
}
";
        insta::assert_snapshot!(halve(ptx.to_owned()));
    }

    #[test]
    fn tests_of_both_halves_stay() {
        let ptx = "{
\t// Of both halves, of a number with two values, and with constants that reach into the lower half.
\tand.b64 \t%rd1, %rd9, 1099511627777;
\tand.b64 \t%rd2, %rd9, 255;
\tmov.b64 \t%rd2, %rd8;
\tand.b64 \t%rd3, %rd9, -1;
\tand.b64 \t%rd4, %rd9, 7;
\tsetp.eq.b64 \t%p1, %rd1, 0;
\tsetp.eq.b64 \t%p2, %rd2, 0;
\tsetp.eq.b64 \t%p3, %rd3, 0;
\tsetp.eq.b64 \t%p4, %rd4, 7;
\tsetp.lt.u64 \t%p5, %rd9, 1099511627777;
\tsetp.gt.u64 \t%p6, %rd9, 1099511627776;
\tsetp.lt.u64 \t%p7, %rd9, %rd8;
}
";
        assert_eq!(halve(ptx.to_owned()), ptx);
    }
}
