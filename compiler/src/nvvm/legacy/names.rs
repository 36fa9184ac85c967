//! Identifiers: spelling names, and choosing names for values that have none or need a second one.

use std::collections::{HashMap, HashSet};

/// Spells a name after its sigil: bare where LLVM's lexer allows it, else in quotes with `\xx` escapes.
pub(super) fn spell(sigil: char, name: &[u8]) -> String {
    let bare =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'$' | b'.' | b'_');
    if !name.is_empty() && !name[0].is_ascii_digit() && name.iter().all(bare) {
        return format!("{sigil}{}", String::from_utf8_lossy(name));
    }
    format!("{sigil}\"{}\"", escape(name))
}

/// The label at the start of a block: its name without sigil, with a colon.
pub(super) fn label(spelled: &str) -> String {
    format!("{}:", spelled.strip_prefix('%').unwrap_or(spelled))
}

/// Escapes the contents of a quoted LLVM string.
pub(super) fn escape(data: &[u8]) -> String {
    let mut text = String::with_capacity(data.len());
    for &byte in data {
        match byte {
            b'"' | b'\\' => text.push_str(&format!("\\{byte:02X}")),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\{byte:02X}")),
        }
    }
    text
}

/// The names of one function's values, or of one module's globals or types.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<Vec<u8>>,
    /// The last number tried for each base, so that no name is tried twice.
    counts: HashMap<String, u32>,
}

impl Names {
    /// Reserves a given, unique name.
    pub(super) fn take(&mut self, name: &[u8]) {
        self.taken.insert(name.to_vec());
    }

    /// Reserves `base`, or `base.1`, `base.2`, … if it is in use.
    pub(super) fn fresh(&mut self, base: &str) -> String {
        if self.taken.insert(base.as_bytes().to_vec()) {
            return base.to_owned();
        }
        let count = self.counts.entry(base.to_owned()).or_default();
        loop {
            *count += 1;
            let name = format!("{base}.{count}");
            if self.taken.insert(name.clone().into_bytes()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_only_where_they_must_be() {
        assert_eq!(spell('@', b"a.b-c$_1"), "@a.b-c$_1");
        assert_eq!(spell('%', b"1st"), "%\"1st\"");
        assert_eq!(spell('@', b"a b\"\\\xff"), "@\"a b\\22\\5C\\FF\"");
        assert_eq!(label("%\"a b\""), "\"a b\":");
    }

    #[test]
    fn fresh_names_avoid_those_taken() {
        let mut names = Names::default();
        names.take(b"p.cast");
        assert_eq!(names.fresh("p.cast"), "p.cast.1");
        assert_eq!(names.fresh("p.cast"), "p.cast.2");
        assert_eq!(names.fresh("q"), "q");
    }
}
