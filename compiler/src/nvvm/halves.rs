//! Hides from libNVVM that 16 bits are those of a `half`.
//!
//! libNVVM 13.0 merges stores to adjacent memory. Of eight halves in memory that it knows to be aligned to 16 bytes it makes a
//! vector that its own back end for `sm_75` to `sm_90` refuses: "unsupported operation". It merges values that an instruction of PTX
//! assembly gave, too, but as integers. Such an instruction also hides products from sums that could take them in, so
//! only modules that libNVVM refused are rewritten.

/// The message of libNVVM.
pub(crate) const REFUSAL: &str = "unsupported operation";

/// The module in LLVM 7's language with a move after each conversion of a `half` to its bits, and before each store of a
/// `half`; `None` if it has neither.
pub(crate) fn hide(text: &str) -> Option<String> {
    let mut hidden = String::with_capacity(text.len());
    let mut count = 0;
    for line in text.split_inclusive('\n') {
        let Some((before, value, after)) = half(line) else {
            hidden += line;
            continue;
        };
        let bits = format!("%gridlet.half.{count}");
        count += 1;
        hidden += &format!("  {bits} = bitcast half {value} to i16\n");
        let moved = format!("call i16 asm \"mov.b16 $0, $1;\", \"=h,h\"(i16 {bits})");
        if before.starts_with("store") {
            hidden += &format!("  {bits}.moved = {moved}\n");
            hidden += &format!("  {bits}.stored = bitcast i16 {bits}.moved to half\n");
            hidden += &format!("  store half {bits}.stored, {after}");
        } else {
            hidden += &format!("  {before}{moved}{after}");
        }
    }
    (count > 0).then_some(hidden)
}

/// A line's `half`, and the text before and after it: `%a = ` and the end of the line of a conversion to bits, `store ` and the address of
/// a store.
fn half(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim_start();
    if let Some((value, after)) =
        line.strip_prefix("store half ").and_then(|at| at.split_once(", "))
    {
        return Some(("store ", value, after));
    }
    let at = line.find("bitcast half ")?;
    let (before, conversion) = line.split_at(at);
    let (value, after) = conversion["bitcast half ".len()..].split_once(" to i16")?;
    // Other lines contain the words as constant expressions, or in strings.
    let is_whole = before.starts_with('%') && before.ends_with(" = ");
    (is_whole && !value.contains(' ')).then_some((before, value, after))
}

#[cfg(test)]
mod tests {
    use super::hide;

    #[test]
    fn halves_are_hidden() {
        let text = "\
define void @f(half %x, half* %to) {
  %bits = bitcast half %x to i16, !dbg !3
  store half %x, half* %to, align 2, !dbg !4
  %y = bitcast i16 %bits to half
  ret void
}
";
        insta::assert_snapshot!(hide(text).unwrap());
        assert_eq!(hide("  store i16 %x, i16* %to\n"), None);
    }
}
