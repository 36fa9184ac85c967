//! Visibility: a file sees its own items and, transitively, those of the files that it uses.
//!
//! Visibility is transitive so that one file can re-export others without further syntax. It only decides
//! which names a file may use: all items of a program share one namespace, since the host finds kernels and
//! variables by name alone.

use std::collections::VecDeque;

use super::{Context, ValueName};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::{FileId, SourceMap, Span};
use crate::syntax::ast;
use crate::types::StructId;

/// For each file, the files that it sees.
pub(super) struct Visibility {
    sees: Vec<Vec<bool>>,
}

impl Visibility {
    /// Computed from the `use`s of a program whose files were read.
    pub(super) fn new(file: &ast::File, sources: &SourceMap) -> Self {
        let count = sources.files().len();
        let mut uses = vec![vec![]; count];
        for item in file.uses() {
            let Some(Ok(used)) = sources.used(item.path_span) else { continue };
            let from = &mut uses[item.span.file.0 as usize];
            if !from.contains(used) {
                from.push(*used);
            }
        }
        let sees = (0..count).map(|from| {
            let mut seen = vec![false; count];
            seen[from] = true;
            let mut open = VecDeque::from([from]);
            while let Some(at) = open.pop_front() {
                for used in &uses[at] {
                    let used = used.0 as usize;
                    if !std::mem::replace(&mut seen[used], true) {
                        open.push_back(used);
                    }
                }
            }
            seen
        });
        Visibility { sees: sees.collect() }
    }

    fn sees(&self, from: FileId, declared: FileId) -> bool {
        let row = self.sees.get(from.0 as usize);
        row.and_then(|row| row.get(declared.0 as usize)).copied().unwrap_or(true)
    }
}

impl<'a> Context<'a> {
    /// The meaning of a value's name in a file, with its declaration.
    pub(super) fn value(&self, name: &str, from: FileId) -> Option<(ValueName, Span)> {
        let found = self.value_names.get(name).copied();
        found.filter(|(_, declared)| self.visibility.sees(from, declared.file))
    }

    /// The struct with a name in a file; `Some(None)` for an erroneous declaration.
    pub(super) fn struct_named(&self, name: &str, from: FileId) -> Option<Option<StructId>> {
        let (id, declared) = self.type_names.get(name).copied()?;
        let seen = declared.is_none_or(|declared| self.visibility.sees(from, declared.file));
        seen.then_some(id)
    }

    /// Checks the `use`s. Their files were loaded before; failures were recorded.
    pub(super) fn resolve_uses(&mut self, file: &'a ast::File) {
        for item in file.uses().filter(|item| !item.path.damaged) {
            let used = self.sources.used(item.path_span);
            let failure = match used {
                Some(Ok(_)) => continue,
                Some(Err(failure)) => failure.clone(),
                None => crate::source::UseFailure {
                    id: ids::UNKNOWN_FILE,
                    message: format!("the file `{}` was not loaded", item.path.text),
                    hint: Some("load the program with `gridlet::load::load`".into()),
                },
            };
            self.incomplete = true;
            let error = Diagnostic::error(failure.id, item.path_span, failure.message);
            self.report(match failure.hint {
                Some(hint) => error.hint(hint),
                None => error,
            });
        }
    }

    /// Whether a file uses an unknown name for the first time; it is reported only once.
    pub(super) fn is_new(&mut self, name: &'a str, from: FileId, id: &'static str) -> bool {
        self.unknown.insert((from, name, id))
    }

    /// Reports a name that is unknown in `from`, unless it may be declared in a file that could not be read.
    /// `error` is the message if no other file declares it.
    pub(super) fn report_unknown(
        &mut self,
        name: &'a str,
        from: FileId,
        error: impl FnOnce(&mut Self) -> Diagnostic,
    ) {
        if self.incomplete {
            return;
        }
        let value = self.value_names.get(name).map(|(_, declared)| *declared);
        let declared = value.or(self.type_names.get(name).and_then(|(_, declared)| *declared));
        let declared = declared.filter(|declared| !self.visibility.sees(from, declared.file));
        let mut error = error(self);
        if let Some(declared) = declared {
            let file = &self.sources.file(declared.file).name;
            error.hint = Some(format!("`{file}` declares it; `use` that file in this one"));
            error = error.label(declared, "declared here");
        }
        self.report(error);
    }
}
