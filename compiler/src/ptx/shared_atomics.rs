//! Loops for atomic operations on shared memory that the hardware lacks.
//!
//! ptxas expands `atom.shared` and `red.shared` to a loop around a compare-and-swap for every 64-bit operation but `exch`
//! and `cas`, and for `add.f32`. If that loop is a single basic block (all but `min` and `max`) in the last block of another loop,
//! ptxas (CUDA 13.0, sm_75 to sm_120) forgets to let the lanes of a warp meet after it, but takes them for
//! converged: the next `bar.sync`, which is for whole warps, runs once for each group of lanes. After a loop that is
//! written out in PTX, the lanes meet.
//!
//! For the sum of a value that all lanes share, ptxas adds once per warp, in several blocks; those sums stay. If `red.shared.add.u64`
//! has a register, only ptxas knows whether all lanes share its value, so the operation gets a condition that is false
//! for zero, which also divides the block.

use super::workarounds::instruction;

/// Writes the loops out.
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

/// An atomic operation with its convergence mended, if ptxas needs that.
fn rewritten(line: &str) -> Option<String> {
    let [indent, word, operands, end] = instruction(line)?;
    let (operation, ty) = operation(word)?;
    let is_reduction = word.starts_with("red.");
    let (result, operands) = match operands.split_once(',') {
        Some((result, operands)) if !is_reduction => (Some(result.trim()), operands),
        _ => (None, operands),
    };
    let (address, value) = operands.rsplit_once(',')?;
    let (address, value) = (address.trim(), value.trim());
    if operation == "add" && matches!(ty, "u64" | "s64") {
        if !value.starts_with('%') {
            return None;
        }
        if is_reduction {
            let lines = [
                ".reg .pred %adds;".to_owned(),
                format!("setp.ne.s64 \t%adds, {value}, 0;"),
                format!("@%adds {word} \t{address}, {value};"),
            ];
            return Some(block(indent, &lines, end));
        }
    }
    let bits = &ty[1..];
    // Bits become a number of the type of the operation, and back.
    let number = if ty == "u64" || ty == "s64" { "b64" } else { ty };
    let rounding = if ty.starts_with('f') { ".rn" } else { "" };
    let mut lines = vec![
        format!(".reg .b{bits} %old, %new, %seen;"),
        format!(".reg .{number} %from, %to;"),
        ".reg .pred %lost;".to_owned(),
        "again:".to_owned(),
        format!("ld.volatile.shared.b{bits} \t%old, {address};"),
        format!("mov.b{bits} \t%from, %old;"),
        format!("{operation}{rounding}.{ty} \t%to, %from, {value};"),
        format!("mov.b{bits} \t%new, %to;"),
        format!("atom.shared.cas.b{bits} \t%seen, {address}, %old, %new;"),
        format!("setp.ne.b{bits} \t%lost, %seen, %old;"),
        "@%lost bra \tagain;".to_owned(),
    ];
    if let Some(result) = result.filter(|result| *result != "_") {
        lines.push(format!("mov.b{bits} \t{result}, %old;"));
    }
    Some(block(indent, &lines, end))
}

/// The operation and the type of a relaxed atomic operation on shared memory that ptxas expands to one block.
fn operation(word: &str) -> Option<(&str, &str)> {
    let rest = word.strip_prefix("atom.").or_else(|| word.strip_prefix("red."))?;
    let rest = rest.strip_prefix("relaxed.").unwrap_or(rest);
    let scopes = ["cta.", "cluster.", "gpu.", "sys."];
    let rest = scopes.iter().find_map(|scope| rest.strip_prefix(scope)).unwrap_or(rest);
    let (operation, ty) = rest.strip_prefix("shared.")?.split_once('.')?;
    let expands = match operation {
        "add" => matches!(ty, "u64" | "s64" | "f32" | "f64"),
        "and" | "or" | "xor" => ty == "b64",
        _ => false,
    };
    expands.then_some((operation, ty))
}

/// A block of instructions with names of its own.
fn block(indent: &str, lines: &[String], end: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("{indent}{line}\n")).collect();
    format!("{indent}{{\n{lines}{indent}}}{end}")
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn operations_of_one_block_become_loops() {
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
