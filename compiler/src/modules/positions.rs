//! The positions of a module's instructions: those of its debug information, otherwise the lines of its text.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use gridlet_lang::ir::symbol;
use gridlet_lang::launch::cdp::symbols::OPEN_TURNS;
use gridlet_lang::source::{FileId, MAX_LINES, SourceMap, Span};

use super::kernels::name;
use super::lost;
use crate::nvvm::legacy::llvm::{Module, Position, Value};

/// The files that a module's debug information mentions, by name.
#[derive(Default)]
pub(super) struct Mentions {
    files: BTreeMap<String, Mentioned>,
}

/// A mentioned file.
#[derive(Default)]
struct Mentioned {
    /// The folder of its name; several if files of different folders have that name.
    folders: BTreeSet<String>,
    lines: BTreeSet<u32>,
}

impl Mentions {
    /// Collects the positions of all functions and instructions.
    pub(super) fn of(module: Module<'_>) -> Self {
        let mut lines = Mentions::default();
        for function in module.functions() {
            lines.add(subprogram(function));
            for instruction in function.blocks().into_iter().flat_map(|block| block.instructions())
            {
                lines.add(position(instruction));
            }
        }
        lines
    }

    fn add(&mut self, position: Option<Position>) {
        let Some(Position { file, folder, line, .. }) = position else { return };
        let known = self.files.entry(file).or_default();
        known.folders.insert(folder);
        known.lines.insert(line);
    }

    /// Adds the files to the sources: first those in `first`, in that order.
    pub(super) fn add_to(mut self, sources: &mut SourceMap, first: Vec<String>) {
        let first: Vec<_> = first
            .into_iter()
            .map(|name| (self.files.remove(&name).unwrap_or_default(), name))
            .collect();
        let rest = self.files.into_iter().map(|(name, known)| (known, name));
        for (Mentioned { folders, lines }, name) in first.into_iter().chain(rest) {
            let mut folders = folders.into_iter();
            let folder = folders.next().filter(|_| folders.next().is_none()).map(PathBuf::from);
            let lines: Vec<u32> = lines.into_iter().collect();
            sources.add_lines(name, folder, &lines);
        }
    }
}

/// The position of an instruction in the module's debug information. Of inlined code, it is that in the function which was
/// inlined.
pub(super) fn position(instruction: Value<'_>) -> Option<Position> {
    instruction.position().filter(is_usable)
}

/// The position of a function in the module's debug information.
pub(super) fn subprogram(function: Value<'_>) -> Option<Position> {
    function.subprogram().filter(is_usable)
}

fn is_usable(position: &Position) -> bool {
    (1..=MAX_LINES).contains(&position.line) && !position.file.is_empty()
}

/// The positions in the sources of a module.
pub(super) struct Positions {
    /// By name, the first line and the lines of the instructions in the module's text.
    functions: HashMap<String, (Span, Vec<Span>)>,
    /// By name, the lines of declarations and variables.
    others: HashMap<String, Span>,
    /// By file and line, the places of the debug information.
    places: HashMap<String, HashMap<u32, Span>>,
    /// Whether the module as it was read opens turns for its launches.
    has_turns: bool,
    /// What [`Positions::instruction`] has computed, by the addresses of functions and of their instructions.
    known: RefCell<HashMap<usize, HashMap<usize, Span>>>,
}

/// Whether a line of a function's text is an instruction of the module. Casts between pointers of the legacy dialect, and
/// calls that describe variables, vanish when a module is read.
fn is_instruction(line: &str) -> bool {
    let is_typed_cast = line.ends_with('*') && line.contains("= bitcast ");
    let is_record = line.starts_with("#dbg_") || line.contains("call void @llvm.dbg.");
    !line.ends_with(':') && !is_typed_cast && !is_record
}

/// The number of brackets that a line opens, less those that it closes.
fn brackets(line: &str) -> i32 {
    let outside = line.split('"').step_by(2).flat_map(str::chars);
    let count = |c| match c {
        '(' | '[' | '{' => 1,
        ')' | ']' | '}' => -1,
        _ => 0,
    };
    outside.map(count).sum()
}

/// The name behind the first `@` of a line.
fn first_name(line: &str) -> &str {
    let name = line.split_once('@').map_or("", |(_, rest)| rest);
    match name.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => name.split(['(', ' ', '=']).next().unwrap_or_default(),
    }
}

impl Positions {
    /// Finds the functions in the first file, and the lines of the others.
    pub(super) fn of(sources: &SourceMap) -> Self {
        let text = sources.files().first().map_or("", |file| file.text.as_str());
        let (mut functions, mut open) = (HashMap::new(), None::<(String, Span, Vec<Span>)>);
        let mut others = HashMap::new();
        let (mut at, mut depth, mut goes_on) = (0, 0, false);
        for line in text.split_inclusive('\n') {
            let code = line.split(';').next().unwrap_or_default();
            let (start, trimmed) = (line.len() - line.trim_start().len(), code.trim());
            let span = Span::new(FileId(0), at + start..at + start + trimmed.len());
            at += line.len();
            if trimmed.starts_with("define ") {
                let name = first_name(trimmed).to_owned();
                // The whole function may be in its first line.
                if trimmed.ends_with('}') {
                    functions.insert(name, (span, vec![]));
                } else {
                    open = Some((name, span, vec![]));
                }
                (depth, goes_on) = (0, false);
            } else if open.is_none()
                && (trimmed.starts_with("declare ") || trimmed.starts_with('@'))
            {
                others.insert(first_name(trimmed).to_owned(), span);
            } else if trimmed == "}" && depth == 0 {
                if let Some((name, first, lines)) = open.take() {
                    functions.insert(name, (first, lines));
                }
            } else if let Some((_, _, lines)) = &mut open
                && !trimmed.is_empty()
            {
                // An instruction may take several lines, as a `switch` with its cases does.
                let starts = depth == 0 && !goes_on;
                if starts && is_instruction(trimmed) {
                    lines.push(span);
                }
                depth = (depth + brackets(trimmed)).max(0);
                goes_on = trimmed.ends_with(',');
            }
        }
        let mut places: HashMap<String, HashMap<u32, Span>> = HashMap::new();
        for (id, file) in (0..).map(FileId).zip(sources.files()).skip(1) {
            let lines = places.entry(file.name.clone()).or_default();
            for index in 0..file.text.len() {
                let span = Span::new(id, index..index);
                lines.insert(sources.line(span), span);
            }
        }
        let has_turns = text.contains(&symbol::internal(OPEN_TURNS));
        Positions { functions, others, places, has_turns, known: RefCell::default() }
    }

    /// The position of a function: that of its name in the source, or the line that starts it, or the start of the text.
    pub(super) fn function(&self, name: &str, function: Value<'_>) -> Span {
        let known = subprogram(function).and_then(|position| self.place(&position));
        known.unwrap_or_else(|| self.first_line(name))
    }

    /// The line of the text that starts a function.
    pub(super) fn first_line(&self, name: &str) -> Span {
        let found = self.functions.get(name).map(|(first, _)| *first);
        found.unwrap_or_else(|| Span::new(FileId(0), 0..0))
    }

    /// The line that defines or declares a function or a variable, if it is found.
    pub(super) fn line_of(&self, name: &str) -> Option<Span> {
        let function = self.functions.get(name).map(|(first, _)| *first);
        function.or_else(|| self.others.get(name).copied())
    }

    fn place(&self, position: &Position) -> Option<Span> {
        self.places.get(&position.file)?.get(&position.line).copied()
    }

    /// The position of each instruction of the module as it was read: in the source, or the line of the text, or where that is
    /// not known, the line that starts the function.
    pub(super) fn instructions<'m>(
        &self,
        name: &str,
        function: Value<'m>,
    ) -> HashMap<Value<'m>, Span> {
        let lines = self.functions.get(name).map_or(&[][..], |(_, lines)| lines);
        let instructions = function.blocks().into_iter().flat_map(|block| block.instructions());
        // Those that were added are not in the text.
        let instructions: Vec<_> =
            instructions.filter(|one| !lost::is_added(*one, self.has_turns)).collect();
        let has_lines = instructions.len() == lines.len();
        let first = self.first_line(name);
        let of = |(at, instruction): (usize, Value<'m>)| {
            let known = position(instruction).and_then(|position| self.place(&position));
            let line = if has_lines { lines[at] } else { first };
            (instruction, known.unwrap_or(line))
        };
        instructions.into_iter().enumerate().map(of).collect()
    }

    /// The position of one instruction of the module, which must not change between two calls. Those of its function are computed
    /// once.
    pub(super) fn instruction(&self, instruction: Value<'_>) -> Option<Span> {
        let function = instruction.function()?;
        let address = |value: Value<'_>| value.raw() as usize;
        let compute = || {
            let all = self.instructions(&name(function), function);
            all.into_iter().map(|(value, span)| (address(value), span)).collect()
        };
        let mut known = self.known.borrow_mut();
        let of_function = known.entry(address(function)).or_insert_with(compute);
        of_function.get(&address(instruction)).copied()
    }
}
