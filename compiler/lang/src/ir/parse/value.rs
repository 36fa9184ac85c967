//! Types and constants.

use super::{Parser, Result};
use crate::ir::Const;
use crate::types::nesting::{MAX_IR_NESTING, MAX_NESTING};
use crate::types::{Scalar, Type};

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Result<Type> {
        self.nested_type(1)
    }

    fn nested_type(&mut self, height: usize) -> Result<Type> {
        if height > MAX_IR_NESTING {
            return Err(self.cursor.expected(&format!("a type of at most {MAX_NESTING} levels")));
        }
        if self.cursor.eat("*") {
            let mutable = self.cursor.eat_word("mut");
            if !mutable && !self.cursor.eat_word("const") {
                return Err(self.cursor.expected("`mut` or `const`"));
            }
            let pointee = Box::new(self.nested_type(height + 1)?);
            return Ok(Type::Pointer { mutable, pointee });
        }
        if self.cursor.eat("[") {
            let element = Box::new(self.nested_type(height + 1)?);
            self.cursor.expect(";")?;
            let count = self.cursor.number("a number of elements")?;
            self.cursor.expect("]")?;
            return Ok(Type::Array(element, count));
        }
        if self.cursor.eat("()") {
            return Ok(Type::Unit);
        }
        let word = self.cursor.peek_word();
        let Some(ty) = self.named_type(word) else { return Err(self.cursor.expected("a type")) };
        self.cursor.eat_word(word);
        Ok(ty)
    }

    fn named_type(&self, word: &str) -> Option<Type> {
        if let Some(scalar) = Scalar::from_name(word) {
            return Some(Type::Scalar(scalar));
        }
        if word == "stream" {
            return Some(Type::Stream);
        }
        if let Some(id) = self.names.structs.get(word) {
            return Some(Type::Struct(*id));
        }
        let (scalar, count) = word.rsplit_once('x')?;
        Some(Type::Vector(Scalar::from_name(scalar)?, count.parse().ok()?))
    }

    /// A literal, or `zero TYPE`.
    pub(super) fn constant(&mut self) -> Result<Const> {
        match self.cursor.peek_word() {
            "true" | "false" => Ok(Const::Bool(self.cursor.literal() == "true")),
            "zero" => {
                self.cursor.eat_word("zero");
                Ok(Const::Zero(self.ty()?))
            }
            _ => {
                self.cursor.rest();
                let mut start = self.cursor.clone();
                number(self.cursor.literal()).ok_or_else(|| start.expected("an operand"))
            }
        }
    }
}

/// A number with its type suffix.
fn number(literal: &str) -> Option<Const> {
    // `bf16` ends in `f16`, so the longest matching name counts.
    let suffixed = Scalar::ALL.into_iter().filter(|scalar| literal.ends_with(scalar.name()));
    let scalar = suffixed.max_by_key(|scalar| scalar.name().len())?;
    let digits = literal.strip_suffix(scalar.name())?;
    if scalar.is_integer() {
        return digits.parse().ok().map(|value| Const::Int(scalar, value));
    }
    let value = match scalar {
        Scalar::F64 => digits.parse().ok()?,
        Scalar::Bool => return None,
        _ => f64::from(digits.parse::<f32>().ok()?),
    };
    Some(Const::Float(scalar, value))
}
