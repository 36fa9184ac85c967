//! Items.

use super::Parser;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast::{
    Attribute, Const, ConstParameter, ExprKind, Field, File, Function, Item, Name, Parameter,
    Static, Struct, Use,
};
use crate::syntax::token::Token;
use crate::types::Scalar;

impl Parser<'_> {
    /// The whole file.
    pub(in crate::syntax) fn file(mut self) -> File {
        let mut file = File::empty(Span::new(self.file, 0..self.text.len()));
        while self.peek() != Token::End {
            let start = self.at;
            if self.item(&mut file).is_none() {
                self.skip_item(start);
            }
        }
        file
    }

    /// Parses one item. Whatever could be parsed is added to the file, even after an error.
    fn item(&mut self, file: &mut File) -> Option<()> {
        let attributes = self.attributes()?;
        let wrongly_attributed = match self.peek() {
            Token::Fn | Token::Kernel => None,
            _ => attributes.first().map(|attribute| attribute.span),
        };
        if let Some(span) = wrongly_attributed {
            let error = Diagnostic::error(
                ids::MISPLACED_ATTRIBUTE,
                span,
                "only functions and kernels have attributes",
            );
            self.report(error);
        }
        match self.peek() {
            Token::Const => self.const_item(file),
            Token::Struct => self.struct_item(file),
            Token::Fn | Token::Kernel => self.function_item(attributes, file),
            Token::Static => self.static_item(file),
            Token::Extern => self.extern_item(file),
            Token::Use => self.use_item(file),
            Token::RightBrace => {
                let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), "unexpected `}`");
                self.report(error.at_caret("nothing is open here"));
                None
            }
            Token::Name if self.peek_at(1) == Token::LeftParen && self.starts_line() => {
                self.function_without_word(file)
            }
            _ => {
                self.expected(
                    "an item: `const`, `static`, `struct`, `fn`, `kernel`, `extern` or `use`",
                );
                None
            }
        }
    }

    /// Whether the next token is the first of its line, not indented.
    fn starts_line(&self) -> bool {
        let before = &self.text[..self.span().start as usize];
        before.is_empty() || before.ends_with('\n')
    }

    /// `name(…) { … }`: a function or kernel without its keyword.
    fn function_without_word(&mut self, file: &mut File) -> Option<()> {
        let message = "expected `fn` or `kernel` before this name";
        self.report(Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message));
        let name = self.name()?;
        file.items.push(Item::Opaque(name));
        self.signature(name, false)?;
        self.block().map(drop)
    }

    /// Skips to the next item. `start` is the index of the broken item's first token.
    fn skip_item(&mut self, start: usize) {
        if self.at == start {
            self.skip_delimited();
        }
        loop {
            let token = self.peek();
            // In a type, `const` follows a `*`.
            let is_const = token == Token::Const && self.tokens[self.at - 1].token != Token::Star;
            let is_attribute = token == Token::Hash && self.peek_at(1) == Token::LeftBracket;
            if token == Token::End || token.starts_item() || is_const || is_attribute {
                return;
            }
            self.bump();
        }
    }

    /// `#[name(arguments)]`, possibly repeated.
    pub(super) fn attributes(&mut self) -> Option<Vec<Attribute>> {
        let mut attributes = vec![];
        while self.peek() == Token::Hash {
            let hash = self.bump();
            let ((name, arguments), span) =
                self.delimited(Token::LeftBracket, Token::RightBracket, |parser| {
                    let name = parser.name()?;
                    let arguments = match parser.peek() {
                        Token::LeftParen => parser.arguments()?.0,
                        _ => vec![],
                    };
                    Some((name, arguments))
                })?;
            attributes.push(Attribute { name, arguments, span: hash.to(span) });
        }
        Some(attributes)
    }

    /// `const NAME: T = e;`
    fn const_item(&mut self, file: &mut File) -> Option<()> {
        self.bump();
        let name = self.name()?;
        let item = self.const_rest(name);
        let read = item.is_some();
        file.items.push(item.map_or(Item::Opaque(name), Item::Const));
        read.then_some(())
    }

    fn const_rest(&mut self, name: Name) -> Option<Const> {
        if self.peek() == Token::Equal {
            let error = Diagnostic::error(
                ids::SYNTAX_ERROR,
                self.span(),
                "expected `:`, found `=`: a constant needs a type",
            );
            self.report(
                error.hint(format!("write `const {}: u32 = …`", &self.text[name.span.range()])),
            );
            return None;
        }
        self.expect(Token::Colon)?;
        let ty = self.ty()?;
        self.expect(Token::Equal)?;
        let value = self.expression()?;
        self.expect(Token::Semicolon)?;
        Some(Const { name, ty, value })
    }

    /// `static name: T = e;`
    fn static_item(&mut self, file: &mut File) -> Option<()> {
        self.bump();
        let name = self.name()?;
        let read = (|| {
            self.expect(Token::Colon)?;
            let ty = self.ty()?;
            self.expect(Token::Equal)?;
            let value = self.expression()?;
            self.expect(Token::Semicolon)?;
            Some(Static { name, ty, value })
        })();
        let whole = read.is_some();
        file.items.push(read.map_or(Item::Opaque(name), Item::Static));
        whole.then_some(())
    }

    /// `struct Name { field: T, … }`
    fn struct_item(&mut self, file: &mut File) -> Option<()> {
        self.bump();
        let name = self.name()?;
        let fields = self.delimited(Token::LeftBrace, Token::RightBrace, |parser| {
            parser.list(Token::RightBrace, |parser| {
                let name = parser.name()?;
                parser.expect(Token::Colon)?;
                Some(Field { name, ty: parser.ty()? })
            })
        });
        let read = fields.is_some();
        let fields = fields.map_or(vec![], |(fields, _)| fields);
        file.items.push(Item::Struct(Struct { name, fields, damaged: !read }));
        if read {
            self.eat(Token::Semicolon);
        }
        read.then_some(())
    }

    /// `fn name(…) -> T { … }` or `kernel name(…) { … }`
    fn function_item(&mut self, attributes: Vec<Attribute>, file: &mut File) -> Option<()> {
        let errors = self.error_count();
        let is_kernel = self.peek() == Token::Kernel;
        self.bump();
        let name = self.name()?;
        let signature = self.signature(name, is_kernel);
        let is_complete = signature.is_none() || self.peek() == Token::LeftBrace;
        if !is_complete {
            self.expected("`->` or `{`");
        }
        // With a damaged result type, every use of the function would cause a confusing error.
        let Some(mut function) = signature.filter(|_| is_complete) else {
            file.items.push(Item::Opaque(name));
            // The body may be intact.
            return if self.skip_to_body() { self.block().map(drop) } else { None };
        };
        function.attributes = attributes;
        let body = self.block();
        let read = body.is_some();
        if body.is_some() {
            function.body = body;
        }
        function.damaged = self.error_count() > errors;
        file.items.push(Item::Function(Box::new(function)));
        read.then_some(())
    }

    /// Everything before the body.
    fn signature(&mut self, name: Name, is_kernel: bool) -> Option<Function> {
        let const_parameters =
            if self.peek() == Token::Less { self.const_parameters()? } else { vec![] };
        let (parameters, _) = self.delimited(Token::LeftParen, Token::RightParen, |parser| {
            parser.list(Token::RightParen, Self::parameter)
        })?;
        let result = if self.eat(Token::Arrow) { Some(self.ty()?) } else { None };
        Some(Function {
            name,
            is_kernel,
            attributes: vec![],
            const_parameters,
            parameters,
            result,
            body: None,
            damaged: false,
        })
    }

    fn parameter(&mut self) -> Option<Parameter> {
        let mutable = self.eat(Token::Mut);
        let name = self.name()?;
        if matches!(self.peek(), Token::Star | Token::Name) {
            let message = "a parameter has the form `name: type`";
            let error = Diagnostic::error(ids::SYNTAX_ERROR, name.span, message);
            let first = &self.text[name.span.range()];
            let ty = super::foreign::own_type(first);
            let is_pointer = self.peek() == Token::Star;
            let second = &self.text[self.span_of(self.lexeme(usize::from(is_pointer))).range()];
            self.report(error.hint(match Scalar::from_name(second) {
                _ if is_pointer => format!("write `{second}: *mut {ty}`"),
                // Go's order.
                Some(_) => format!("write `{first}: {second}`"),
                None => format!("write `{second}: {ty}`"),
            }));
            return None;
        }
        self.expect(Token::Colon)?;
        Some(Parameter { mutable, name, ty: self.ty()? })
    }

    /// `<const K: T, …>`
    fn const_parameters(&mut self) -> Option<Vec<ConstParameter>> {
        let (parameters, _) = self.delimited(Token::Less, Token::Greater, |parser| {
            parser.list(Token::Greater, |parser| {
                parser.const_word()?;
                let name = parser.name()?;
                parser.expect(Token::Colon)?;
                Some(ConstParameter { name, ty: parser.ty()? })
            })
        })?;
        Some(parameters)
    }

    /// The `const` of a const parameter. There are no type parameters.
    fn const_word(&mut self) -> Option<()> {
        if self.peek() == Token::Name {
            let message = "expected `const`, found a name";
            let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
            let name = &self.text[self.span().range()];
            self.report(error.hint(format!(
                "only const parameters are allowed here: write `const {name}: u32`"
            )));
            return None;
        }
        self.expect(Token::Const).map(drop)
    }

    /// `extern fn name(…) -> T;` or `extern kernel name(…);`
    fn extern_item(&mut self, file: &mut File) -> Option<()> {
        let errors = self.error_count();
        self.bump();
        let is_kernel = self.eat(Token::Kernel);
        if !is_kernel && !self.eat(Token::Fn) {
            self.expected("`fn` or `kernel`");
            return None;
        }
        let name = self.name()?;
        let Some(mut function) = self.signature(name, is_kernel) else {
            file.items.push(Item::Opaque(name));
            return None;
        };
        let end = match self.peek() {
            Token::LeftBrace => self.extern_body(is_kernel),
            _ => self.expect(Token::Semicolon).map(drop),
        };
        function.damaged = self.error_count() > errors;
        file.items.push(Item::Function(Box::new(function)));
        end
    }

    /// `{ … }` after the head of an `extern fn` or `extern kernel`.
    fn extern_body(&mut self, is_kernel: bool) -> Option<()> {
        let message = match is_kernel {
            true => "an `extern kernel` has no body: another module defines it",
            false => "an `extern fn` has no body: another module defines it",
        };
        let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
        self.report(error.hint("put a `;` here, or remove `extern`"));
        self.block().map(drop)
    }

    /// `use "path.grid";`
    fn use_item(&mut self, file: &mut File) -> Option<()> {
        let start = self.bump();
        if self.peek() != Token::String {
            self.expected("the path of a file in quotes");
            return None;
        }
        let path = self.string()?;
        let end = self.expect(Token::Semicolon);
        let span = start.to(end.unwrap_or(path.span));
        if let ExprKind::Str(text) = path.kind {
            file.items.push(Item::Use(Use { path: *text, path_span: path.span, span }));
        }
        end.map(drop)
    }

    /// Skips to the `{` of a body after a head that could not be parsed. False if there is none.
    pub(super) fn skip_to_body(&mut self) -> bool {
        loop {
            match self.peek() {
                Token::LeftBrace => return true,
                Token::LeftParen | Token::LeftBracket => self.skip_delimited(),
                Token::End | Token::Semicolon | Token::RightBrace => return false,
                token if token.starts_item() || token.starts_statement() => return false,
                _ => {
                    self.bump();
                }
            }
        }
    }
}
