//! The reader of the IR's text form: the inverse of [`super::print`], with the same grammar.
//!
//! With it, the test of a pass can start from the text of a module. It checks the grammar and that every name
//! is declared; [`super::verify`] checks everything else.
//!
//! Printing a module that was read gives the same text. The text does not contain:
//! - spans, except the lines of calls and launches. The span of a kernel is where its entry calls its body;
//!   all others are at the start of the first file, or, by [`parse_own`], at their own line of this text;
//! - sources. Each file that a position names is replaced by one of empty lines; the first is called
//!   [`FIRST_FILE`];
//! - the ids of instructions, which are numbered in the order of their first mention;
//! - the names of slots and parameters that share a name: the second `sum` is now called `sum.2`.
//!
//! The reader accepts more than the printer writes: values may have any number, and lines that start with `;`
//! are comments.

mod cursor;
mod function;
mod positions;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use cursor::Cursor;

use super::{
    Extern, FunctionId, Global, GlobalId, Init, Kernel, KernelId, LaunchBounds, Module, Parameter,
    Space, Variable,
};
use crate::source::{LineColumn, Span};
use crate::types::{Field, Struct, StructId, Structs, Type};

/// The name of the program's first file in a module that was read.
pub const FIRST_FILE: &str = "program.grid";

/// Why a text is not IR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {message}", position.line, position.column)]
pub struct ParseError {
    /// The position of the error in the text.
    pub position: LineColumn,
    /// The expected and the found element.
    pub message: String,
}

type Result<T> = std::result::Result<T, ParseError>;

/// Reads a module from the text that [`super::print::print`] writes.
///
/// # Errors
/// The first violation of the grammar, or the first name that is undeclared or declared twice.
pub fn parse(text: &str) -> Result<Module> {
    read(FIRST_FILE, text, false)
}

/// As [`parse`], for a front end's own text: what has no position is at its own line of the text, which is the program's first
/// file, called `name`. Positions such as `line 3` are in it, too. The compiler's own functions and lowered launches, which only
/// the compiler writes, are refused.
///
/// # Errors
/// As [`parse`].
pub fn parse_own(name: &str, text: &str) -> Result<Module> {
    read(name, text, true)
}

fn read(first_file: &str, text: &str, keeps_own: bool) -> Result<Module> {
    let names = Names::declared(text)?;
    let mut parser = Parser {
        cursor: Cursor::new(text),
        names,
        globals: BTreeMap::new(),
        externs: BTreeMap::new(),
        files: vec![(first_file, 0)],
        keeps_own,
        module: Module {
            sources: Arc::default(),
            structs: Structs::new(),
            globals: vec![],
            externs: vec![],
            functions: vec![],
            kernels: vec![],
            lowered: false,
            resident: None,
        },
    };
    parser.module()?;
    let Parser { files, mut module, .. } = parser;
    module.sources = Arc::new(positions::settle(&mut module, &files, text, keeps_own));
    Ok(module)
}

/// A variable for debuggers, known in its whole function or module.
fn variable(name: &str, span: Span) -> Variable {
    Variable { name: name.into(), span, scope: None, parameter: None }
}

/// The names that a text may mention before their declaration.
#[derive(Default)]
struct Names<'t> {
    structs: BTreeMap<&'t str, StructId>,
    kernels: BTreeMap<&'t str, KernelId>,
    functions: BTreeMap<&'t str, FunctionId>,
}

impl<'t> Names<'t> {
    /// Finds all declarations by the first words of each line: every declaration starts a line, in the order
    /// of ids.
    fn declared(text: &'t str) -> Result<Self> {
        let mut names = Names::default();
        names.structs.insert("dim3", StructId::DIM3);
        names.structs.insert("geometry", StructId::GEOMETRY);
        let mut cursor = Cursor::new(text);
        loop {
            cursor.skip_blank_lines();
            if cursor.is_at_end() {
                return Ok(names);
            }
            let is_extern = cursor.peek_word() == "extern" && {
                let mut ahead = cursor.clone();
                ahead.eat_word("extern") && ahead.peek_word() == "kernel"
            };
            if is_extern {
                cursor.eat_word("extern");
            }
            let keyword = cursor.peek_word();
            let is_struct = keyword == "struct";
            if is_struct || matches!(keyword, "kernel" | "fn" | "body" | "entry") {
                cursor.eat_word(keyword);
                if is_struct || cursor.eat("@") {
                    if is_extern {
                        // Its entry.
                        names.declare("entry", &mut cursor.clone())?;
                    }
                    names.declare(keyword, &mut cursor)?;
                }
            }
            cursor.line();
        }
    }

    fn declare(&mut self, keyword: &str, cursor: &mut Cursor<'t>) -> Result<()> {
        cursor.rest();
        let start = cursor.clone();
        // Without a name, this is not a declaration; the parser reports it.
        let Ok(name) = cursor.name("a name") else { return Ok(()) };
        let next = cursor.rest().chars().next();
        if let Some(next) = next.filter(|next| !next.is_whitespace() && !"({;".contains(*next)) {
            let names = "names consist of letters, digits, `_`, `.` and `$`";
            return Err(
                cursor.error(format!("a name cannot contain `{}`: {names}", next.escape_debug()))
            );
        }
        let is_new = match keyword {
            "struct" => {
                let id = StructId(self.structs.len() as u32);
                self.structs.insert(name, id).is_none()
            }
            "kernel" => {
                let id = KernelId(self.kernels.len() as u32);
                self.kernels.insert(name, id).is_none()
            }
            _ => {
                let id = FunctionId(self.functions.len() as u32);
                self.functions.insert(name, id).is_none()
            }
        };
        if is_new { Ok(()) } else { Err(start.error(format!("`{name}` is declared twice"))) }
    }
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    names: Names<'t>,
    globals: BTreeMap<&'t str, GlobalId>,
    externs: BTreeMap<&'t str, super::ExternId>,
    /// The files named in positions, each with its lines.
    files: Vec<(&'t str, u32)>,
    /// Whether what has no position is at its own line.
    keeps_own: bool,
    module: Module,
}

impl<'t> Parser<'t> {
    fn module(&mut self) -> Result<()> {
        self.cursor.skip_blank_lines();
        self.cursor.expect_word("launches")?;
        self.cursor.rest();
        let place = self.cursor.clone();
        self.module.lowered = self.cursor.eat_word("lowered");
        if self.module.lowered && self.keeps_own {
            let why = "the launches are lowered; only `launches symbolic` can be read";
            return Err(place.error(why.into()));
        }
        if !self.module.lowered && !self.cursor.eat_word("symbolic") {
            return Err(self.cursor.expected("`symbolic` or `lowered`"));
        }
        self.cursor.end_of_line()?;
        for _ in 2..self.names.structs.len() {
            let item = Struct { name: String::new(), fields: vec![], span: Some(Span::NOWHERE) };
            self.module.structs.add(item);
        }
        while self.declaration("struct") {
            self.structure()?;
        }
        loop {
            let space = match () {
                () if self.declaration("shared") => Space::Shared,
                () if self.declaration("device") => Space::Device,
                () if self.declaration("constant") => Space::Constant,
                () => break,
            };
            self.global(space)?;
        }
        while self.declaration("extern") {
            if self.cursor.eat_word("kernel") {
                self.declared_kernel()?;
                break;
            }
            self.declared_function()?;
        }
        loop {
            if self.declaration("kernel") {
                self.kernel()?;
            } else if self.declaration("extern") {
                self.cursor.expect_word("kernel")?;
                self.declared_kernel()?;
            } else {
                break;
            }
        }
        loop {
            self.cursor.skip_blank_lines();
            if self.cursor.is_at_end() {
                break;
            }
            self.function()?;
        }
        Ok(())
    }

    /// Consumes this word if it starts the next line. Returns whether it did.
    fn declaration(&mut self, keyword: &str) -> bool {
        self.cursor.skip_blank_lines();
        self.cursor.eat_word(keyword)
    }

    fn structure(&mut self) -> Result<()> {
        let span = self.here();
        let name = self.cursor.name("the name of a struct")?;
        self.cursor.expect("{")?;
        let fields = self.parameters("", "}")?;
        self.cursor.end_of_line()?;
        let Some(&id) = self.names.structs.get(name) else {
            return Err(self.cursor.error(format!("`{name}` does not start its line")));
        };
        let item = self.module.structs.get_mut(id);
        item.name = name.into();
        item.span = Some(span);
        item.fields = fields.into_iter().map(|Parameter { name, ty }| Field { name, ty }).collect();
        Ok(())
    }

    fn global(&mut self, space: Space) -> Result<()> {
        let span = self.here();
        let name = self.symbol()?;
        self.cursor.expect(":")?;
        let ty = self.ty()?;
        let init = if !self.cursor.eat("=") {
            Init::Unset
        } else if self.cursor.eat_word("zero") {
            Init::Zero
        } else if self.cursor.rest().starts_with('"') {
            Init::Bytes(self.cursor.bytes()?)
        } else {
            return Err(self.cursor.expected("`zero` or a string"));
        };
        let exported = self.cursor.eat_word("exported");
        self.cursor.end_of_line()?;
        let id = GlobalId(self.module.globals.len() as u32);
        // The verifier reports duplicates; mentions refer to the first.
        self.globals.entry(name).or_insert(id);
        self.module.globals.push(Global {
            name: name.into(),
            space,
            ty,
            init,
            exported,
            variable: self.keeps_own.then(|| variable(name, span)),
        });
        Ok(())
    }

    fn declared_function(&mut self) -> Result<()> {
        let here = self.here();
        let span = self.cursor.eat_word("fn").then_some(here);
        if span.is_none() && self.keeps_own {
            return Err(self.cursor.expected("`fn` or `kernel`"));
        }
        let name = self.symbol()?;
        self.cursor.expect("(")?;
        let mut parameters = vec![];
        while !self.cursor.eat(")") {
            if !parameters.is_empty() {
                self.cursor.expect(",")?;
            }
            parameters.push(self.ty()?);
        }
        let result = self.result()?;
        self.cursor.end_of_line()?;
        let id = super::ExternId(self.module.externs.len() as u32);
        self.externs.entry(name).or_insert(id);
        self.module.externs.push(Extern { name: name.into(), parameters, result, span });
        Ok(())
    }

    fn declared_kernel(&mut self) -> Result<()> {
        self.cursor.rest();
        let start = self.cursor.clone();
        let name = self.symbol()?;
        self.cursor.expect("(")?;
        let parameters = self.parameters("", ")")?;
        self.cursor.end_of_line()?;
        let id = KernelId(self.module.kernels.len() as u32);
        let entry = FunctionId(self.module.functions.len() as u32);
        if self.names.functions.get(name) != Some(&entry) {
            return Err(start.error(format!("`extern kernel @{name}` does not start its line")));
        }
        let kernel = Kernel {
            name: name.into(),
            parameters,
            body: entry,
            entry,
            whole: None,
            launch_bounds: None,
            noalias: false,
            fast_math: false,
            span: self.here_of(&start),
        };
        self.module.functions.push(kernel.declared_entry(id));
        self.module.kernels.push(kernel);
        Ok(())
    }

    fn kernel(&mut self) -> Result<()> {
        self.cursor.rest();
        let start = self.cursor.clone();
        let name = self.symbol()?;
        self.cursor.expect("(")?;
        let parameters = self.parameters("", ")")?;
        let launch_bounds = if self.cursor.eat_word("launch_bounds") {
            self.cursor.expect("(")?;
            let max_threads = self.cursor.number("a number of threads")?;
            let min_blocks = if self.cursor.eat(",") {
                Some(self.cursor.number("a number of blocks")?)
            } else {
                None
            };
            self.cursor.expect(")")?;
            Some(LaunchBounds { max_threads, min_blocks })
        } else {
            None
        };
        let noalias = self.cursor.eat_word("noalias");
        let fast_math = self.cursor.eat_word("fast_math");
        self.cursor.expect_word("body")?;
        let body = self.function_name()?;
        let whole = match self.cursor.eat_word("whole") {
            true => Some(self.function_name()?),
            false => None,
        };
        self.cursor.end_of_line()?;
        let Some(&entry) = self.names.functions.get(name) else {
            return Err(start.error(format!("kernel `{name}` has no `entry @{name}`")));
        };
        let span = self.here_of(&start);
        let name = name.into();
        self.module.kernels.push(Kernel {
            name,
            parameters,
            body,
            entry,
            whole,
            launch_bounds,
            noalias,
            fast_math,
            span,
        });
        Ok(())
    }

    /// `-> TYPE`, if present.
    fn result(&mut self) -> Result<Type> {
        if self.cursor.eat("->") { self.ty() } else { Ok(Type::Unit) }
    }

    /// Names and types up to `end`, which is consumed.
    fn parameters(&mut self, sigil: &str, end: &str) -> Result<Vec<Parameter>> {
        let mut parameters = vec![];
        while !self.cursor.eat(end) {
            if !parameters.is_empty() {
                self.cursor.expect(",")?;
            }
            self.cursor.expect(sigil)?;
            let name = self.cursor.name("a name")?.into();
            self.cursor.expect(":")?;
            parameters.push(Parameter { name, ty: self.ty()? });
        }
        Ok(parameters)
    }

    /// `@NAME`
    fn symbol(&mut self) -> Result<&'t str> {
        self.cursor.expect("@")?;
        self.cursor.name("a name")
    }

    /// `@NAME` of a function of this module.
    fn function_name(&mut self) -> Result<FunctionId> {
        let functions = |parser: &Self, name: &str| parser.names.functions.get(name).copied();
        self.known("a function", functions)
    }

    /// `@NAME` of an item that `find` looks up.
    fn known<I>(&mut self, what: &str, find: impl Fn(&Self, &str) -> Option<I>) -> Result<I> {
        self.cursor.rest();
        let mut start = self.cursor.clone();
        let found = self.symbol().map(|name| find(self, name));
        match found {
            Ok(Some(id)) => Ok(id),
            Ok(None) => {
                start.eat("@");
                Err(start.expected(&format!("the name of {what}")))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
