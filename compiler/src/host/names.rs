//! Rust names for a program's names.

use std::collections::BTreeSet;

/// The names in use in one scope.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    pub(super) fn taken(names: impl IntoIterator<Item = impl Into<String>>) -> Names {
        Names(names.into_iter().map(Into::into).collect())
    }

    /// The Rust name for a program's name: unchanged where possible, `k_8` for `k::<8>`, with `_`
    /// appended if it is in use.
    pub(super) fn claim(&mut self, name: &str) -> String {
        self.claim_as(readable(name), escaped)
    }

    /// The name as `spelled` gives it, with `_` appended if that is in use.
    pub(super) fn claim_as(
        &mut self,
        mut plain: String,
        spelled: impl Fn(&str) -> String,
    ) -> String {
        loop {
            let given = spelled(&plain);
            if self.0.insert(given.clone()) {
                return given;
            }
            plain.push('_');
        }
    }
}

/// `tile::<8, true>` becomes `tile_8_true`, and a minus sign becomes a word.
fn readable(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '-' => text.push_str("minus_"),
            letter if letter.is_ascii_alphanumeric() || letter == '_' => text.push(letter),
            '<' | ',' => text.push('_'),
            _ => {}
        }
    }
    text
}

/// Rust's keywords, of all editions up to 2024 (The Rust Reference, Keywords).
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while",
];

fn escaped(name: &str) -> String {
    match name {
        // These cannot be raw identifiers.
        "self" | "Self" | "super" | "crate" | "_" | "yield" => format!("{name}_"),
        word if KEYWORDS.contains(&word) => format!("r#{word}"),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_rust() {
        let mut names = Names::taken(["load"]);
        let given = [
            "saxpy",
            "tile::<8, true>",
            "tile::<-1, false>",
            "type",
            "load",
            "self",
            "tile_8_true",
        ]
        .map(|name| names.claim(name));
        assert_eq!(
            given,
            [
                "saxpy",
                "tile_8_true",
                "tile_minus_1_false",
                "r#type",
                "load_",
                "self_",
                "tile_8_true_"
            ]
        );
    }
}
