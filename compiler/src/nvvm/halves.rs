//! Hides from libNVVM that 16 bits are those of a `half`.
//!
//! libNVVM 13.0 merges accesses to adjacent memory, and of halves it makes vectors that its own back end for `sm_75` to `sm_90` refuses: eight
//! that are stored to memory that it knows to be aligned to 16 bytes, and four that `ld.global.nc` loads. It merges values that an
//! instruction of PTX assembly takes or gives, too, but as integers. Such an instruction also hides products from sums that could take
//! them in, so only modules that libNVVM refused are rewritten.

/// What libNVVM refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Stores,
    Loads,
}

impl Refused {
    /// What a log of libNVVM tells of.
    pub(crate) fn of(log: &str) -> Option<Refused> {
        let messages = [
            ("unsupported operation", Refused::Stores),
            ("Do not know how to split the result of this operator", Refused::Loads),
        ];
        messages.into_iter().find(|(message, _)| log.contains(message)).map(|(_, refused)| refused)
    }
}

/// The module in LLVM 7's language with a move at each `half` that is stored and each conversion of one to its bits, or at each that is
/// loaded and each conversion from bits; `None` if it has neither.
pub(crate) fn hide(text: &str, refused: Refused) -> Option<String> {
    let mut hidden = String::with_capacity(text.len());
    let mut count = 0;
    for line in text.split_inclusive('\n') {
        let name = format!("%gridlet.half.{count}");
        let moved = match refused {
            Refused::Stores => before_store(line, &name),
            Refused::Loads => behind_load(line, &name),
        };
        count += usize::from(moved.is_some());
        match moved {
            Some(lines) => hidden += &lines,
            None => hidden += line,
        }
    }
    (count > 0).then_some(hidden)
}

fn moved(bits: &str) -> String {
    format!("call i16 asm \"mov.b16 $0, $1;\", \"=h,h\"(i16 {bits})")
}

/// A line that stores a `half`, or converts one to its bits, with a move before.
fn before_store(line: &str, bits: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some((value, after)) =
        line.strip_prefix("store half ").and_then(|at| at.split_once(", "))
    {
        return Some(format!(
            "  {bits} = bitcast half {value} to i16\n  {bits}.moved = {}\n  {bits}.stored = bitcast i16 {bits}.moved to half\n  \
             store half {bits}.stored, {after}",
            moved(bits)
        ));
    }
    let (result, value, after) = conversion(line, "half", "i16")?;
    Some(format!("  {bits} = bitcast half {value} to i16\n  {result}{}{after}", moved(bits)))
}

/// A line that loads a `half`, or converts bits to one, with a move behind, or before.
fn behind_load(line: &str, bits: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some((result, load)) = line.split_once(" = load half, ")
        && result.starts_with('%')
    {
        return Some(format!(
            "  {bits}.loaded = load half, {load}  {bits} = bitcast half {bits}.loaded to i16\n  {bits}.moved = {}\n  \
             {result} = bitcast i16 {bits}.moved to half\n",
            moved(bits)
        ));
    }
    let (result, value, after) = conversion(line, "i16", "half")?;
    Some(format!("  {bits} = {}\n  {result}bitcast i16 {bits} to half{after}", moved(value)))
}

/// The start of a line that converts between types of 16 bits, up to ` = `, the value, and the end.
fn conversion<'a>(line: &'a str, from: &str, to: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = line.split_once(&format!("bitcast {from} "))?;
    let (value, after) = rest.split_once(&format!(" to {to}"))?;
    // Other lines contain the words as constant expressions, or in strings.
    let is_whole = before.starts_with('%') && before.ends_with(" = ");
    let ends = after.is_empty() || after.starts_with([',', '\n']);
    (is_whole && ends && !value.contains(' ')).then_some((before, value, after))
}

#[cfg(test)]
mod tests {
    use super::{Refused, hide};

    const TEXT: &str = "\
define void @f(half %x, half* %to) {
  %bits = bitcast half %x to i16, !dbg !3
  store half %x, half* %to, align 2, !dbg !4
  %y = bitcast i16 %bits to half
  %z = load half, half* %to, align 2, !dbg !4
  ret void
}
";

    #[test]
    fn halves_are_hidden() {
        insta::assert_snapshot!(hide(TEXT, Refused::Stores).unwrap());
        assert_eq!(hide("  store i16 %x, i16* %to\n", Refused::Stores), None);
    }

    #[test]
    fn loaded_halves_are_hidden() {
        insta::assert_snapshot!(hide(TEXT, Refused::Loads).unwrap());
        assert_eq!(hide("  %x = bitcast i16* %to to half*\n", Refused::Loads), None);
    }
}
