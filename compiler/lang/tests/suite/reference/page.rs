//! The blocks and cells of `docs/language.md`.

/// A fenced block of code.
pub(crate) struct Fence {
    /// The text after the fence: `grid fragment error=operand-type`.
    pub(crate) tag: String,
    /// The code.
    pub(crate) text: String,
    /// The line of its first line in the page, from 1.
    pub(crate) line: usize,
}

/// The page.
pub(crate) fn text() -> String {
    let path = crate::compiler().join("../docs/language.md");
    std::fs::read_to_string(path).expect("the page can be read")
}

/// The fenced blocks, in order.
pub(crate) fn fences(page: &str) -> Vec<Fence> {
    let mut fences = vec![];
    let mut open: Option<Fence> = None;
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(tag)) => {
                open = Some(Fence { tag: tag.to_owned(), text: String::new(), line: at + 2 });
            }
            (Some(_), Some(_)) => fences.extend(open.take()),
            (Some(fence), None) => fence.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    fences
}

/// The texts between backquotes.
pub(crate) fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}
