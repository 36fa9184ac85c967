//! Positions: those that the text names, and the lines of the text itself.

use super::cursor::Cursor;
use super::{Parser, Result};
use crate::ir::{InstKind, Module};
use crate::source::{FileId, Known, MAX_LINES, SourceMap, Span, wrong_file_name};

/// The file of a position in the text itself while it is read: its bytes there.
const OWN: FileId = FileId(u32::MAX);

/// Whether a position is one in the text itself, while that is read.
pub(super) fn is_own(span: Span) -> bool {
    span.file == OWN
}

impl<'t> Parser<'t> {
    /// The line at which the reader is, for what has no other position.
    pub(super) fn here(&self) -> Span {
        self.here_of(&self.cursor)
    }

    /// As [`Parser::here`], for a place in the text.
    pub(super) fn here_of(&self, place: &Cursor<'t>) -> Span {
        if self.keeps_own { Span::new(OWN, place.line_range()) } else { Span::NOWHERE }
    }

    /// `line 38` or `other.grid:38`, up to the end of the line; `?` stands for an unknown position.
    pub(super) fn position(&mut self) -> Result<Span> {
        self.cursor.rest();
        let start = self.cursor.clone();
        let text = self.cursor.line();
        if text == "?" {
            return Ok(self.here_of(&start));
        }
        let (file, line) = match text.strip_prefix("line ") {
            Some(line) => (None, line),
            None => match text.rsplit_once(':') {
                Some((file, line)) => (Some(file), line),
                None => {
                    return Err(start
                        .clone()
                        .expected("a position such as `line 3` or `a.grid:3`"));
                }
            },
        };
        let number = line.parse().ok().filter(|line| (1..=MAX_LINES).contains(line));
        let Some(line) = number else {
            let found = line.chars().take(40).collect::<String>();
            let message = format!("expected a line from 1 to {MAX_LINES}, found `{found}`");
            return Err(start.past(text.len() - line.len()).error(message));
        };
        if let Some(wrong) = file.filter(|_| self.keeps_own).and_then(wrong_file_name) {
            return Err(start.error(wrong));
        }
        let at = match file {
            None => 0,
            Some(file) => {
                let known = self.files.iter().position(|(name, _)| *name == file);
                known.unwrap_or_else(|| {
                    self.files.push((file, 0));
                    self.files.len() - 1
                })
            }
        };
        let lines = &mut self.files[at].1;
        *lines = line.max(*lines);
        Ok(Span { file: FileId(at as u32), start: line - 1, end: line - 1 })
    }
}

/// Makes the sources of a module that was read, and gives kernels and own lines their positions in them. `files` are those that
/// positions name, with their lines.
pub(super) fn settle(
    module: &mut Module,
    files: &[(&str, u32)],
    text: &str,
    keeps_own: bool,
) -> SourceMap {
    place_kernels(module);
    let mut sources = SourceMap::default();
    for (at, (name, lines)) in files.iter().enumerate() {
        // The lines of `line 3` are usually those of the program from which the text was printed: they are not quoted.
        let is_text = keeps_own && at == 0;
        if is_text && *lines == 0 {
            sources.add_known(*name, text, Known::Text);
            continue;
        }
        let own = if is_text { text.split('\n').count() } else { 0 };
        sources.add_known(*name, "\n".repeat(own.max(*lines as usize)), Known::Lines);
    }
    let quotes = files.first().is_some_and(|(_, lines)| *lines == 0);
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    for_each_span(module, |span| {
        if !is_own(*span) {
            return;
        }
        *span = if quotes {
            Span { file: FileId(0), ..*span }
        } else {
            let line = ends.partition_point(|end| *end < span.start as usize);
            Span::new(FileId(0), line..line)
        };
    });
    sources
}

/// Sets the position of each kernel to that of the body call in its entry, where the builder places the call.
fn place_kernels(module: &mut Module) {
    for kernel in &mut module.kernels {
        let entry = &module.functions[kernel.entry.index()].instructions;
        let call = entry.iter().find(
            |inst| matches!(inst.kind, InstKind::Call { function, .. } if function == kernel.body),
        );
        let Some(span) = call.map(|call| call.span).filter(|span| !is_own(*span)) else {
            continue;
        };
        kernel.span = span;
        for function in [kernel.body, kernel.entry] {
            let function = &mut module.functions[function.index()];
            function.span = span;
            for variable in function.slots.iter_mut().filter_map(|slot| slot.variable.as_mut()) {
                variable.span = span;
            }
        }
    }
}

fn for_each_span(module: &mut Module, mut change: impl FnMut(&mut Span)) {
    for id in module.structs.iter().map(|(id, _)| id).collect::<Vec<_>>() {
        if module.structs.get(id).span.is_some() {
            module.structs.get_mut(id).span.iter_mut().for_each(&mut change);
        }
    }
    let globals = module.globals.iter_mut().filter_map(|global| global.variable.as_mut());
    globals.for_each(|variable| change(&mut variable.span));
    module.externs.iter_mut().filter_map(|item| item.span.as_mut()).for_each(&mut change);
    module.kernels.iter_mut().for_each(|kernel| change(&mut kernel.span));
    for function in &mut module.functions {
        change(&mut function.span);
        function.instructions.iter_mut().for_each(|inst| change(&mut inst.span));
        function.blocks.iter_mut().filter_map(|block| block.end.as_mut()).for_each(&mut change);
        let slots = function.slots.iter_mut().filter_map(|slot| slot.variable.as_mut());
        slots.for_each(|variable| change(&mut variable.span));
    }
}
