//! Source lines: the `!dbg` of functions and instructions.
//!
//! Of a module's debug information either all that LLVM 7 knows is written, with variables, or only the lines, for `.loc`
//! directives: a compile unit, a subprogram for each function, and the positions of its instructions. Code that was inlined
//! is then in the function that it was inlined into, on the lines that it came from.

use std::collections::HashMap;

use super::LegacyOptions;
use super::debug_text::{DebugText, InstructionText, renumbered};
use super::llvm::{Module, Position, Value};
use super::names::escape;
use super::writer::Writer;
use crate::nvvm::subprograms;

/// The nodes that are written once.
#[derive(Default)]
pub(super) struct Lines {
    /// The compile units, with what they ask for.
    units: Vec<(&'static str, usize)>,
    function_type: Option<usize>,
    files: HashMap<(String, String), usize>,
    /// By subprogram and file, for positions in another file than that of the subprogram.
    scopes: HashMap<(usize, usize), usize>,
    /// By scope, line and column.
    positions: HashMap<(usize, u32, u32), usize>,
}

impl Lines {
    /// The compile units, if any function has lines.
    pub(super) fn units(&self) -> Vec<usize> {
        self.units.iter().map(|(_, unit)| *unit).collect()
    }
}

/// All debug information of a module, by its functions, instructions and variables.
pub(super) struct Variables<'m> {
    text: DebugText,
    /// Indices into the text's functions.
    functions: HashMap<Value<'m>, usize>,
    /// Functions and instructions within them.
    instructions: HashMap<Value<'m>, (usize, usize)>,
    /// Indices into the text's variables.
    globals: HashMap<Value<'m>, usize>,
    /// The nodes written so far, by their numbers in the module's text.
    written: HashMap<usize, usize>,
}

impl<'m> Variables<'m> {
    /// Those of a module, if the options keep them, it has any, and LLVM 7 knows all that they say.
    pub(super) fn of(module: Module<'m>, options: &LegacyOptions) -> Option<Variables<'m>> {
        if !options.debug_variables || !options.debug_lines || options.drop_debug_info {
            return None;
        }
        let printed = module.print();
        if !printed.contains("emissionKind: FullDebug") {
            return None;
        }
        let text = DebugText::read(&printed)?;
        let globals: HashMap<_, _> =
            module.variables().into_iter().enumerate().map(|(at, one)| (one, at)).collect();
        let (mut functions, mut instructions) = (HashMap::new(), HashMap::new());
        let defined = module.functions().into_iter().filter(|one| !one.is_declaration());
        for (at, function) in defined.enumerate() {
            functions.insert(function, at);
            let all: Vec<_> =
                function.blocks().into_iter().flat_map(|block| block.instructions()).collect();
            if text.functions.get(at)?.instructions.len() != all.len() {
                return None;
            }
            instructions.extend(all.into_iter().enumerate().map(|(index, one)| (one, (at, index))));
        }
        if text.functions.len() != functions.len() || text.globals.len() != globals.len() {
            return None;
        }
        let written = HashMap::new();
        Some(Variables { text, functions, instructions, globals, written })
    }

    fn of_instruction(&self, instruction: Value<'m>) -> Option<&InstructionText> {
        let &(function, at) = self.instructions.get(&instruction)?;
        self.text.functions.get(function)?.instructions.get(at)
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
        if let Some(variables) = &self.variables {
            let at = *variables.functions.get(&function)?;
            let subprogram = variables.text.functions.get(at)?.subprogram?;
            let number = self.debug_node(subprogram);
            return Some(Subprogram { number, file: 0, line: position.line });
        }
        let file = self.file(&position);
        let kind = match position.folder == subprograms::FOLDER {
            true => "NoDebug",
            false => "DebugDirectivesOnly",
        };
        let known = self.lines.units.iter().find(|(known, _)| *known == kind);
        let unit = match known {
            Some((_, unit)) => *unit,
            None => {
                let unit = self.nodes.add(format!(
                    "distinct !DICompileUnit(language: DW_LANG_C99, file: !{file}, producer: \"gridlet\", isOptimized: true, \
                     runtimeVersion: 0, emissionKind: {kind})"
                ));
                self.lines.units.push((kind, unit));
                unit
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

    /// The node of an instruction's position. Without variables, one that has none is at its function.
    pub(super) fn position(&mut self, instruction: Value<'m>, within: Subprogram) -> Option<usize> {
        if let Some(variables) = &self.variables {
            let location = variables.of_instruction(instruction)?.location?;
            return Some(self.debug_node(location));
        }
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
        Some(*self.lines.positions.entry(key).or_insert_with(|| self.nodes.add(text())))
    }

    /// The number of a node of the module's text, written with all that it leads to.
    fn debug_node(&mut self, number: usize) -> usize {
        let Some(variables) = &mut self.variables else { return 0 };
        let nodes = &mut self.nodes;
        let mut open = vec![];
        let mut of = |number: usize, open: &mut Vec<usize>| {
            *variables.written.entry(number).or_insert_with(|| {
                open.push(number);
                nodes.add("")
            })
        };
        let wanted = of(number, &mut open);
        let mut made = vec![];
        while let Some(next) = open.pop() {
            let text = variables.text.node(next);
            if text.contains("!DICompileUnit(") {
                let unit = ("", of(next, &mut open));
                if !self.lines.units.contains(&unit) {
                    self.lines.units.push(unit);
                }
            }
            let text = renumbered(text, |number| of(number, &mut open));
            made.push((of(next, &mut open), text));
        }
        made.into_iter().for_each(|(number, text)| self.nodes.set(number, text));
        wanted
    }

    /// What follows the line of a global that has a description.
    pub(super) fn described(&mut self, global: Value<'m>) -> String {
        let number = self.variables.as_ref().and_then(|variables| {
            let at = *variables.globals.get(&global)?;
            variables.text.globals.get(at).copied().flatten()
        });
        number.map_or_else(String::new, |number| format!(", !dbg !{}", self.debug_node(number)))
    }

    /// The variables that begin before an instruction: where each is, and the rest of the call that describes it.
    pub(super) fn declared_before(&mut self, instruction: Value<'m>) -> Vec<(Value<'m>, String)> {
        let Some(text) = self.variables.as_ref().and_then(|all| all.of_instruction(instruction))
        else {
            return vec![];
        };
        let values = instruction.declared_values();
        let declared = text.records.iter().zip(values).filter_map(|(record, value)| {
            let declared = record.declared.as_ref()?;
            Some((value?, declared.variable, declared.expression.clone(), declared.location))
        });
        let declared: Vec<_> = declared.collect();
        let text = |(value, variable, expression, location)| {
            let (variable, location) = (self.debug_node(variable), self.debug_node(location));
            (value, format!("metadata !{variable}, metadata {expression}), !dbg !{location}"))
        };
        declared.into_iter().map(text).collect()
    }

    fn file(&mut self, position: &Position) -> usize {
        let (name, folder) = (escape(position.file.as_bytes()), escape(position.folder.as_bytes()));
        let text = || format!("!DIFile(filename: \"{name}\", directory: \"{folder}\")");
        let key = (position.file.clone(), position.folder.clone());
        *self.lines.files.entry(key).or_insert_with(|| self.nodes.add(text()))
    }
}
