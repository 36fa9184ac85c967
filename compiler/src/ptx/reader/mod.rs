//! Reads PTX: modules as lists of their functions, variables and directives.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};

/// The kind of an [`Item`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ptx) enum Kind {
    /// A kernel.
    Entry,
    /// A function with its code.
    Function,
    /// A kernel or a function without code.
    Declaration,
    Variable,
    /// A directive or a section.
    Other,
}

/// A part of a module at its top level.
pub(in crate::ptx) struct Item<'p> {
    pub(in crate::ptx) kind: Kind,
    /// Empty for a directive.
    pub(in crate::ptx) name: &'p str,
    /// The text, with comments and white space before it.
    pub(in crate::ptx) text: &'p str,
}

/// A module.
pub(in crate::ptx) struct Module<'p> {
    pub(in crate::ptx) items: Vec<Item<'p>>,
    /// The text after the last item.
    pub(in crate::ptx) rest: &'p str,
    /// By name, the definition, or the declaration of what another module defines.
    named: BTreeMap<&'p str, usize>,
}

impl<'p> Module<'p> {
    /// Takes a module apart.
    ///
    /// # Errors
    /// [`Error::Internal`] if the text ends within an item.
    pub(in crate::ptx) fn read(ptx: &'p str) -> Result<Self> {
        Module::read_while(ptx, |_| true)
    }

    /// The items before the first function with code.
    ///
    /// # Errors
    /// As [`Module::read`].
    pub(in crate::ptx) fn read_to_code(ptx: &'p str) -> Result<Self> {
        Module::read_while(ptx, |item| !item.is_code())
    }

    fn read_while(ptx: &'p str, goes_on: impl Fn(&Item<'_>) -> bool) -> Result<Self> {
        let mut module = Module { items: vec![], rest: ptx, named: BTreeMap::new() };
        while let Some(item) = next_item(module.rest)?.filter(&goes_on) {
            module.rest = &module.rest[item.text.len()..];
            let at = module.items.len();
            match item.kind {
                Kind::Other => {}
                Kind::Declaration => _ = module.named.entry(item.name).or_insert(at),
                Kind::Entry | Kind::Function | Kind::Variable => {
                    module.named.insert(item.name, at);
                }
            }
            module.items.push(item);
        }
        Ok(module)
    }

    /// The function or variable with a name.
    pub(in crate::ptx) fn find(&self, name: &str) -> Option<usize> {
        self.named.get(name).copied()
    }

    /// The functions and variables that an item names.
    pub(in crate::ptx) fn uses(&self, at: usize) -> BTreeSet<usize> {
        let found = words(self.items[at].text).filter_map(|(_, word)| self.find(word));
        found.filter(|found| *found != at).collect()
    }

    pub(in crate::ptx) fn declarations(&self) -> impl Iterator<Item = &Item<'p>> {
        self.items.iter().filter(|item| item.kind == Kind::Declaration)
    }
}

impl<'p> Item<'p> {
    /// Whether it is a function with its code.
    pub(in crate::ptx) fn is_code(&self) -> bool {
        matches!(self.kind, Kind::Entry | Kind::Function)
    }

    /// The white space and the comments before it, and the rest.
    pub(in crate::ptx) fn parts(&self) -> (&'p str, &'p str) {
        self.text.split_at(self.text.len() - skip_blank(self.text).len())
    }

    /// The part of a function before its code, without what precedes it.
    pub(in crate::ptx) fn head(&self) -> &'p str {
        let (_, text) = self.parts();
        let end = Tokens::new(text).find(|(_, token)| *token == "{");
        text[..end.map_or(text.len(), |(at, _)| at)].trim_end()
    }

    /// Whether both are the same but for the numbers that back ends count through a module.
    pub(in crate::ptx) fn is_same_as(&self, other: &Item<'_>) -> bool {
        let ours = Tokens::new(self.text).map(|(_, token)| without_count(token));
        let theirs = Tokens::new(other.text).map(|(_, token)| without_count(token));
        self.kind == other.kind && ours.eq(theirs)
    }

    /// Whether a module can contain a second one under another name.
    pub(in crate::ptx) fn can_be_copied(&self) -> bool {
        let is_own = || Tokens::new(self.text).all(|(_, token)| !LINKAGE.contains(&token));
        let is_initialised = || Tokens::new(self.text).any(|(_, token)| token == "=");
        match self.kind {
            Kind::Function => true,
            Kind::Variable => is_own() && is_initialised(),
            Kind::Entry | Kind::Declaration | Kind::Other => false,
        }
    }

    /// The head and the text of a function under other names. If its own name changes, other modules do not see it.
    pub(in crate::ptx) fn copied(&self, names: &BTreeMap<&str, &str>) -> [String; 2] {
        let is_renamed = names.get(self.name).is_some_and(|name| *name != self.name);
        [self.head(), self.text].map(|text| {
            let linkage = LINKAGE.iter().find(|word| self.head().starts_with(**word));
            match linkage.filter(|_| is_renamed) {
                Some(word) => renamed(&text.replacen(word, "", 1), names),
                None => renamed(text, names),
            }
        })
    }
}

/// The directives of what other modules see or define.
const LINKAGE: [&str; 4] = [".visible", ".extern", ".weak", ".common"];

/// A label or the like without the number of its function.
fn without_count(token: &str) -> (&str, &str) {
    const COUNTED: [&str; 3] = ["$L__BB", "__local_depot", "prototype_"];
    let counted = COUNTED.iter().find_map(|prefix| Some((*prefix, token.strip_prefix(prefix)?)));
    match counted {
        Some((prefix, rest)) => {
            (prefix, rest.trim_start_matches(|digit: char| digit.is_ascii_digit()))
        }
        None => (token, ""),
    }
}

/// The words of a text that may name functions and variables, with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    Tokens::new(text).filter(|(_, token)| {
        token.starts_with(|first: char| first.is_ascii_alphabetic() || "_$".contains(first))
    })
}

/// A text with other names.
pub(in crate::ptx) fn renamed(text: &str, names: &BTreeMap<&str, &str>) -> String {
    let (mut result, mut end) = (String::with_capacity(text.len()), 0);
    for (at, word) in words(text) {
        if let Some(name) = names.get(word) {
            result += &text[end..at];
            result += name;
            end = at + word.len();
        }
    }
    result + &text[end..]
}

/// The first item of a text.
fn next_item(text: &str) -> Result<Option<Item<'_>>> {
    let start = text.len() - skip_blank(text).len();
    if start == text.len() {
        return Ok(None);
    }
    let first = text[start..].split_whitespace().next().unwrap_or_default();
    if [".version", ".target", ".address_size", ".file"].contains(&first) {
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        return Ok(Some(Item { kind: Kind::Other, name: "", text: &text[..end] }));
    }
    let (mut depth, mut kind, mut name) = (0_usize, Kind::Variable, "");
    let mut is_named = false;
    for (at, token) in Tokens::new(text) {
        let end = at + token.len();
        match token {
            ".entry" => kind = Kind::Entry,
            ".func" => kind = Kind::Function,
            ".section" => kind = Kind::Other,
            "(" | "{" | "[" => {
                // `.func (result) name (parameters)`, `.global .b8 name[4]`
                is_named |= depth == 0 && !name.is_empty();
                depth += 1;
            }
            ")" | "}" | "]" => depth = depth.saturating_sub(1),
            "=" => is_named = true,
            ";" if depth == 0 => {
                let is_function = matches!(kind, Kind::Entry | Kind::Function);
                let kind = if is_function { Kind::Declaration } else { kind };
                return Ok(Some(Item { kind, name, text: &text[..end] }));
            }
            _ if depth == 0 && !is_named && !token.starts_with('.') => name = token,
            _ => {}
        }
        if token == "}" && depth == 0 && kind != Kind::Variable {
            return Ok(Some(Item { kind, name, text: &text[..end] }));
        }
    }
    let line = text[start..].lines().next().unwrap_or_default();
    Err(Error::internal("ptx", format!("PTX ends within an item: `{line}`")))
}

/// A text after white space and comments.
fn skip_blank(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with("//") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest
}

/// The tokens of PTX with their places: words, with their `.` or `%`, strings, and single characters. `%tid.x` is one word.
struct Tokens<'p> {
    text: &'p str,
    at: usize,
}

impl<'p> Tokens<'p> {
    fn new(text: &'p str) -> Self {
        Tokens { text, at: 0 }
    }
}

impl<'p> Iterator for Tokens<'p> {
    type Item = (usize, &'p str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = skip_blank(&self.text[self.at..]);
        let start = self.text.len() - rest.len();
        let first = rest.chars().next()?;
        let in_word = |c: char| c.is_ascii_alphanumeric() || "_$.%".contains(c);
        let length = if first == '"' {
            rest[1..].find('"').map_or(rest.len(), |end| end + 2)
        } else if in_word(first) {
            rest.find(|c: char| !in_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        self.at = start + length;
        Some((start, &rest[..length]))
    }
}
