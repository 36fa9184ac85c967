//! Metadata: annotations, module flags, loops and ranges.

use std::collections::HashMap;

use super::llvm::{Meta, Value};
use super::names::escape;
use super::refusal::{Written, refuse};
use super::writer::Writer;

/// The numbered nodes at the end of the text.
#[derive(Default)]
pub(super) struct Nodes<'m> {
    lines: Vec<String>,
    known: HashMap<Value<'m>, usize>,
}

/// The loop hints with the same meaning in LLVM 7 and LLVM 22 (LLVM 7 Language Reference,
/// "llvm.loop").
const LOOP_HINTS: [&str; 5] = [
    "llvm.loop.unroll.count",
    "llvm.loop.unroll.disable",
    "llvm.loop.unroll.enable",
    "llvm.loop.unroll.full",
    "llvm.loop.unroll.runtime.disable",
];

/// Module flag behaviours that LLVM 7 knows: 1 (error) to 7 (max).
const FLAG_BEHAVIOURS: std::ops::RangeInclusive<i64> = 1..=7;

impl Nodes<'_> {
    /// Adds a node, given as the text after `!n = `, and returns its number.
    pub(super) fn add(&mut self, text: impl Into<String>) -> usize {
        self.lines.push(text.into());
        self.lines.len() - 1
    }

    /// Sets the text of a node that was added before its text was known.
    pub(super) fn set(&mut self, number: usize, text: String) {
        self.lines[number] = text;
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.lines.iter().enumerate().map(|(number, text)| format!("!{number} = {text}"))
    }
}

impl<'m> Writer<'m, '_> {
    /// Writes a node with all its operands.
    pub(super) fn node(&mut self, node: Value<'m>) -> Written<usize> {
        if let Some(&number) = self.nodes.known.get(&node) {
            return Ok(number);
        }
        // Reserve the number first: a node may contain itself.
        let number = self.nodes.add("");
        self.nodes.known.insert(node, number);
        let operands: Vec<String> = node
            .meta_operands()
            .into_iter()
            .map(|operand| self.meta(operand))
            .collect::<Written<_>>()?;
        self.nodes.lines[number] = format!("!{{{}}}", operands.join(", "));
        Ok(number)
    }

    /// An operand of a node.
    pub(super) fn meta(&mut self, operand: Meta<'m>) -> Written<String> {
        Ok(match operand {
            Meta::Null => "null".to_owned(),
            Meta::Text(text) => format!("!\"{}\"", escape(text)),
            Meta::Node(node) => format!("!{}", self.node(node)?),
            Meta::Constant(value) => self.natural_constant(value)?,
        })
    }

    /// The unrolling hints in a branch's `!llvm.loop`. Drops its other operands (`mustprogress`,
    /// vectorisation, source ranges). `None` if nothing is left.
    pub(super) fn loop_hints(&mut self, node: Value<'m>) -> Written<Option<usize>> {
        if let Some(&number) = self.nodes.known.get(&node) {
            return Ok(Some(number));
        }
        let mut hints = Vec::new();
        for operand in node.meta_operands() {
            let Meta::Node(hint) = operand else { continue };
            let operands = hint.meta_operands();
            let Some(Meta::Text(name)) = operands.first() else { continue };
            if hint != node && LOOP_HINTS.iter().any(|known| known.as_bytes() == *name) {
                hints.push(self.node(hint)?);
            }
        }
        if hints.is_empty() {
            return Ok(None);
        }
        let number = self.nodes.add("");
        let hints: Vec<String> = hints.into_iter().map(|hint| format!(", !{hint}")).collect();
        self.nodes.lines[number] = format!("distinct !{{!{number}{}}}", hints.concat());
        self.nodes.known.insert(node, number);
        Ok(Some(number))
    }

    /// A flag of `!llvm.module.flags`, unless LLVM 7 does not know its behaviour or it concerns
    /// debug information.
    pub(super) fn module_flag(&mut self, flag: Value<'m>) -> Written<Option<usize>> {
        let operands = flag.meta_operands();
        let [Meta::Constant(behaviour), Meta::Text(name), _] = operands[..] else {
            return refuse(
                "a module flag does not consist of a behaviour, a name and a value",
                "correct `!llvm.module.flags`",
            );
        };
        let known = behaviour.int().is_some_and(|behaviour| FLAG_BEHAVIOURS.contains(&behaviour));
        if !known || matches!(name, b"Debug Info Version" | b"Dwarf Version") {
            return Ok(None);
        }
        self.node(flag).map(Some)
    }
}
