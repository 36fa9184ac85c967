//! A condition for atomic operations on shared memory that the hardware lacks.
//!
//! ptxas expands `atom.shared` and `red.shared` to a loop around a compare-and-swap for every 64-bit operation but `exch`
//! and `cas`, and for `add.f32`. If that loop is a single basic block (all but `min` and `max`) in the last block of another loop,
//! ptxas (CUDA 13.0, sm_75 to sm_120) forgets to let the lanes of a warp meet after it, but takes them for
//! converged: the next `bar.sync`, which is for whole warps, runs once for each group of lanes.
//!
//! After a conditional operation the lanes meet. So each such operation gets a condition that always holds: the lane's bit
//! of a mask is not zero. ptxas must not be able to compute the condition, or to share it in a warp: of random programs,
//! one loop of 200 was wrong without a condition, one of 500 with a condition that is the same in all lanes, and none of 12,000
//! with the lane's bit.
//!
//! The condition also depends on the address and the value. Otherwise ptxas loads one of them only once the condition holds, when the
//! lane has waited for the other. It was not counted again since.
//!
//! For the sum of a value that all lanes share, ptxas adds once per warp, in several blocks; a sum of 64-bit constants needs
//! no condition.

use super::workarounds::instruction;

/// Adds the conditions.
pub(super) fn apply(ptx: String) -> String {
    if !ptx.contains(".shared.") {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match rewritten(line) {
            Some(rewritten) => text += &rewritten,
            None => text += line,
        }
    }
    text
}

/// The instruction that puts bits of an operand into `%bits`, if it is a register.
fn bits(operand: &str, is_wide: bool) -> Option<String> {
    if !operand.starts_with('%') {
        return None;
    }
    Some(match is_wide {
        false => format!("mov.b32 \t%bits, {operand};"),
        true => format!("mov.b64 \t{{%bits, %high}}, {operand};"),
    })
}

/// An atomic operation with its condition, if ptxas needs that.
fn rewritten(line: &str) -> Option<String> {
    let [indent, word, operands, end] = instruction(line)?;
    let (_, value) = operands.rsplit_once(',')?;
    let is_sum_of_constants = word.ends_with("add.u64") && !value.trim_start().starts_with('%');
    if !becomes_one_block(word) || is_sum_of_constants {
        return None;
    }
    let operands = operands.trim_start();
    let (_, address) = operands.split_once('[')?;
    let address = address.split(['+', '-', ']']).next()?.trim();
    let needed = [
        bits(value.trim_start(), !word.ends_with("32")),
        bits(address, address.starts_with("%rd")),
    ];
    let needed: String = needed
        .into_iter()
        .flatten()
        .map(|bits| format!("{indent}{bits}\n{indent}or.b32 \t%lane, %lane, %bits;\n"))
        .collect();
    Some(format!(
        "{indent}{{\n\
         {indent}.reg .b32 %lane, %bits, %high;\n\
         {indent}.reg .pred %is_lane;\n\
         {indent}mov.u32 \t%lane, %lanemask_eq;\n\
         {needed}\
         {indent}setp.ne.u32 \t%is_lane, %lane, 0;\n\
         {indent}@%is_lane {word} \t{operands};\n\
         {indent}}}{end}"
    ))
}

/// Whether ptxas expands an instruction to a loop of one block: a relaxed atomic operation on shared memory.
fn becomes_one_block(word: &str) -> bool {
    let Some(rest) = word.strip_prefix("atom.").or_else(|| word.strip_prefix("red.")) else {
        return false;
    };
    let rest = rest.strip_prefix("relaxed.").unwrap_or(rest);
    let scopes = ["cta.", "cluster.", "gpu.", "sys."];
    let rest = scopes.iter().find_map(|scope| rest.strip_prefix(scope)).unwrap_or(rest);
    let Some((operation, ty)) = rest.strip_prefix("shared.").and_then(|rest| rest.split_once('.'))
    else {
        return false;
    };
    match operation {
        "add" => matches!(ty, "u64" | "s64" | "f32" | "f64"),
        "and" | "or" | "xor" => ty == "b64",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn operations_of_one_block_become_conditional() {
        let ptx = "\
\tred.shared.and.b64 [%r42], 9; // why
\tatom.relaxed.gpu.shared.add.u64 \t%rd1, [%r1+8], %rd1;
\tatom.shared.add.f32 \t%f1, [sums], 0f3F800000;
\tred.shared.add.f64 [%r1], %fd1;
\tatom.shared.xor.b64 \t_, [%r1], %rd2;
\tred.shared.add.u64 [%r1], %rd2;
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
    }

    #[test]
    fn other_atomic_operations_stay() {
        let ptx = "\
\tred.shared.add.u64 [%r1], 1;
\tatom.shared.min.u64 \t%rd1, [%r1], %rd2;
\tatom.shared.exch.b64 \t%rd1, [%r1], %rd2;
\tatom.shared.cas.b64 \t%rd1, [%r1], %rd2, %rd3;
\tatom.shared.add.u32 \t%r2, [%r1], %r3;
\tatom.add.u64 \t%rd1, [%rd2], %rd3;
\tatom.global.xor.b64 \t%rd1, [%rd2], %rd3;
\tld.shared.f32 \t%f1, [%r1];
";
        assert_eq!(apply(ptx.to_owned()), ptx);
    }
}
