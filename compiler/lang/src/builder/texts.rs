//! Constant texts, and what prints them: `printf` and assertions.

use super::{Body, ProgramBuilder, is_inside};
use crate::builtins::Builtin;
use crate::ir::{Const, Global, GlobalId, Init, InstKind, Operand, Space};
use crate::source::Span;
use crate::types::{Scalar, Type};

impl ProgramBuilder {
    /// Adds a text in constant memory, with a zero byte at its end, and returns its address. It is a format of [`Body::printf`],
    /// or, as a `*const u8` by [`InstKind::Cast`], an argument for `%s`. Equal texts are one.
    pub fn text(&mut self, text: &str) -> Operand {
        if text.contains('\0') {
            self.note(
                Span::NOWHERE,
                format!("the text {text:?} has a zero byte, which would end it"),
            );
        }
        let bytes: Vec<u8> = text.bytes().chain([0]).collect();
        let index = *self.texts.entry(bytes).or_insert_with_key(|bytes| {
            let ty = Type::Array(Box::new(Type::Scalar(Scalar::U8)), bytes.len() as u64);
            let init = Init::Bytes(bytes.clone());
            let (name, space) = (format!("str.{}", self.globals.len()), Space::Constant);
            self.globals.push(Global { name, space, ty, init, exported: false, variable: None });
            self.globals.len() - 1
        });
        Operand::Global(GlobalId(self.handles.give(index)))
    }

    /// Emits an assertion, as `assert` of the language: where the `bool` is false, the grid ends with a fault whose message has
    /// the text, the body's position, and the name of the function.
    pub fn assert(&mut self, body: &mut Body, condition: Operand, message: &str, function: &str) {
        let mut span = body.span;
        self.declared().place(&mut span);
        let is_known = is_inside(&self.sources, span);
        let (file, line) = match is_known {
            true => (self.sources.name(span).to_owned(), self.sources.line(span)),
            // An error of `finish`.
            false => (String::new(), 0),
        };
        let [message, file, function] = [message, &file, function].map(|text| self.text(text));
        body.assert(condition, [message, file, function], line);
    }
}

impl Body {
    /// Prints as `printf` of the language. `format` is a [`ProgramBuilder::text`]; its conversions take numbers as C passes them:
    /// `i32`, `u32`, `i64`, `u64`, `f64`, and pointers. Cast others to these. The number of arguments is the result, an `i32`.
    pub fn printf(&mut self, format: &Operand, arguments: &[Operand]) -> Operand {
        let format = match format {
            Operand::Global(id) => Some(*id),
            // An error of `finish`.
            _ => None,
        };
        let (builtin, arguments) = (Builtin::Printf, arguments.to_vec());
        self.emit(InstKind::Builtin { builtin, arguments, format }, Type::I32)
    }

    /// Ends the open block with a trap: the grid ends with a fault.
    pub fn trap(&mut self) {
        self.fail("trap", Builtin::Trap, vec![]);
    }

    fn assert(&mut self, condition: Operand, texts: [Operand; 3], line: u32) {
        let [failed, next] = self.builder.blocks("assert", ["fail", "end"]);
        if !self.branch_inside("assert", condition, next, failed) {
            return;
        }
        self.place_inside(failed);
        let bytes = Type::pointer_const(Type::Scalar(Scalar::U8));
        let [message, file, function] =
            texts.map(|text| self.emit(InstKind::Cast(text), bytes.clone()));
        let line = Operand::Const(Const::Int(Scalar::U32, line.into()));
        self.fail("assert", Builtin::Assert, vec![message, file, line, function]);
        self.place_inside(next);
    }
}
