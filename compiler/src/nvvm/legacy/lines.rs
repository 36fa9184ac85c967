//! Source lines: the `!dbg` of functions and instructions.
//!
//! Of a module's debug information only the lines are written, for `.loc` directives: a compile unit, a subprogram for each
//! function, and the positions of its instructions. Code that was inlined is in the function that it was inlined into, on the
//! lines that it came from.

use std::collections::HashMap;

use super::llvm::{Position, Value};
use super::names::escape;
use super::writer::Writer;

/// The nodes that are written once.
#[derive(Default)]
pub(super) struct Lines {
    unit: Option<usize>,
    function_type: Option<usize>,
    files: HashMap<(String, String), usize>,
    /// By subprogram and file, for positions in another file than that of the subprogram.
    scopes: HashMap<(usize, usize), usize>,
    /// By scope, line and column.
    positions: HashMap<(usize, u32, u32), usize>,
}

impl Lines {
    /// The compile unit, if any function has lines.
    pub(super) fn unit(&self) -> Option<usize> {
        self.unit
    }
}

/// The subprogram of the function that is written.
#[derive(Clone, Copy)]
pub(super) struct Subprogram {
    /// Its node.
    pub(super) number: usize,
    file: usize,
    line: u32,
}

impl<'m> Writer<'m, '_> {
    /// Writes the subprogram of a function that has lines.
    pub(super) fn subprogram(&mut self, function: Value<'m>) -> Option<Subprogram> {
        if !self.options.debug_lines || self.options.drop_debug_info {
            return None;
        }
        let position = function.subprogram()?;
        let file = self.file(&position);
        let unit = match self.lines.unit {
            Some(unit) => unit,
            None => {
                let unit = self.nodes.add(format!(
                    "distinct !DICompileUnit(language: DW_LANG_C99, file: !{file}, producer: \"gridlet\", isOptimized: true, \
                     runtimeVersion: 0, emissionKind: DebugDirectivesOnly)"
                ));
                *self.lines.unit.insert(unit)
            }
        };
        let function_type = match self.lines.function_type {
            Some(ty) => ty,
            None => {
                let types = self.nodes.add("!{null}");
                let ty = self.nodes.add(format!("!DISubroutineType(types: !{types})"));
                *self.lines.function_type.insert(ty)
            }
        };
        let (name, line) = (escape(&function.name().unwrap_or_default()), position.line);
        let number = self.nodes.add(format!(
            "distinct !DISubprogram(name: \"{name}\", scope: !{file}, file: !{file}, line: {line}, type: !{function_type}, \
             isLocal: false, isDefinition: true, scopeLine: {line}, isOptimized: true, unit: !{unit})"
        ));
        Some(Subprogram { number, file, line })
    }

    /// The node of an instruction's position; its function's, if it has none.
    pub(super) fn position(&mut self, instruction: Value<'m>, within: Subprogram) -> usize {
        let own = instruction.position();
        let (mut scope, mut line, mut column) = (within.number, within.line, 0);
        if let Some(own) = own {
            let file = self.file(&own);
            if file != within.file {
                let text = || {
                    format!(
                        "!DILexicalBlockFile(scope: !{}, file: !{file}, discriminator: 0)",
                        within.number
                    )
                };
                let key = (within.number, file);
                scope = *self.lines.scopes.entry(key).or_insert_with(|| self.nodes.add(text()));
            }
            (line, column) = (own.line, own.column);
        }
        let text = || format!("!DILocation(line: {line}, column: {column}, scope: !{scope})");
        let key = (scope, line, column);
        *self.lines.positions.entry(key).or_insert_with(|| self.nodes.add(text()))
    }

    fn file(&mut self, position: &Position) -> usize {
        let (name, folder) = (escape(position.file.as_bytes()), escape(position.folder.as_bytes()));
        let text = || format!("!DIFile(filename: \"{name}\", directory: \"{folder}\")");
        let key = (position.file.clone(), position.folder.clone());
        *self.lines.files.entry(key).or_insert_with(|| self.nodes.add(text()))
    }
}
