//! Atomic operations whose old value is not used become reductions: `atom.global.add.u32 %r1, [%rd1], 1;` becomes
//! `red.global.add.u32 [%rd1], 1;`. ptxas does the same in programs that it assembles as a whole, but not in
//! relocatable code, and never for assembly with generic addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::workarounds::functions;

/// The operations that `red` has (PTX ISA, "red").
const OPERATIONS: [&str; 6] = [".add.", ".min.", ".max.", ".and.", ".or.", ".xor."];

/// Replaces atomic operations without a used result.
pub(super) fn apply(ptx: String) -> String {
    if !ptx.contains("atom.") {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.len());
    for function in functions(&ptx) {
        let registers = match function.contains("atom.") {
            true => registers(function),
            false => BTreeMap::new(),
        };
        for line in function.split_inclusive('\n') {
            text += &reduction(line, &registers).map_or(Cow::Borrowed(line), Cow::Owned);
        }
    }
    text
}

/// How often each register of a function is named.
pub(super) fn registers(function: &str) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for register in named(function) {
        *found.entry(register).or_default() += 1;
    }
    found
}

/// The registers that a text names, one after another.
pub(super) fn named(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('%').map(|(at, _)| register(&text[at..]))
}

/// The register at the start of a text.
fn register(text: &str) -> &str {
    let length = text[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    length.map_or(text, |length| &text[..=length])
}

/// The reduction for an atomic operation whose result no other line names.
fn reduction(line: &str, registers: &BTreeMap<&str, usize>) -> Option<String> {
    let start = line.find("atom.")?;
    // A predicate may come first, nothing else.
    let before = line[..start].trim();
    if !before.is_empty() && !before.starts_with('@') {
        return None;
    }
    let (word, operands) = line[start..].split_once(char::is_whitespace)?;
    let (result, others) = operands.split_once(',')?;
    let result = result.trim();
    let is_unused = result == "_" || result.starts_with('%') && registers.get(result) == Some(&1);
    // `red` has no acquiring forms.
    if word.contains(".acq") {
        return None;
    }
    if !is_unused || !OPERATIONS.iter().any(|operation| word.contains(operation)) {
        return None;
    }
    Some(format!("{}red{} {}", &line[..start], &word["atom".len()..], others.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn operations_without_a_used_result_become_reductions() {
        let ptx = "\
.entry first()
{
\tatom.global.add.u32 \t%r1, [%rd1], 1;
\tatom.global.add.u32 \t%r2, [%rd1], %r3;
\tst.global.u32 \t[%rd2], %r2;
\t@%p1 atom.shared.max.s32 \t%r4, [%r5+4], %r6;
\tatom.cta.add.f32 %f1, [%rd1], %f2;
\tatom.global.exch.b32 \t%r7, [%rd1], 1;
\tatom.global.cas.b32 \t%r8, [%rd1], 1, 2;
\tatom.global.add.u32 \t%r10, [%rd1], %r1a;
\tatom.acq_rel.gpu.global.add.u32 \t%r11, [%rd1], 1;
}
.entry second()
{
\tatom.global.xor.b64 \t%rd2, [%rd1], %rd3;
\tadd.s32 \t%r1, %r10, %r10;
}
";
        insta::assert_snapshot!(apply(ptx.to_owned()));
        let other = "{\n\tld.global.u32 \t%r1, [%rd1];\n}\n";
        assert_eq!(apply(other.to_owned()), other);
    }
}
