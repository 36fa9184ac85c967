//! Function bodies: the lines, the names of values, and the casts that typed pointers need.
//!
//! A `ptr` of LLVM 22 is an `i8*` in the text, unless its definition has a type: an `alloca`, a
//! `getelementptr` and a `byval` or hinted parameter are pointers to their own type. Such a value
//! `%p` has a second name, `%p.i8`, for the same address as `i8*`; the line that defines it is left
//! out if unused. Where a use needs another pointee, `%p.cast` is defined before it, once per
//! block.

use std::collections::{HashMap, HashSet};
use std::fmt;

use inkwell::llvm_sys::LLVMOpcode as Op;

use crate::error::Result;

use super::constants::{constant_index, is_pointer};
use super::functions::{Signature, at_function};
use super::lines::Subprogram;
use super::llvm::{Block, Shape, Type, Value};
use super::names::{Names, label, spell};
use super::refusal::{Written, refuse};
use super::types::ERASED;
use super::writer::Writer;

/// LLVM 7's function for the description of a variable.
const DECLARE: &str = "llvm.dbg.declare";

/// One line of a body.
struct Line {
    text: String,
    /// The name it defines, if the line may be omitted when the name is unused.
    optional: Option<String>,
}

/// A call argument.
pub(super) struct Argument {
    pub(super) ty: String,
    pub(super) text: String,
}

impl Argument {
    pub(super) fn new(ty: impl Into<String>, text: impl Into<String>) -> Self {
        Argument { ty: ty.into(), text: text.into() }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ty, self.text)
    }
}

/// A named value of the function.
struct Local {
    name: String,
    typed: Option<Typed>,
}

/// A pointer whose definition has a type.
#[derive(Clone)]
struct Typed {
    pointee: String,
    /// Its name as `i8*`.
    erased: String,
}

/// The state of writing one function.
pub(super) struct Body<'w, 'm, 'o> {
    pub(super) writer: &'w mut Writer<'m, 'o>,
    names: Names,
    locals: HashMap<Value<'m>, Local>,
    blocks: HashMap<Block<'m>, String>,
    lines: Vec<Line>,
    used: HashSet<String>,
    /// The casts already defined in the current block.
    casts: HashMap<(Value<'m>, String), String>,
    /// The pointee of the function's result, if that is not `i8`.
    pub(super) result_pointee: Option<String>,
}

impl<'w, 'm, 'o> Body<'w, 'm, 'o> {
    /// Names every value in `function`.
    pub(super) fn new(
        writer: &'w mut Writer<'m, 'o>,
        function: Value<'m>,
        signature: &Signature,
    ) -> Result<Body<'w, 'm, 'o>> {
        let mut body = Body {
            writer,
            names: Names::default(),
            locals: HashMap::new(),
            blocks: HashMap::new(),
            lines: Vec::new(),
            used: HashSet::new(),
            casts: HashMap::new(),
            result_pointee: signature.result.pointee.clone(),
        };
        let parameters = function.parameters();
        let blocks = function.blocks();
        let values = parameters.iter().copied().chain(
            blocks
                .iter()
                .flat_map(|block| std::iter::once(block.as_value()).chain(block.instructions())),
        );
        values.filter_map(Value::name).for_each(|name| body.names.take(&name));

        // An unnamed value gets a letter followed by the number that LLVM 22 prints for it.
        let mut number = 0;
        for (parameter, slot) in parameters.into_iter().zip(&signature.parameters) {
            body.name_local(parameter, 'p', &mut number, slot.pointee.clone());
        }
        for block in blocks {
            let name = body.own_name(block.as_value(), 'b', &mut number);
            body.blocks.insert(block, name);
            for instruction in block.instructions() {
                if instruction.ty().shape() == Shape::Void {
                    continue;
                }
                let pointee = body
                    .defined_pointee(instruction)
                    .map_err(|refusal| at_function(refusal, function, &instruction.print()))?;
                body.name_local(
                    instruction,
                    'v',
                    &mut number,
                    pointee.filter(|pointee| pointee != ERASED),
                );
            }
        }
        Ok(body)
    }

    fn own_name(&mut self, value: Value<'m>, letter: char, number: &mut u32) -> String {
        match value.name() {
            Some(name) => spell('%', &name),
            None => {
                let name = self.names.fresh(&format!("{letter}{number}"));
                *number += 1;
                spell('%', name.as_bytes())
            }
        }
    }

    fn name_local(
        &mut self,
        value: Value<'m>,
        letter: char,
        number: &mut u32,
        pointee: Option<String>,
    ) {
        let name = self.own_name(value, letter, number);
        let typed =
            pointee.map(|pointee| Typed { pointee, erased: self.fresh_after(&name, ERASED) });
        self.locals.insert(value, Local { name, typed });
    }

    /// The pointee type that an instruction's definition implies.
    fn defined_pointee(&mut self, instruction: Value<'m>) -> Written<Option<String>> {
        Ok(match instruction.opcode() {
            Op::LLVMAlloca => Some(self.writer.types.text(instruction.allocated())?),
            Op::LLVMGetElementPtr => {
                let steps: Vec<Option<u64>> =
                    instruction.operands().into_iter().skip(2).map(constant_index).collect();
                Some(self.writer.types.indexed(instruction.gep_source(), &steps)?)
            }
            _ => None,
        })
    }

    /// Writes the lines between the braces.
    pub(super) fn write(
        mut self,
        function: Value<'m>,
        subprogram: Option<Subprogram>,
    ) -> Result<Vec<String>> {
        for (index, block) in function.blocks().into_iter().enumerate() {
            self.casts.clear();
            let name = self.block(block);
            if index > 0 {
                self.lines.push(Line { text: String::new(), optional: None });
            }
            self.lines.push(Line { text: label(&name), optional: None });
            if index == 0 {
                for parameter in function.parameters() {
                    self.erase(parameter)
                        .map_err(|refusal| at_function(refusal, function, &parameter.print()))?;
                }
            }
            for instruction in block.instructions() {
                self.declare_variables(instruction)
                    .map_err(|refusal| at_function(refusal, function, &instruction.print()))?;
                let first = self.lines.len();
                self.instruction(instruction)
                    .map_err(|refusal| at_function(refusal, function, &instruction.print()))?;
                let position = subprogram.and_then(|own| self.writer.position(instruction, own));
                if let Some(position) = position {
                    // Labels are not indented. A `switch` takes several lines, and ends with a bracket.
                    let ends = |line: &&mut Line| {
                        let text = &line.text;
                        text.starts_with(' ') && !text.starts_with("    ") && !text.ends_with('[')
                    };
                    for line in self.lines.iter_mut().skip(first).filter(ends) {
                        line.text += &format!(", !dbg !{position}");
                    }
                }
            }
        }
        let Body { lines, used, .. } = self;
        let needed = |line: &Line| line.optional.as_ref().is_none_or(|name| used.contains(name));
        Ok(lines.into_iter().filter(needed).map(|line| line.text).collect())
    }

    /// Writes which variables begin before an instruction, and where they are.
    fn declare_variables(&mut self, instruction: Value<'m>) -> Written<()> {
        for (value, description) in self.writer.declared_before(instruction) {
            let value = self.any(value)?;
            self.writer.declare(DECLARE, "void", "metadata, metadata, metadata");
            self.line(format!("call void @{DECLARE}(metadata {value}, {description}"));
        }
        Ok(())
    }

    /// The name of a value that the function defines.
    pub(super) fn name(&self, value: Value<'m>) -> String {
        self.locals.get(&value).map(|local| local.name.clone()).unwrap_or_default()
    }

    /// The name of a block.
    pub(super) fn block(&self, block: Block<'m>) -> String {
        self.blocks.get(&block).cloned().unwrap_or_default()
    }

    /// A free name derived from another: `%p` and `cast` give `%p.cast`.
    pub(super) fn fresh_after(&mut self, name: &str, suffix: &str) -> String {
        let base = name.trim_start_matches(['%', '@']).trim_matches('"');
        let base = if base.is_empty() { suffix.to_owned() } else { format!("{base}.{suffix}") };
        spell('%', self.names.fresh(&base).as_bytes())
    }

    /// Writes a line.
    pub(super) fn line(&mut self, text: String) {
        self.lines.push(Line { text: format!("  {text}"), optional: None });
    }

    /// Writes the line that defines `value` under its own name.
    pub(super) fn define(&mut self, value: Value<'m>, text: &str) {
        let name = self.name(value);
        if name.is_empty() {
            self.line(text.to_owned());
        } else {
            self.line(format!("{name} = {text}"));
        }
    }

    /// Writes a line for a value that exists only in the text, named after `owner`, and returns its
    /// name.
    pub(super) fn step(&mut self, owner: Value<'m>, suffix: &str, text: &str) -> String {
        let owner = self.name(owner);
        let name = self.fresh_after(&owner, suffix);
        self.line(format!("{name} = {text}"));
        name
    }

    /// Defines the `i8*` form of a typed pointer whose definition was just written.
    pub(super) fn erase(&mut self, value: Value<'m>) -> Written<()> {
        let Some(Local { name, typed: Some(typed) }) = self.locals.get(&value) else {
            return Ok(());
        };
        let (name, typed) = (name.clone(), typed.clone());
        let from = self.writer.types.pointer(value.ty(), &typed.pointee)?;
        let to = self.writer.types.pointer(value.ty(), ERASED)?;
        let text = format!("  {} = bitcast {from} {name} to {to}", typed.erased);
        self.lines.push(Line { text, optional: Some(typed.erased) });
        Ok(())
    }

    /// A value without its type; pointers as `i8*`.
    pub(super) fn operand(&mut self, value: Value<'m>) -> Written<String> {
        if value.is_constant() {
            return self.writer.constant(value);
        }
        Ok(match self.locals.get(&value) {
            Some(Local { typed: Some(typed), .. }) => {
                self.used.insert(typed.erased.clone());
                typed.erased.clone()
            }
            Some(local) => local.name.clone(),
            None => {
                return refuse(
                    "an operand is neither a constant nor a value of this function",
                    "use values",
                );
            }
        })
    }

    /// A value preceded by its type; pointers as `i8*`.
    pub(super) fn typed(&mut self, value: Value<'m>) -> Written<String> {
        Ok(format!("{} {}", self.ty(value.ty())?, self.operand(value)?))
    }

    /// A type; pointers as `i8*`.
    pub(super) fn ty(&mut self, ty: Type<'m>) -> Written<String> {
        self.writer.types.text(ty)
    }

    /// A pointer preceded by its type, cast to `pointee` if necessary.
    pub(super) fn pointer(&mut self, value: Value<'m>, pointee: &str) -> Written<String> {
        Ok(self.pointer_argument(value, pointee)?.to_string())
    }

    /// The same, with the type separate.
    pub(super) fn pointer_argument(
        &mut self,
        value: Value<'m>,
        pointee: &str,
    ) -> Written<Argument> {
        let wanted = self.writer.types.pointer(value.ty(), pointee)?;
        if value.is_constant() {
            return Ok(Argument::new(wanted, self.writer.pointer_constant(value, pointee)?));
        }
        if pointee == ERASED {
            return Ok(Argument::new(wanted, self.operand(value)?));
        }
        let (name, from) = self.natural(value)?;
        if from == wanted {
            return Ok(Argument::new(wanted, name));
        }
        let key = (value, pointee.to_owned());
        if let Some(cast) = self.casts.get(&key) {
            return Ok(Argument::new(wanted, cast.clone()));
        }
        let cast = self.fresh_after(&name, "cast");
        self.line(format!("{cast} = bitcast {from} {name} to {wanted}"));
        self.casts.insert(key, cast.clone());
        Ok(Argument::new(wanted, cast))
    }

    /// A value with its type separate; pointers as `i8*`.
    pub(super) fn argument(&mut self, value: Value<'m>) -> Written<Argument> {
        Ok(Argument::new(self.ty(value.ty())?, self.operand(value)?))
    }

    /// Calls a function and declares it.
    pub(super) fn declared_call(
        &mut self,
        name: &str,
        result: &str,
        arguments: &[Argument],
    ) -> String {
        let types: Vec<&str> = arguments.iter().map(|argument| argument.ty.as_str()).collect();
        self.writer.declare(name, result, &types.join(", "));
        let arguments: Vec<String> = arguments.iter().map(Argument::to_string).collect();
        format!("call {result} @{name}({})", arguments.join(", "))
    }

    /// A value preceded by its type; a pointer has its definition's type.
    pub(super) fn any(&mut self, value: Value<'m>) -> Written<String> {
        if !is_pointer(value.ty()) {
            return self.typed(value);
        }
        if value.is_constant() {
            return self.writer.natural_constant(value);
        }
        let (name, ty) = self.natural(value)?;
        Ok(format!("{ty} {name}"))
    }

    /// A local pointer's name and type, as its definition made them.
    fn natural(&mut self, value: Value<'m>) -> Written<(String, String)> {
        match self.locals.get(&value) {
            Some(Local { name, typed: Some(typed) }) => {
                let (name, pointee) = (name.clone(), typed.pointee.clone());
                Ok((name, self.writer.types.pointer(value.ty(), &pointee)?))
            }
            _ => Ok((self.operand(value)?, self.ty(value.ty())?)),
        }
    }
}
