//! Accesses of local variables as such.
//!
//! LLVM's back end (22.1) forgets that a variable is local where it takes an array apart late: it accesses some parts by their generic
//! addresses, and those whose index only the run shows by local ones. ptxas keeps variables in registers only if all accesses are local.
//! `%SP` is the generic address of the stack frame, `%SPL` the local one.

use super::workarounds::instruction;

const GENERIC: &str = "[%SP";
const LOCAL: &str = "[%SPL";

/// Makes accesses through `%SP` local.
pub(super) fn localise(ptx: String) -> String {
    if !ptx.contains("[%SP+") && !ptx.contains("[%SP]") {
        return ptx;
    }
    ptx.split_inclusive('\n').map(|line| local(line).unwrap_or_else(|| line.into())).collect()
}

/// The local access in place of a generic one of the stack frame.
fn local(line: &str) -> Option<String> {
    let [indent, word, operands, end] = instruction(line)?;
    let (access, ty) = word.split_once('.').filter(|(access, _)| matches!(*access, "ld" | "st"))?;
    let (before, after) = operands.split_once(GENERIC)?;
    let is_frame = after.starts_with(['+', ']']) && is_type(ty);
    let before = before.trim_start();
    is_frame.then(|| format!("{indent}{access}.local.{ty} \t{before}{LOCAL}{after};{end}"))
}

/// Whether this is the end of an access without a state space or an order: `b32`, or `v4.b32`.
fn is_type(word: &str) -> bool {
    let ty = word.split_once('.').map_or(word, |(count, ty)| match count {
        "v2" | "v4" => ty,
        _ => "",
    });
    let bits = ty.strip_prefix(['b', 'u', 's', 'f']).unwrap_or_default();
    !bits.is_empty() && bits.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::localise;

    #[test]
    fn accesses_of_the_stack_frame_are_local() {
        let ptx = "\tcvta.local.u64 \t%SP, %SPL;\n\tadd.u64 \t%rd1, %SP, 4;\n\tst.b32 \t[%SP+4], %r2; // x\n\
            \tld.v4.b32 \t{%r1, %r2, %r3, %r4}, [%SP];\n\tst.local.b32 \t[%SPL+4], %r2;\n\tld.volatile.b32 \t%r1, [%SP];\n\
            \tst.param.b64 \t[%SP_param], %rd1;\n";
        let expected = "\tcvta.local.u64 \t%SP, %SPL;\n\tadd.u64 \t%rd1, %SP, 4;\n\tst.local.b32 \t[%SPL+4], %r2; // x\n\
            \tld.local.v4.b32 \t{%r1, %r2, %r3, %r4}, [%SPL];\n\tst.local.b32 \t[%SPL+4], %r2;\n\tld.volatile.b32 \t%r1, [%SP];\n\
            \tst.param.b64 \t[%SP_param], %rd1;\n";
        assert_eq!(localise(ptx.into()), expected);
    }
}
