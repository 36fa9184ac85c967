//! Instructions, functions and variables that the logs of NVIDIA's tools quote.

use inkwell::llvm_sys::LLVMOpcode;

use super::check::{Finding, bare, is_approximate};
use super::kernels::name;
use super::library::MOST_PRINTED;
use crate::link::ptxas::quoted_lines;
use crate::nvvm::lacking;
use crate::nvvm::legacy::llvm::{Kind, Module, Value};
use crate::nvvm::legacy::{PREDICATE, PREDICATE_END};
use crate::ptx::culprits;

/// How libNVVM's verifier starts the line that quotes an instruction or a variable.
const CONTEXT: &str = "context:";

/// What libNVVM's verifier refuses: it names a function, sometimes with an instruction, or a variable.
pub(super) fn quoted<'m>(module: Module<'m>, log: &str) -> Vec<Finding<'m>> {
    let between = |start: &str, end: &str| {
        let rest = log.split_once(start)?.1;
        Some(rest.split_once(end)?.0.to_owned())
    };
    let of = ["Function `", "function `"].into_iter().find_map(|start| {
        between(start, "`")
            .or_else(|| between(start, "'"))
            .map(|name| name.split('\'').next().unwrap_or_default().to_owned())
    });
    let variable = ["Global Variable `", "Global Value `"].into_iter();
    let variable = variable.filter_map(|start| between(start, "'")).next();
    let named = |all: Vec<Value<'m>>, wanted: &Option<String>| {
        all.into_iter().find(|one| wanted.as_ref().is_some_and(|wanted| name(*one) == *wanted))
    };
    let function = named(module.functions(), &of);
    let context = log.lines().find_map(|line| line.trim().strip_prefix(CONTEXT)).map(str::trim);
    let Some(at) = context
        .and_then(|text| instruction(module, function, text))
        .or_else(|| named(module.variables(), &variable))
        .or(function)
    else {
        return vec![];
    };
    // Behind the quotation, or behind the name.
    let mut lines = log.lines().rev().map(str::trim);
    let reason = lines.find(|line| !line.is_empty() && !line.starts_with(CONTEXT));
    let reason = reason.unwrap_or_default();
    let reason = reason.rsplit_once("': ").map_or(reason, |(_, reason)| reason);
    let reason = reason.trim_end_matches('.');
    let shown = context.map_or_else(String::new, |text| format!("\n  {text}"));
    let newer = if is_newer(at) { "libNVVM of CUDA 13.5 has it; " } else { "" };
    let message = format!("libNVVM refuses this ({reason}); {newer}{}{shown}", culprits::INSTEAD);
    vec![Finding { at: Some(at), message }]
}

/// Whether it is a call of an intrinsic that a newer libNVVM has.
fn is_newer(at: Value<'_>) -> bool {
    at.kind() == Kind::Instruction
        && at.opcode() == LLVMOpcode::LLVMCall
        && lacking::is_newer(&name(at.callee()), is_approximate(at))
}

/// The instruction with a text, as far as one can tell: tools print it with other numbers of metadata, and those of the legacy dialect
/// with other types.
fn instruction<'m>(
    module: Module<'m>,
    function: Option<Value<'m>>,
    text: &str,
) -> Option<Value<'m>> {
    let functions = function.map_or_else(|| module.functions(), |one| vec![one]);
    let blocks = functions.into_iter().flat_map(Value::blocks);
    let all: Vec<_> = blocks.flat_map(|block| block.instructions()).take(MOST_PRINTED).collect();
    let wanted = bare(text);
    let result = wanted.split_once(" = ").and_then(|(name, _)| name.strip_prefix('%'));
    let is_it = |one: &&Value<'m>| bare(&one.print()) == wanted;
    // The legacy dialect's writer calls `%7` so: `%v7`.
    let number = result.and_then(|result| result.strip_prefix('v'));
    let is_numbered = |one: &Value<'m>| {
        number.is_some_and(|number| one.print().starts_with(&format!("%{number} = ")))
    };
    let has_result =
        |one: &&Value<'m>| result.is_some_and(|wanted| name(**one) == wanted) || is_numbered(one);
    only(all.iter().filter(is_it)).or_else(|| only(all.iter().filter(has_result))).copied()
}

/// The only element. Of several, the one that is refused is not known.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// The calls of inline PTX that a compiler or ptxas refuses: a constraint is in the log, or lines of PTX.
pub(super) fn assembly<'m>(module: Module<'m>, log: &str) -> Vec<Finding<'m>> {
    let lines = quoted_lines(log);
    let behind = |start: &str| Some(log.split_once(start)?.1.split_once('\'')?.0);
    let (constraint, template) = (behind("constraint '"), behind("in inline asm: '"));
    // ptxas then reads to the end.
    let is_open = log.contains("Parsing error near ''");
    if lines.is_empty() && constraint.is_none() && template.is_none() && !is_open {
        return vec![];
    }
    let blocks = module.functions().into_iter().flat_map(Value::blocks);
    let calls = blocks
        .flat_map(|block| block.instructions())
        .filter(|one| one.opcode() == LLVMOpcode::LLVMCall && one.callee().kind() == Kind::Asm);
    let calls: Vec<_> = calls.map(|call| (call, call.callee())).collect();
    let first = |message: String, is_it: &dyn Fn(Value<'m>) -> bool| {
        let of = calls.iter().find(|(_, asm)| is_it(*asm));
        of.map(|(call, _)| Finding { at: Some(*call), message }).into_iter().collect()
    };
    if let Some(template) = template {
        let message =
            format!("this inline PTX names an operand that it does not have:\n  {template}");
        return first(message, &|asm| asm.asm_text() == template);
    }
    if is_open {
        let count = |text: &str, wanted: char| text.chars().filter(|one| *one == wanted).count();
        let message = "the braces of this inline PTX do not match".to_owned();
        return first(message, &|asm| count(&asm.asm_text(), '{') != count(&asm.asm_text(), '}'));
    }
    if let Some(constraint) = constraint {
        let of = calls.iter().filter(|(_, asm)| asm.asm_constraints().contains(constraint));
        let message = format!(
            "PTX has no constraint `{constraint}` of inline assembly; use `h`, `r`, `l`, `q`, `f`, `d`, `n` or `C`, with `=` for results"
        );
        return of
            .take(1)
            .map(|(call, _)| Finding { at: Some(*call), message: message.clone() })
            .collect();
    }
    let finding = |(line, said): (String, Vec<String>)| {
        let is_of = |(_, asm): &&(Value<'m>, Value<'m>)| {
            let code = without_predicates(line.trim());
            asm.asm_text().lines().any(|template| fits(template.trim(), code))
        };
        let mut of = calls.iter().filter(is_of);
        let (call, _) = of.next()?;
        let others = match of.count() {
            0 => "",
            _ => ", or another call with this text",
        };
        let message =
            format!("ptxas refuses this inline PTX{others}: {}\n  {line}", said.join("; "));
        Some(Finding { at: Some(*call), message })
    };
    lines.into_iter().filter_map(finding).collect()
}

/// A line of PTX without the predicates that the legacy dialect's writer makes before it.
fn without_predicates(line: &str) -> &str {
    match line.rsplit_once(PREDICATE_END) {
        Some((before, code)) if before.contains(PREDICATE) => code.trim_end_matches([' ', '}']),
        _ => line,
    }
}

/// Whether a line of PTX comes from a line of a template, in which `$0` and `${0:x}` are operands and `$$` is a dollar.
fn fits(template: &str, line: &str) -> bool {
    if template.is_empty() {
        return false;
    }
    let (mut pieces, mut rest) = (vec![String::new()], template);
    while let Some((before, after)) = rest.split_once('$') {
        let last = pieces.last_mut();
        last.into_iter().for_each(|last| last.push_str(before));
        if let Some(literal) = after.strip_prefix('$') {
            pieces.last_mut().into_iter().for_each(|last| last.push('$'));
            rest = literal;
            continue;
        }
        rest = match after.strip_prefix('{') {
            Some(operand) => operand.split_once('}').map_or("", |(_, rest)| rest),
            None => after.trim_start_matches(|c: char| c.is_ascii_digit()),
        };
        pieces.push(String::new());
    }
    pieces.last_mut().into_iter().for_each(|last| last.push_str(rest));
    let mut left = line;
    for (at, piece) in pieces.iter().enumerate() {
        let piece = piece.as_str();
        let found = match at {
            0 => left.strip_prefix(piece),
            _ => left.split_once(piece).map(|(_, rest)| rest),
        };
        let Some(rest) = found else { return false };
        left = rest;
    }
    pieces.len() > 1 || left.is_empty()
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn templates_fit_the_ptx_that_is_made_of_them() {
        for (template, line, wanted) in [
            ("mov.u32 $0, %laneid;", "mov.u32 %r1, %laneid;", true),
            ("mov.b64 ${0:r}, {$1, $2};", "mov.b64 %rd1, {%r1, %r2};", true),
            ("mov.u32 $0, $$x;", "mov.u32 %r1, $x;", true),
            ("bar.sync 0;", "bar.sync 0;", true),
            ("bar.sync 0;", "bar.sync 0; exit;", false),
            ("mov.u32 $0, %laneid;", "mov.u32 %r1, %warpid;", false),
            ("", "exit;", false),
        ] {
            assert_eq!(fits(template, line), wanted, "{template}");
        }
    }
}
