//! C names for a program's names. Those of other compilers' modules may have any characters.

/// A name with `_` for each character that C names lack.
pub(super) fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// A field's name, which may be a keyword of C or C++, or a usual macro.
pub(super) fn member(name: &str) -> String {
    let name = identifier(name);
    let starts_wrong = name.chars().next().is_none_or(|first| first.is_ascii_digit());
    match name {
        name if KEYWORDS.contains(&name.as_str()) => format!("{name}_"),
        name if starts_wrong => format!("_{name}"),
        name => name,
    }
}

/// A string literal. `?` could start a trigraph.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' | '?' => literal.extend(['\\', letter]),
            letter if letter.is_ascii_control() => {
                literal.push_str(&format!("\\{:03o}", u32::from(letter)));
            }
            letter => literal.push(letter),
        }
    }
    literal + "\""
}

/// Text for a comment that ends with its line.
pub(super) fn one_line(text: &str) -> String {
    // A `\` before the end of the line would go on with the next.
    text.chars()
        .map(|c| if c.is_control() || "\\\u{2028}\u{2029}".contains(c) { '?' } else { c })
        .collect()
}

const KEYWORDS: [&str; 77] = [
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "constexpr",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "enum",
    "explicit",
    "export",
    "extern",
    "float",
    "friend",
    "goto",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "xor",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "if",
    "while",
    "true",
    "false",
    "linux",
    "unix",
];
