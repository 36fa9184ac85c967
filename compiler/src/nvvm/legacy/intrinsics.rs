//! LLVM's own intrinsics: those that libNVVM knows, under LLVM 7's names; those that are dropped;
//! and, through `rewrites`, those that become instructions.
//!
//! libNVVM calls an unknown intrinsic as if it were a function of that name, which no linker
//! finds. So every name is looked up here, and unknown ones are refused.

use super::body::{Argument, Body};
use super::constants::is_pointer;
use super::instructions::fast_math;
use super::llvm::{Place, Shape, Value};
use super::refusal::{Written, refuse};
use super::types::mangled;
use crate::nvvm::lacking::libdevice;

/// Intrinsics that libNVVM knows with the same meaning, overloaded on the type of the first
/// argument.
const KNOWN: [&str; 17] = [
    "llvm.bitreverse",
    "llvm.bswap",
    "llvm.ceil",
    "llvm.copysign",
    "llvm.ctlz",
    "llvm.ctpop",
    "llvm.cttz",
    "llvm.expect",
    "llvm.floor",
    "llvm.fma",
    "llvm.fmuladd",
    "llvm.fshl",
    "llvm.fshr",
    "llvm.maxnum",
    "llvm.minnum",
    "llvm.sqrt",
    "llvm.trap",
];

/// Hints and markers that do not affect the program's meaning.
const DROPPED: [&str; 12] = [
    "llvm.dbg.assign",
    "llvm.dbg.declare",
    "llvm.dbg.label",
    "llvm.dbg.value",
    "llvm.donothing",
    "llvm.experimental.noalias.scope.decl",
    "llvm.fake.use",
    "llvm.invariant.end",
    "llvm.invariant.start",
    "llvm.lifetime.end",
    "llvm.lifetime.start",
    "llvm.prefetch",
];

/// Hints that return their first argument.
const FORWARDED: [&str; 6] = [
    "llvm.annotation",
    "llvm.expect.with.probability",
    "llvm.launder.invariant.group",
    "llvm.ptr.annotation",
    "llvm.ssa.copy",
    "llvm.strip.invariant.group",
];

impl<'m> Body<'_, 'm, '_> {
    /// Writes a call of the intrinsic `name`, given without its overload types.
    pub(super) fn intrinsic(&mut self, value: Value<'m>, name: &str) -> Written<()> {
        if DROPPED.contains(&name) {
            return Ok(());
        }
        if FORWARDED.contains(&name) {
            return self.forward(value);
        }
        match name {
            "llvm.assume" => {
                // Only without bundles: LLVM 7 cannot express their assumptions.
                if value.has_bundles() {
                    return Ok(());
                }
                let condition = self.argument(value.operand(0))?;
                let call = self.declared_call(name, "void", &[condition]);
                self.line(call);
                return Ok(());
            }
            "llvm.sideeffect" | "llvm.trap" => {
                let call = self.declared_call(name, "void", &[]);
                self.line(call);
                return Ok(());
            }
            // libNVVM turns this one into a `trap`, which ends the program.
            "llvm.debugtrap" => {
                self.line("call void asm sideeffect \"brkpt;\", \"\"()".to_owned());
                return Ok(());
            }
            "llvm.ubsantrap" => {
                let call = self.declared_call("llvm.trap", "void", &[]);
                self.line(call);
                return Ok(());
            }
            // False is always correct: it only forgoes an optimisation.
            "llvm.is.constant" => {
                self.define(value, "bitcast i1 false to i1");
                return Ok(());
            }
            "llvm.memcpy" | "llvm.memcpy.inline" => return self.copy(value, "llvm.memcpy"),
            "llvm.memmove" => return self.copy(value, "llvm.memmove"),
            "llvm.memset" | "llvm.memset.inline" => return self.copy(value, "llvm.memset"),
            _ => {}
        }
        if value.has_bundles() {
            return refuse("libNVVM ignores operand bundles", "call without them");
        }
        if KNOWN.contains(&name) {
            let name = format!("{name}.{}", mangled(value.operand(0).ty())?);
            // libNVVM takes this one for cheap and computes it anew in each round of a loop, but not the instruction by its own name.
            if name == "llvm.sqrt.f64" && matches!(fast_math(value).trim(), "" | "contract") {
                return self.known(value, "llvm.nvvm.sqrt.rn.d");
            }
            return self.known(value, &name);
        }
        if name.starts_with("llvm.nvvm.") {
            return self.nvvm(value, name);
        }
        if self.rewritten(value, name)? {
            return Ok(());
        }
        if let Some((function, _)) = libdevice(&value.callee().text_name()) {
            return refuse(
                format!("libNVVM has no `{name}`"),
                format!("call `{function}` and link libdevice"),
            );
        }
        refuse(
            format!("this writer cannot express `{name}` in LLVM 7"),
            "use instructions, `llvm.nvvm.*` or inline PTX",
        )
    }

    /// Calls an intrinsic whose arguments and result are the same in LLVM 22.
    pub(super) fn known(&mut self, value: Value<'m>, name: &str) -> Written<()> {
        let mut arguments = Vec::new();
        for argument in value.arguments() {
            arguments.push(self.argument(argument)?);
        }
        let result = self.ty(value.ty())?;
        let call = self.declared_call(name, &result, &arguments);
        let flags = fast_math(value);
        let words = self.call_words(value)?;
        let range = self.metadata(value, "range")?;
        let text = call
            .strip_prefix("call")
            .map(|rest| format!("call{flags}{rest}{words}{range}"))
            .unwrap_or(call);
        self.define(value, &text);
        Ok(())
    }

    /// Returns the first argument.
    pub(super) fn forward(&mut self, value: Value<'m>) -> Written<()> {
        let ty = self.ty(value.ty())?;
        let argument = self.typed(value.operand(0))?;
        if matches!(value.ty().shape(), Shape::Struct | Shape::Array(..)) {
            return refuse(
                "a hint about a whole aggregate has no form in LLVM 7",
                "leave the hint out",
            );
        }
        self.define(value, &format!("bitcast {argument} to {ty}"));
        Ok(())
    }

    /// `memcpy`, `memmove` and `memset`, whose alignments are attributes of their pointers.
    fn copy(&mut self, value: Value<'m>, name: &str) -> Written<()> {
        let arguments = value.arguments();
        let mut name = name.to_owned();
        let mut types = Vec::new();
        let mut texts = Vec::new();
        for (index, &argument) in (0..).zip(&arguments) {
            let Argument { ty, text } = self.argument(argument)?;
            let attributes = self
                .writer
                .attributes
                .parameter(&value.call_attributes(Place::Parameter(index)), false)?;
            let words: String = attributes.words.iter().map(|word| format!(" {word}")).collect();
            texts.push(format!("{ty}{words} {text}"));
            // Overloaded on the pointers and the length, but not on the byte of `memset` and the
            // volatile flag.
            if is_pointer(argument.ty()) || index == 2 {
                name.push_str(&format!(".{}", mangled(argument.ty())?));
            }
            types.push(ty);
        }
        self.writer.declare(&name, "void", &types.join(", "));
        self.line(format!("call void @{name}({})", texts.join(", ")));
        Ok(())
    }
}
