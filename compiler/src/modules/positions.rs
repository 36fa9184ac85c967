//! The lines of a module's text, for positions in messages.

use std::collections::HashMap;

use gridlet_lang::source::{FileId, SourceMap, Span};

use super::lost;
use crate::nvvm::legacy::llvm::Value;

/// The text of each function.
pub(super) struct Positions {
    /// By name, the first line and the lines of the instructions.
    functions: HashMap<String, (Span, Vec<Span>)>,
}

/// Whether a line is a cast between pointers of the legacy dialect, which vanishes when a module is read.
fn is_typed_cast(line: &str) -> bool {
    line.ends_with('*') && line.contains("= bitcast ")
}

impl Positions {
    /// Finds the functions in the first file.
    pub(super) fn of(sources: &SourceMap) -> Self {
        let text = sources.files().first().map_or("", |file| file.text.as_str());
        let (mut functions, mut open) = (HashMap::new(), None::<(String, Span, Vec<Span>)>);
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let code = line.split(';').next().unwrap_or_default();
            let (start, trimmed) = (line.len() - line.trim_start().len(), code.trim());
            let span = Span::new(FileId(0), at + start..at + start + trimmed.len());
            at += line.len();
            if trimmed.starts_with("define ") {
                let name = trimmed.split_once('@').map_or("", |(_, rest)| rest);
                let name = name.strip_prefix('"').map_or_else(
                    || name.split('(').next().unwrap_or_default(),
                    |quoted| quoted.split('"').next().unwrap_or_default(),
                );
                open = Some((name.to_owned(), span, vec![]));
            } else if trimmed == "}" {
                if let Some((name, first, lines)) = open.take() {
                    functions.insert(name, (first, lines));
                }
            } else if let Some((_, _, lines)) = &mut open
                && !trimmed.is_empty()
                && !trimmed.ends_with(':')
                && !is_typed_cast(trimmed)
            {
                lines.push(span);
            }
        }
        Positions { functions }
    }

    /// The line that starts a function, or the start of the text.
    pub(super) fn function(&self, name: &str) -> Span {
        let found = self.functions.get(name).map(|(first, _)| *first);
        found.unwrap_or_else(|| Span::new(FileId(0), 0..0))
    }

    /// The line of each instruction, if every instruction has one line of its own.
    pub(super) fn instructions<'m>(
        &self,
        name: &str,
        function: Value<'m>,
    ) -> HashMap<Value<'m>, Span> {
        let Some((_, lines)) = self.functions.get(name) else { return HashMap::new() };
        let instructions = function.blocks().into_iter().flat_map(|block| block.instructions());
        // Those that were added are not in the text.
        let instructions: Vec<_> = instructions.filter(|one| !lost::is_added(*one)).collect();
        if instructions.len() != lines.len() {
            return HashMap::new();
        }
        instructions.into_iter().zip(lines.iter().copied()).collect()
    }
}
