//! The reference of messages, `docs/errors.md`: for each id its meaning, a program that causes it, and the
//! corrected program.

/// The whole reference.
pub const TEXT: &str = include_str!("../../docs/errors.md");

/// An entry of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id.
    pub id: &'static str,
    /// The entry in Markdown, without its heading.
    pub text: &'static str,
}

impl Entry {
    /// Its programs: first the wrong one, then the corrected one; none where they would be too long.
    pub fn programs(&self) -> impl Iterator<Item = &'static str> {
        let fenced = self.text.split("\n```grid\n").skip(1);
        fenced.map(|rest| rest.split_once("```").map_or(rest, |(program, _)| program))
    }
}

/// Every entry, in the order of the reference.
pub fn entries() -> impl Iterator<Item = Entry> {
    TEXT.split("\n### ").skip(1).map(|section| {
        let (id, text) = section.split_once('\n').unwrap_or((section, ""));
        // The heading of the next group follows the last entry of this one.
        let text = text.split("\n## ").next().unwrap_or(text);
        Entry { id: id.trim(), text: text.trim() }
    })
}

/// The entry of an id.
pub fn entry(id: &str) -> Option<Entry> {
    entries().find(|entry| entry.id == id)
}
