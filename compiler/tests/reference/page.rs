//! `docs/language.md` in parts.

use std::path::Path;

/// A fenced block of code.
pub(crate) struct Fence {
    /// What stands after the fence: `grid fragment error=operand-type`.
    pub(crate) tag: String,
    /// The code.
    pub(crate) text: String,
    /// Line of its first line in the page, from 1.
    pub(crate) line: usize,
}

/// The page.
pub(crate) fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/language.md");
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

/// The rows of the tables whose first head is `head`, without heads, as cells.
pub(crate) fn rows(page: &str, head: &str) -> Vec<Vec<String>> {
    let mut rows = vec![];
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("|---") {
            continue;
        }
        let Some(row) = line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
            inside = false;
            continue;
        };
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        if cells[0] == head {
            inside = true;
        } else if inside {
            rows.push(cells);
        }
    }
    rows
}

/// What stands between backquotes.
pub(crate) fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}
