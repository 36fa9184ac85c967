//! Checks that each `extern fn` and `extern kernel` has a definition, and that the definition has the declared
//! signature: that of a function where the input shows it, that of a kernel by the records in the linked image.

use std::collections::{HashMap, HashSet};

use super::{InputKind, LinkInput};
use crate::error::{Error, Result};
use gridlet_lang::diagnostics::{Diagnostic, ids};
use gridlet_lang::ir::{Extern, InstKind, Kernel, KernelId, Module, symbol};
use gridlet_lang::source::Span;

/// The `extern fn`s that a module calls, in source order.
pub(crate) fn called(module: &Module) -> Vec<&Extern> {
    let mut is_called = vec![false; module.externs.len()];
    for inst in module.functions.iter().flat_map(|function| &function.instructions) {
        if let InstKind::CallExtern { function, .. } = inst.kind
            && let Some(called) = is_called.get_mut(function.index())
        {
            *called = true;
        }
    }
    let externs = module.externs.iter().zip(is_called);
    externs.filter(|(item, called)| *called && item.span.is_some()).map(|(item, _)| item).collect()
}

/// The `extern kernel`s that a module launches, in source order.
pub(crate) fn launched(module: &Module) -> Vec<(&Kernel, KernelId)> {
    let mut launched = vec![false; module.kernels.len()];
    for inst in module.functions.iter().flat_map(|function| &function.instructions) {
        if let InstKind::Launch(launch) = &inst.kind
            && let Some(launched) = launched.get_mut(launch.kernel.index())
        {
            *launched = true;
        }
    }
    let kernels = (0..).map(KernelId).zip(&module.kernels).zip(launched);
    let kernels = kernels.filter(|((_, kernel), launched)| *launched && kernel.is_extern());
    kernels.map(|((id, kernel), _)| (kernel, id)).collect()
}

/// The names and places of everything that linked modules must define.
fn needed(module: &Module) -> Vec<(&str, Span)> {
    let functions =
        called(module).into_iter().filter_map(|item| Some((item.name.as_str(), item.span?)));
    let kernels =
        launched(module).into_iter().map(|(kernel, _)| (kernel.name.as_str(), kernel.span));
    functions.chain(kernels).collect()
}

/// The error for a device function in place of a kernel.
pub(crate) fn not_a_kernel(kernel: &Kernel) -> Diagnostic {
    undefined(&kernel.name, kernel.span, &[], true)
        .note("a linked module defines a function of that name, which is not a kernel")
}

/// Whether an input is PTX that defines a kernel.
pub(crate) fn defines_entry(input: &LinkInput, symbol: &str) -> bool {
    input.kind == InputKind::Ptx
        && entries(&String::from_utf8_lossy(&input.bytes), false).contains(symbol)
}

/// The kernels that PTX declares (`.extern`) or defines.
fn entries(ptx: &str, is_declared: bool) -> HashSet<&str> {
    let mut all = HashSet::new();
    for (at, directive) in ptx.match_indices(".entry") {
        let line = ptx[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = &ptx[line..at];
        if before.contains("//") || before.contains(".extern") != is_declared {
            continue;
        }
        let name = ptx[at + directive.len()..].trim_start();
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"_$".contains(c));
        all.insert(&name[..end.unwrap_or(name.len())]);
    }
    all
}

/// The error for a function or kernel without a definition. Its notes name the inputs that have no code for
/// the target: GPUs or this machine.
fn undefined(name: &str, span: Span, inputs: &[LinkInput], gpu: bool) -> Diagnostic {
    let message = format!("no linked module defines `{name}`");
    let mut error =
        Diagnostic::error(ids::UNDEFINED_EXTERN, span, message).at_caret("declared here");
    let target = if gpu { "GPUs" } else { "this machine's processor" };
    for input in inputs.iter().filter(|input| input.has_nothing_for(gpu)) {
        error = error.note(format!("{} has no code for {target}", input.name));
    }
    error.hint("link the file that defines it: `--link FILE`")
}

/// The error for a function or kernel whose definition, in a file named with its quotes, differs from its declaration.
pub(crate) fn mismatch(
    name: &str,
    span: Span,
    file: &str,
    declared: &str,
    defined: &str,
) -> Diagnostic {
    let message = format!("the definition of `{name}` in {file} differs from its declaration");
    Diagnostic::error(ids::UNDEFINED_EXTERN, span, message)
        .at_caret("declared here")
        .note(format!("declared: {declared}\ndefined:  {defined}"))
        .hint("make the declaration match the definition")
}

/// Checks the definition of each `extern fn` and `extern kernel` that the PTX of a program leaves unresolved.
///
/// # Errors
/// [`Error::Program`] if no input can define it, or if a PTX input defines a function with another
/// signature.
pub(crate) fn check_ptx(module: &Module, ptx: &str, inputs: &[LinkInput]) -> Result<()> {
    let mut wrong = vec![];
    let texts: Vec<(&str, HashMap<String, String>)> = inputs
        .iter()
        .filter(|input| input.kind == InputKind::Ptx)
        .map(|input| {
            (input.name.as_str(), signatures(&String::from_utf8_lossy(&input.bytes), false))
        })
        .collect();
    let open = signatures(ptx, true);
    for (item, span) in called(module).into_iter().filter_map(|item| Some((item, item.span?))) {
        // Functions defined by linked IR are no longer declarations.
        let Some(declared) = open.get(&item.name) else { continue };
        let found = texts.iter().find_map(|(file, defined)| Some((file, defined.get(&item.name)?)));
        match found {
            Some((file, defined)) if defined != declared => {
                wrong.push(mismatch(&item.name, span, &format!("`{file}`"), declared, defined));
            }
            None if !inputs.iter().any(LinkInput::is_opaque) => {
                wrong.push(undefined(&item.name, span, inputs, true));
            }
            _ => {}
        }
    }
    let open = entries(ptx, true);
    let unseen = || !inputs.iter().any(LinkInput::is_opaque);
    let defines = |symbol: &str| inputs.iter().any(|input| defines_entry(input, symbol));
    for (kernel, _) in launched(module) {
        let symbol = symbol::external(&kernel.name);
        let is_open = open.contains(symbol.as_str());
        if is_open && unseen() && !defines(symbol.as_str()) {
            wrong.push(undefined(&kernel.name, kernel.span, inputs, true));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Program(wrong)) }
}

/// Turns a linker's error about an `extern fn` or `extern kernel` into a diagnostic that names it. `gpu`:
/// whether the link was for GPUs.
pub(crate) fn explain(error: Error, module: &Module, inputs: &[LinkInput], gpu: bool) -> Error {
    let Error::Tool { log, .. } = &error else { return error };
    let words = |what: &str| -> HashSet<&str> {
        let lines = log.lines().filter(|line| line.to_ascii_lowercase().contains(what));
        lines
            .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
            .collect()
    };
    // nvJitLink: "Function 'f' not declared __global__ in all source files".
    let not_kernels = words("not declared __global__");
    let words = words("undefined");
    let wrong: Vec<Diagnostic> = needed(module)
        .into_iter()
        .filter(|(name, _)| words.contains(symbol::external(name).as_str()))
        .map(|(name, span)| undefined(name, span, inputs, gpu))
        .collect();
    let not_kernels = launched(module)
        .into_iter()
        .filter(|(kernel, _)| not_kernels.contains(symbol::external(&kernel.name).as_str()))
        .map(|(kernel, _)| not_a_kernel(kernel));
    let wrong: Vec<Diagnostic> = wrong.into_iter().chain(not_kernels).collect();
    if wrong.is_empty() { error } else { Error::Program(wrong) }
}

/// The signatures of functions in PTX, by name, without parameter names:
/// `(.b32) (.b32, .align 8 .b8[16])`. Covers declarations (`.extern`) or definitions (PTX ISA,
/// "Kernel and Function Directives: .func").
fn signatures(ptx: &str, is_declared: bool) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for (at, _) in ptx.match_indices(".func") {
        let line = ptx[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = &ptx[line..at];
        if before.contains("//") || before.contains(".extern") != is_declared {
            continue;
        }
        let Some((head, is_definition)) = head(&ptx[at + ".func".len()..]) else { continue };
        if !is_declared && !is_definition {
            continue;
        }
        let (result, rest) = match head.strip_prefix('(') {
            Some(rest) => rest.split_once(')').unwrap_or((rest, "")),
            None => ("", head.as_str()),
        };
        let (found, parameters) = rest.trim().split_once('(').unwrap_or((rest.trim(), ""));
        let parameters = parameters.split_once(')').map_or(parameters, |(list, _)| list);
        let signature = || format!("({}) ({})", types(result), types(parameters));
        all.entry(found.trim().to_owned()).or_insert_with(signature);
    }
    all
}

/// The text before the `{` or `;` of a function, and whether a `{` ends it.
fn head(text: &str) -> Option<(String, bool)> {
    let end = text.find(['{', ';'])?;
    let head = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    let head = head.collect::<Vec<_>>().join(" ").trim().to_owned();
    Some((head, text.as_bytes()[end] == b'{'))
}

/// The types of a list of parameters, without their names.
fn types(list: &str) -> String {
    let parameters = list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
    let parameters = parameters.map(|parameter| {
        let mut words: Vec<String> = parameter.split_whitespace().map(str::to_owned).collect();
        let name = words.pop().unwrap_or_default();
        let length = name.find('[').map_or("", |at| &name[at..]).to_owned();
        words.retain(|word| word != ".param" && word != ".noalias");
        words.join(" ") + &length
    });
    parameters.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::signatures;

    #[test]
    fn signatures_are_read_from_ptx() {
        let ptx = "\
.extern .func  (.param .b32 func_retval0) g // a comment
(
\t.param .b32 g_param_0,
\t.param .align 8 .b8 g_param_1[16]
)
;
// .visible .func g()
.visible .func  (.param .b64 func_retval0) g(\t.param .b32 g_param_0)
{ ret; }
.func nothing()
{ ret; }
.visible .func bare
{ ret; }
";
        let found = signatures(ptx, true);
        assert_eq!(found["g"], "(.b32) (.b32, .align 8 .b8[16])");
        assert_eq!(found.len(), 1);
        let found = signatures(ptx, false);
        assert_eq!(found["g"], "(.b64) (.b32)");
        assert_eq!(found["nothing"], "() ()");
        assert_eq!(found["bare"], "() ()");
        assert_eq!(found.len(), 3);
    }
}
