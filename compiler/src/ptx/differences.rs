//! Differences from a value that lanes exchange.
//!
//! ptxas (CUDA 13.0, sm_90 and sm_100) makes one instruction, `VIADDMNMX`, of a difference and the `min` or `max` that reads it. Later
//! it finds that a shuffle of a constant is that constant, and negates the wrong operand:
//!
//! ```text
//! mov.u32             %r1, 1000;
//! shfl.sync.bfly.b32  %r2, %r1, 13, 31, -1;
//! sub.s32             %r3, %r2, %r4;
//! max.u32             %r5, %r3, %r6;
//! ```
//!
//! becomes `max(%r4 - 1000, %r6)`. It does so too if `setp` and `selp` stand in the place of `max`, after two shuffles, and if
//! `neg.s32` and `add.s32` compute several such differences. With any instruction between the shuffle and the difference, and for
//! constants that it finds otherwise, the result is right.
//!
//! | PTX | becomes |
//! |---|---|
//! | `sub.s32 %n, %e, %a;`, if `%e` is a shuffle's result and a `min`, `max` or `setp` reads `%n` | `not.b32 %n, %a;` `add.s32 %n, %n, 1;` `add.s32 %n, %e, %n;` |

use std::collections::BTreeSet;

use super::negations::{add_sources, operands};
use super::workarounds::instruction;

/// Rewrites the differences that are compared.
pub(super) fn apply(ptx: String) -> String {
    if !ptx.contains("shfl.") {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    let (mut exchanged, mut compared) = (BTreeSet::new(), BTreeSet::new());
    let mut lines = ptx.split_inclusive('\n');
    while let Some(line) = lines.next() {
        // Each function numbers its registers anew.
        if line.starts_with('{') {
            let body = || lines.clone().take_while(|line| !line.starts_with('}'));
            exchanged = body().filter_map(|line| results(line, "shfl.")).collect();
            // A copy of a result is one.
            let copies: Vec<[&str; 2]> = body().filter_map(copy).collect();
            add_sources(
                &mut exchanged,
                &copies.iter().map(|[to, from]| [*from, *to]).collect::<Vec<_>>(),
            );
            compared = body().flat_map(compared_by).collect();
            add_sources(&mut compared, &copies);
        }
        if let Some([indent, "sub.s32", operands, end]) = instruction(line)
            && let [result, from, number] =
                operands.split(',').map(str::trim).collect::<Vec<_>>()[..]
            && exchanged.contains(from)
            && compared.contains(result)
            && number.starts_with('%')
            && result != from
        {
            text += &format!("{indent}not.b32 \t{result}, {number};\n");
            text += &format!("{indent}add.s32 \t{result}, {result}, 1;\n");
            text += &format!("{indent}add.s32 \t{result}, {from}, {result};{end}");
            continue;
        }
        text += line;
    }
    text
}

/// The register that an instruction of this name writes.
fn results<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let [_, word, operands, _] = instruction(line)?;
    word.starts_with(name).then(|| operands.split([',', '|']).next().unwrap_or_default().trim())
}

/// The result and the source of a copy.
fn copy(line: &str) -> Option<[&str; 2]> {
    operands(line, &["mov.b32", "mov.u32", "mov.s32"])
}

/// The operands of an instruction that compares.
fn compared_by(line: &str) -> impl Iterator<Item = &str> {
    let operands = instruction(line).filter(|[_, word, ..]| {
        ["min.", "max.", "setp."].iter().any(|name| word.starts_with(name))
    });
    operands.into_iter().flat_map(|[_, _, operands, _]| operands.split(',').skip(1).map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn compared_differences_from_exchanged_values_are_sums() {
        let ptx = "\
{
\tshfl.sync.bfly.b32 \t%r2, %r1, 13, 31, -1;
\tshfl.sync.idx.b32 \t%r3|%p1, %r1, %r9, 31, -1;
\tmov.b32 \t%r4, %r3;
\tsub.s32 \t%r5, %r2, %r9; // why
\tsub.s32 \t%r6, %r3, %r9;
\tsub.s32 \t%r7, %r4, %r9;
\tsub.s32 \t%r8, %r2, 7;
\tsub.s32 \t%r10, %r9, %r2;
\tsub.s32 \t%r11, %r2, %r9;
\tmov.b32 \t%r12, %r5;
\tmax.u32 \t%r13, %r12, %r10;
\tmin.s32 \t%r14, %r6, %r8;
\tsetp.lt.u32 \t%p2, %r7, %r9;
\tst.global.b32 \t[%rd1], %r11;
}
{
\tsub.s32 \t%r5, %r2, %r9;
\tmax.u32 \t%r13, %r5, %r9;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }
}
