//! Calls of functions, through pointers, and of assembly. `intrinsics` handles intrinsics.

use inkwell::llvm_sys::LLVMCallConv;

use super::body::Body;
use super::functions::{Signature, is_known_convention};
use super::instructions::fast_math;
use super::llvm::{Kind, Place, Shape, Value};
use super::names::escape;
use super::refusal::{Written, refuse};
use crate::codegen::TRAP;
use crate::nvvm::is_renamed;

impl<'m> Body<'_, 'm, '_> {
    pub(super) fn call(&mut self, value: Value<'m>) -> Written<()> {
        let callee = value.callee();
        if callee.kind() == Kind::Function
            && let Some(intrinsic) = callee.intrinsic()
        {
            return self.intrinsic(value, &intrinsic);
        }
        let name = callee.text_name();
        if callee.kind() == Kind::Function && name.starts_with("llvm.") && !is_renamed(&name) {
            // libNVVM calls it as if it were a function of that name.
            return refuse(
                format!("LLVM has no intrinsic `{name}`"),
                "correct the name, or use inline PTX",
            );
        }
        if value.has_bundles() {
            return refuse("libNVVM ignores operand bundles", "call without them");
        }
        if value.must_tail() {
            return refuse(
                "PTX cannot guarantee that a call uses no stack (`musttail`)",
                "use `tail call`, or a loop",
            );
        }
        if callee.kind() == Kind::Asm {
            return self.asm(value, callee);
        }
        // Kernels are launched, not called; the errors of libNVVM and PTX say so less clearly.
        if value.call_convention() == LLVMCallConv::LLVMPTXKernelCallConv as u32 {
            return refuse(
                "a kernel cannot be called",
                "launch it, or move its body into a function of its own",
            );
        }
        if !is_known_convention(value.call_convention()) {
            return refuse("NVPTX does not have this calling convention", "use `ccc` or `fastcc`");
        }
        if callee.kind() == Kind::Function && callee.value_type() == value.call_type() {
            let signature = self.writer.signature(callee)?;
            if self.passes_as(value, &signature)? {
                let name = self.writer.global_name(callee);
                return self.call_of(value, &name, &signature);
            }
        }
        self.indirect(value, callee)
    }

    /// Whether a call copies (`byval`) exactly the arguments that the function declares as copied.
    fn passes_as(&mut self, value: Value<'m>, signature: &Signature) -> Written<bool> {
        for (index, slot) in (0..).zip(&signature.parameters) {
            let attributes = self
                .writer
                .attributes
                .parameter(&value.call_attributes(Place::Parameter(index)), false)?;
            if attributes.byval.is_some() != slot.words.iter().any(|word| word == "byval") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A call of `name` with the parameter types of `signature`.
    fn call_of(&mut self, value: Value<'m>, name: &str, signature: &Signature) -> Written<()> {
        let mut arguments = Vec::new();
        for ((index, argument), slot) in (0..).zip(value.arguments()).zip(&signature.parameters) {
            let attributes = self
                .writer
                .attributes
                .parameter(&value.call_attributes(Place::Parameter(index)), false)?;
            let typed = match &slot.pointee {
                Some(pointee) => self.pointer_argument(argument, pointee)?,
                None => self.argument(argument)?,
            };
            let words: String = attributes.words.iter().map(|word| format!(" {word}")).collect();
            arguments.push(format!("{}{words} {}", typed.ty, typed.text));
        }
        let result =
            self.writer.attributes.parameter(&value.call_attributes(Place::Result), false)?.words;
        let result: String = result
            .iter()
            .filter(|word| word.ends_with("ext"))
            .map(|word| format!("{word} "))
            .collect();
        let words = self.call_words(value)?;
        let flags = fast_math(value);
        let text = format!(
            "call{flags} {result}{} {name}({}){words}",
            signature.result.text,
            arguments.join(", ")
        );
        let Some(pointee) = &signature.result.pointee else {
            self.define(value, &text);
            return Ok(());
        };
        // A hinted result is an `i8*` in all its uses.
        let given = self.writer.types.pointer(value.ty(), pointee)?;
        let erased = self.ty(value.ty())?;
        let result = self.step(value, "result", &text);
        self.define(value, &format!("bitcast {given} {result} to {erased}"));
        Ok(())
    }

    /// The words after a call's arguments: properties of this call alone.
    pub(super) fn call_words(&mut self, value: Value<'m>) -> Written<String> {
        let words = self
            .writer
            .attributes
            .function_words(&value.call_attributes(Place::Function), false)?;
        let kept = ["cold", "convergent", "noduplicate", "noinline", "noreturn", "nounwind"];
        Ok(words
            .iter()
            .filter(|word| kept.contains(&word.as_str()))
            .map(|word| format!(" {word}"))
            .collect())
    }

    /// What a call of assembly does with memory: libNVVM cannot find that out.
    fn memory_words(&mut self, value: Value<'m>) -> Written<String> {
        let attributes = value.call_attributes(Place::Function);
        let words = self.writer.attributes.function_words(&attributes, true)?;
        let kept = [
            "argmemonly",
            "inaccessiblememonly",
            "inaccessiblemem_or_argmemonly",
            "readnone",
            "readonly",
        ];
        Ok(words
            .iter()
            .filter(|word| kept.contains(&word.as_str()))
            .map(|word| format!(" {word}"))
            .collect())
    }

    /// A call through a pointer, or of a function with a mismatched type.
    fn indirect(&mut self, value: Value<'m>, callee: Value<'m>) -> Written<()> {
        let signature = self.writer.call_signature(value)?;
        let pointer = self.pointer_argument(callee, &signature.pointee())?;
        self.call_of(value, &pointer.text, &signature)
    }

    fn asm(&mut self, value: Value<'m>, asm: Value<'m>) -> Written<()> {
        if let Some(word) = asm.asm_foreign() {
            return refuse(format!("PTX assembly cannot be `{word}`"), "remove the word");
        }
        let constraints = asm.asm_constraints();
        if constraints.contains('*') {
            return refuse(
                "an indirect operand (`*`) has no type in LLVM 7",
                "pass the pointer with `l` and use `[$n]`",
            );
        }
        let effects = if asm.asm_has_side_effects() { " sideeffect" } else { "" };
        let (mut text, mut parts) =
            (asm.asm_text(), constraints.split(',').map(str::to_owned).collect::<Vec<_>>());
        let results = parts.iter().filter(|part| part.starts_with('=')).count();
        let mut arguments = Vec::new();
        for (at, argument) in (results..).zip(value.arguments()) {
            let mut typed = self.typed(argument)?;
            // LLVM 7 passes no predicates to assembly.
            if let Some(part) = parts.get_mut(at).filter(|part| *part == "b")
                && argument.ty().shape() == Shape::Int(1)
            {
                typed = format!("i32 {}", self.step(value, "bit", &format!("zext {typed} to i32")));
                "r".clone_into(part);
                text = with_predicate(&text, at);
            }
            arguments.push(typed);
        }
        let constraints = parts.join(",");
        let result = self.ty(value.ty())?;
        let mut words = self.call_words(value)? + &self.memory_words(value)?;
        if text == TRAP {
            // It has no arguments. LLVM 7 takes a call that only accesses memory of its arguments for one that returns, so that loads behind it
            // can come before a loop. It keeps the call, which writes memory, and code behind it cannot make it disappear.
            words = words.replace("inaccessiblememonly", "argmemonly");
        }
        let (text, constraints) = (escape(text.as_bytes()), escape(constraints.as_bytes()));
        self.define(
            value,
            &format!(
                "call {result} asm{effects} \"{text}\", \"{constraints}\"({}){words}",
                arguments.join(", ")
            ),
        );
        Ok(())
    }
}

/// How the registers begin that stand for predicates, and how the instruction ends that sets one.
pub(crate) const PREDICATE: &str = "gridlet_p";
pub(crate) const PREDICATE_END: &str = ", 0; ";

/// Assembly that makes a predicate of an operand, and uses it in the operand's place.
fn with_predicate(text: &str, operand: usize) -> String {
    let register = format!("{PREDICATE}{operand}");
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        let (is_braced, name) = match after.strip_prefix('{') {
            Some(inner) => (true, inner),
            None => (false, after),
        };
        let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let end = if is_braced {
            name[digits..].find('}').map(|end| digits + end + 1)
        } else {
            Some(digits)
        };
        if name[..digits].parse() == Ok(operand)
            && let Some(end) = end
        {
            made.push_str(&register);
            rest = &name[end..];
        } else {
            // A literal dollar is two.
            let kept = usize::from(after.starts_with('$'));
            made.push('$');
            made.push_str(&after[..kept]);
            rest = &after[kept..];
        }
    }
    made.push_str(rest);
    format!("{{ .reg .pred {register}; setp.ne.u32 {register}, ${operand}{PREDICATE_END}{made} }}")
}

#[cfg(test)]
mod tests {
    use super::with_predicate;

    #[test]
    fn predicates_take_the_place_of_their_operand() {
        let text = with_predicate("@$1 st.u32 [${0:x}], $$1, $10; @${1} bra;", 1);
        let wanted = "{ .reg .pred gridlet_p1; setp.ne.u32 gridlet_p1, $1, 0; @gridlet_p1 st.u32 [${0:x}], $$1, $10; @gridlet_p1 bra; }";
        assert_eq!(text, wanted);
    }
}
