//! One read of `%laneid` for a whole function.
//!
//! Back ends read it where it is used, once on each way there. ptxas makes each read an `S2R`, which takes longer than other
//! instructions, and does not merge two. The copies of the result need no instruction.

use std::borrow::Cow;

use super::workarounds::{functions, instruction, is_no_instruction};

/// Functions that read it several times read it first, and copy the result.
pub(super) fn merge(ptx: String) -> String {
    if !ptx.contains("%laneid") {
        return ptx;
    }
    functions(&ptx).map(merged).collect()
}

/// Everything up to a function's end.
fn merged(function: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = function.split_inclusive('\n').collect();
    let reads = lines.iter().filter(|line| result_of_read(line).is_some()).count();
    let (2.., Some(begin)) = (reads, first_instruction(&lines)) else { return function.into() };
    let mut text = lines[..begin].concat();
    // Assembly has registers of its own, which have other names.
    text += "\t.reg .b32 \t%gridlet_lane;\n\tmov.u32 \t%gridlet_lane, %laneid;\n";
    for line in &lines[begin..] {
        match result_of_read(line) {
            Some([indent, result, end]) => {
                text += &format!("{indent}mov.u32 \t{result}, %gridlet_lane;{end}")
            }
            None => text += line,
        }
    }
    text.into()
}

/// The line behind the declarations of a function, of all lines up to its end.
pub(super) fn first_instruction(lines: &[&str]) -> Option<usize> {
    let begin = lines.iter().rposition(|line| line.starts_with('{'))? + 1;
    let declares = |line: &&str| {
        let word = line.trim_start();
        [".reg", ".local", ".shared"].iter().any(|kind| word.starts_with(kind))
    };
    // With line tables, variables come behind the first `.loc`.
    let is_head = |line: &&&str| is_no_instruction(line) || declares(line);
    let head: Vec<_> = lines[begin..].iter().take_while(is_head).collect();
    let after = head.iter().rposition(|line| declares(line)).map_or(0, |last| last + 1);
    let is_position = |line: &str| line.trim_start().starts_with(".loc\t");
    let blank = head[after..].iter().take_while(|line| !is_position(line)).count();
    Some(begin + after + blank)
}

/// The register that a line reads `%laneid` to, between its indentation and what follows the instruction.
fn result_of_read(line: &str) -> Option<[&str; 3]> {
    let [indent, word, operands, end] = instruction(line)?;
    let (result, source) = operands.split_once(',')?;
    (word == "mov.u32" && source.trim() == "%laneid").then(|| [indent, result.trim(), end])
}

#[cfg(test)]
mod tests {
    use super::merge;

    #[test]
    fn functions_read_the_lane_once() {
        let ptx = "\
.visible .entry twice(
\t.param .u32 twice_param_0
)
.maxntid 256, 1, 1
{
\t.reg .pred \t%p<2>;
\t.reg .b32 \t%r<4>;

\t.loc\t1 1 1
\tld.param.u32 \t%r1, [twice_param_0];
\t@%p1 bra \t$L__BB0_2;
\tmov.u32 \t%r2, %laneid; // one
\tbra.uni \t$L__BB0_3;
$L__BB0_2:
\tmov.u32 \t%r3, %laneid;
$L__BB0_3:
\tret;
}
.visible .entry once()
{
\t.reg .b32 \t%r<4>;

\tmov.u32 \t%r1, %laneid;
\tmov.u32 \t%r2, %warpid;
\tret;
}
";
        insta::assert_snapshot!(merge(ptx.to_owned()));
    }

    #[test]
    fn what_reads_no_lane_stays() {
        let other = ".func none()\n{\n\t.reg .b32 \t%r<2>;\n\tmov.u32 \t%r1, %tid.x;\n}\n";
        assert_eq!(merge(other.to_owned()), other);
    }
}
