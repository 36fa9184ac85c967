//! The rules for names. Each check gives the first mistake, and its position.

use std::collections::{BTreeMap, BTreeSet};

use super::Draft;
use crate::check::KernelName;
use crate::ir::{Function, Global, Kernel, Module, Parameter, Role, Space, symbol};
use crate::source::Span;
use crate::types::Structs;

type Mistake = (Span, String);

/// The rule for all names.
const NAME_RULE: &str =
    "a name consists of letters, digits and `_`, and does not begin with a digit";

fn is_identifier(name: &str) -> bool {
    let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_word && !name.is_empty() && !name.as_bytes()[0].is_ascii_digit()
}

fn breaks_rule(what: &str, name: &str) -> String {
    format!("{what} cannot be called {name:?}: {NAME_RULE}")
}

/// The first name that comes again.
pub(super) fn twice<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

/// Checks names that the host's tools take, and headers in C.
pub(super) fn of_module(module: &Module) -> Option<Mistake> {
    let kernels = module.kernels.iter();
    let of_kernel = |kernel: &Kernel| wrong_in_kernel(kernel).map(|wrong| (kernel.span, wrong));
    of_structs(&module.structs)
        .or_else(|| kernels.clone().find_map(of_kernel))
        .or_else(|| seen_by_the_host(module))
        .or_else(|| internal_symbols(module))
}

fn of_structs(structs: &Structs) -> Option<Mistake> {
    let mut seen = BTreeSet::new();
    for (_, item) in structs.iter() {
        let fields = || item.fields.iter().map(|field| field.name.as_str());
        let wrong = if !is_identifier(&item.name) {
            Some(breaks_rule("a struct", &item.name))
        } else if !seen.insert(&item.name) {
            Some(format!("two structs are called `{}`; rename one", item.name))
        } else if let Some(wrong) = fields().find(|name| !is_identifier(name)) {
            Some(breaks_rule(&format!("a field of the struct `{}`", item.name), wrong))
        } else {
            let again = twice(fields());
            again
                .map(|name| format!("two fields of the struct `{}` are called `{name}`", item.name))
        };
        if let Some(wrong) = wrong {
            return Some((item.span.unwrap_or(Span::NOWHERE), wrong));
        }
    }
    None
}

fn wrong_in_kernel(kernel: &Kernel) -> Option<String> {
    // Programs of the language that are written as text have instances.
    let parsed = kernel.name.parse::<KernelName>().ok();
    let parsed = parsed.filter(|parsed| parsed.to_string() == kernel.name);
    if !parsed.is_some_and(|parsed| is_identifier(&parsed.kernel)) {
        return Some(breaks_rule("a kernel", &kernel.name));
    }
    wrong_parameter(&kernel.name, &kernel.parameters)
}

fn wrong_parameter(of: &str, parameters: &[Parameter]) -> Option<String> {
    let names = || parameters.iter().map(|parameter| parameter.name.as_str());
    match names().find(|name| !is_identifier(name)) {
        Some(wrong) => Some(breaks_rule(&format!("a parameter of `{of}`"), wrong)),
        None => twice(names()).map(|name| format!("two parameters of `{of}` are called `{name}`")),
    }
}

/// Kernels, and variables in device memory: the host finds them by their names.
fn seen_by_the_host(module: &Module) -> Option<Mistake> {
    let variables = module.globals.iter().filter(|global| global.exported);
    let variables = variables.map(|global| {
        let span = global.variable.as_ref().map_or(Span::NOWHERE, |variable| variable.span);
        ("variable", &global.name, span)
    });
    let kernels = module.kernels.iter().map(|kernel| ("kernel", &kernel.name, kernel.span));
    let mut seen = BTreeMap::new();
    for (what, name, span) in variables.chain(kernels) {
        if symbol::is_reserved(name) {
            return Some((span, reserved(what, name)));
        }
        let wrong = match seen.insert(name, what) {
            None => continue,
            Some(other) if other == what => format!("two {what}s are called `{name}`"),
            Some(other) => format!("a {other} and a {what} are called `{name}`"),
        };
        return Some((span, format!("{wrong}, and the host finds each by its name; rename one")));
    }
    None
}

fn reserved(what: &str, name: &str) -> String {
    let why = "belongs to CUDA, its assembler, C or Gridlet";
    format!("the name `{name}` of a {what} is reserved: it {why}")
}

/// Functions and variables that only the module sees: later stages add others beside them, and functions of other modules that
/// are declared. The builder's have a prefix.
fn internal_symbols(module: &Module) -> Option<Mistake> {
    let functions = module.functions.iter().filter(|function| match function.role {
        Role::Entry(_) => false,
        Role::Device | Role::Body(_) => true,
    });
    let functions = functions.map(|one| ("function", &one.name, one.span));
    let globals = module.globals.iter().filter(|global| !global.exported);
    let globals = globals.map(|global| {
        let span = global.variable.as_ref().map_or(Span::NOWHERE, |variable| variable.span);
        ("variable", &global.name, span)
    });
    let externs = module.externs.iter();
    let mut externs = externs.filter_map(|one| Some(("function", &one.name, one.span?)));
    let is_wrong = |name: &str| symbol::is_reserved(name) || !is_identifier(name);
    if let Some((what, name, span)) = externs.find(|(_, name, _)| is_wrong(name)) {
        let wrong = match is_identifier(name) {
            true => reserved(what, name),
            false => breaks_rule("an extern function", name),
        };
        return Some((span, wrong));
    }
    let mut seen = BTreeMap::new();
    for (what, name, span) in functions.chain(globals) {
        let plain = name.strip_prefix(symbol::OWN).unwrap_or(name);
        let is_free = plain != name || !symbol::is_reserved(name);
        if !is_free || plain.starts_with(symbol::GRIDLET) {
            return Some((span, reserved(what, name)));
        }
        if let Some(other) = seen.insert(symbol::internal(name), name).filter(|one| *one != name) {
            let why = format!("the {what} `{name}` has the symbol of `{other}`; rename one");
            return Some((span, why));
        }
    }
    None
}

/// Checks the names of variables outside functions, which have no position.
pub(super) fn of_variables(globals: &[Global]) -> Option<Mistake> {
    let named = globals.iter().find_map(|global| {
        let name = &global.variable.as_ref()?.name;
        let what = if global.space == Space::Shared { "a shared variable" } else { "a variable" };
        (!is_identifier(name)).then(|| breaks_rule(what, name))
    });
    named.map(|wrong| (Span::NOWHERE, wrong))
}

/// Checks the names of a device function and of its parameters, and those of the local variables of any function.
/// [`of_module`] has those of kernels.
pub(super) fn of_function(name: &str, draft: &Draft, function: &Function) -> Option<Mistake> {
    if let Draft::Function(..) = draft {
        if !is_identifier(name) {
            return Some((function.span, breaks_rule("a function", name)));
        }
        // The geometry comes first.
        let own = function.parameters.get(1..).unwrap_or_default();
        if let Some(wrong) = wrong_parameter(name, own) {
            return Some((function.span, wrong));
        }
    }
    let slot = function.slots.iter().find(|slot| !is_identifier(&slot.name))?;
    let span = slot.variable.as_ref().map_or(function.span, |variable| variable.span);
    Some((span, breaks_rule(&format!("`{name}`: a local variable"), &slot.name)))
}

/// Checks that device functions have different names.
pub(super) fn of_functions(functions: &[Function]) -> Option<Mistake> {
    let mut seen = BTreeSet::new();
    let mut device = functions.iter().filter(|function| function.role == Role::Device);
    let again = device.find(|function| !seen.insert(&function.name))?;
    let name = again.name.strip_prefix(symbol::OWN).unwrap_or(&again.name);
    Some((again.span, format!("two functions are called `{name}`; rename one")))
}

/// Gives shared variables different symbols: those of two kernels may have one name, which may be that of a function, too.
pub(super) fn make_symbols_unique(globals: &mut [Global], functions: &[Function]) {
    let mut taken: BTreeSet<String> =
        functions.iter().map(|function| function.name.clone()).collect();
    for global in globals.iter_mut().filter(|global| global.space == Space::Shared) {
        let mut symbol = global.name.clone();
        let mut number = 2;
        while !taken.insert(symbol.clone()) {
            symbol = format!("{}.{number}", global.name);
            number += 1;
        }
        global.name = symbol;
    }
}
