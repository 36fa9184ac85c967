//! Documentation of kernels, from the program's comments.

use std::collections::BTreeMap;

use crate::compile::Checked;
use gridlet_lang::source::Span;

/// The comment directly above each kernel that has one, without its slashes, by kernel name.
pub fn kernel_docs(program: &Checked) -> BTreeMap<String, Vec<String>> {
    let kernels = program.module.kernels.iter();
    let docs = kernels.map(|kernel| (kernel.name.clone(), comment_above(program, kernel.span)));
    docs.filter(|(_, lines)| !lines.is_empty()).collect()
}

/// The `//` comment lines directly above a declaration and its attributes.
fn comment_above(program: &Checked, span: Span) -> Vec<String> {
    let before = &program.sources.file(span.file).text[..span.range().start];
    let mut lines: Vec<&str> = before.lines().collect();
    // The declaration's own line, up to the name.
    if !before.ends_with('\n') {
        lines.pop();
    }
    let mut found: Vec<String> = lines
        .into_iter()
        .rev()
        .map(str::trim)
        .skip_while(|line| line.starts_with("#["))
        // `//!` documents the file.
        .map_while(|line| line.strip_prefix("//").filter(|text| !text.starts_with('!')))
        .map(|line| line.trim_start_matches('/').trim().to_owned())
        .collect();
    found.reverse();
    found
}
