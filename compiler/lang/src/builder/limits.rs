//! What the language excludes, and the rules of the IR do not. Each check gives the first mistake, and its position.

use crate::builtins::{Access, Memory};
use crate::extents;
use crate::ir::{Function, Global, InstKind, LaunchBounds, Module, Operand, Space};
use crate::source::Span;
use crate::types::{Scalar, Type};

type Mistake = (Span, String);

/// The checks of a sound module.
pub(super) fn of_module(module: &Module) -> Option<Mistake> {
    launch_bounds(module)
        .or_else(|| empty_arrays(module))
        .or_else(|| external_types(module))
        .or_else(|| written_constants(module))
}

fn launch_bounds(module: &Module) -> Option<Mistake> {
    let most = extents::MAX_BLOCK_THREADS;
    let is_wrong = |bounds: LaunchBounds| {
        let is_possible = (1..=most).contains(&bounds.max_threads)
            && (1..=extents::MAX_MIN_BLOCKS).contains(&bounds.min_blocks.unwrap_or(1));
        !is_possible
    };
    let kernel = module.kernels.iter().find(|one| one.launch_bounds.is_some_and(is_wrong))?;
    let blocks = extents::MAX_MIN_BLOCKS;
    let why = format!("`max_threads` is 1 to {most}, and `min_blocks` 1 to {blocks}");
    Some((kernel.span, format!("`{}`: `launch_bounds`: {why}", kernel.name)))
}

/// Arrays without elements have no bytes, which PTX cannot pass.
fn empty_arrays(module: &Module) -> Option<Mistake> {
    let wrong = |span, what: &str, name: &str| {
        let message =
            format!("{what} `{name}` has an array of 0 elements in its type; the least is 1");
        Some((span, message))
    };
    for (_, item) in module.structs.iter() {
        if item.fields.iter().any(|field| has_empty_array(&field.ty)) {
            return wrong(item.span.unwrap_or(Span::NOWHERE), "the struct", &item.name);
        }
    }
    if let Some(global) = module.globals.iter().find(|global| has_empty_array(&global.ty)) {
        return wrong(declared(global), "the variable", shown(global));
    }
    for item in &module.externs {
        if item.parameters.iter().chain([&item.result]).any(has_empty_array) {
            return wrong(item.span.unwrap_or(Span::NOWHERE), "the function", &item.name);
        }
    }
    for kernel in &module.kernels {
        let empty = kernel.parameters.iter().find(|parameter| has_empty_array(&parameter.ty));
        if let Some(parameter) = empty {
            return wrong(kernel.span, "the parameter", &parameter.name);
        }
    }
    module.functions.iter().find_map(|function| in_function(function, wrong))
}

fn in_function(
    function: &Function,
    wrong: impl Fn(Span, &str, &str) -> Option<Mistake>,
) -> Option<Mistake> {
    let parameter = function.parameters.iter().find(|one| has_empty_array(&one.ty));
    if let Some(parameter) = parameter {
        return wrong(function.span, "the parameter", &parameter.name);
    }
    if has_empty_array(&function.result) {
        return wrong(function.span, "the result of", super::shown_name(&function.name));
    }
    if let Some(slot) = function.slots.iter().find(|slot| has_empty_array(&slot.ty)) {
        let span = slot.variable.as_ref().map_or(function.span, |variable| variable.span);
        return wrong(span, "the local variable", &slot.name);
    }
    let value = function.instructions.iter().find(|inst| has_empty_array(&inst.ty))?;
    wrong(value.span, "a value in", super::shown_name(&function.name))
}

/// Types that C lacks, or that compilers pass in different ways.
fn external_types(module: &Module) -> Option<Mistake> {
    let is_wrong =
        |ty: &Type| matches!(ty, Type::Array(..) | Type::Scalar(Scalar::F16 | Scalar::Bf16));
    let item = module
        .externs
        .iter()
        .find(|item| item.parameters.iter().chain([&item.result]).any(is_wrong))?;
    let ty = item.parameters.iter().chain([&item.result]).find(|ty| is_wrong(ty))?;
    let shown = ty.display(&module.structs);
    let message = format!(
        "the extern function `{}` cannot take or give a `{shown}`; pass a pointer to it, or a struct that contains it",
        item.name
    );
    Some((item.span.unwrap_or(Span::NOWHERE), message))
}

/// Whether a type is, points to or consists of arrays without elements; structs aside.
fn has_empty_array(mut ty: &Type) -> bool {
    while let Type::Array(inner, _) | Type::Pointer { pointee: inner, .. } = ty {
        if matches!(ty, Type::Array(_, 0)) {
            return true;
        }
        ty = inner;
    }
    false
}

/// Writes that certainly go to constant memory.
fn written_constants(module: &Module) -> Option<Mistake> {
    if module.globals.iter().all(|global| global.space != Space::Constant) {
        return None;
    }
    for function in &module.functions {
        for inst in &function.instructions {
            let pointer = match &inst.kind {
                InstKind::Store { pointer, .. } => Some(pointer),
                InstKind::Builtin { builtin, arguments, .. } => match builtin.properties().memory {
                    Memory::Atomic(Access::Store | Access::Update) => arguments.first(),
                    _ => None,
                },
                _ => None,
            };
            let Some(global) = pointer.and_then(|pointer| constant(module, function, pointer))
            else {
                continue;
            };
            let name = shown(global);
            let why =
                format!("`{name}` is `constant`, and nothing can write to it; make it `device`");
            return Some((inst.span, format!("`{}`: {why}", super::shown_name(&function.name))));
        }
    }
    None
}

/// The most addresses between an access and the variable, so that a long chain takes no time for each access.
const MAX_CHAIN: usize = 64;

/// The constant variable that a pointer certainly points into.
fn constant<'m>(module: &'m Module, function: &Function, pointer: &Operand) -> Option<&'m Global> {
    let mut at = pointer;
    for _ in 0..MAX_CHAIN {
        at = match at {
            Operand::Global(id) => {
                let global = &module.globals[id.index()];
                return (global.space == Space::Constant).then_some(global);
            }
            Operand::Inst(id) => match &function.instructions[id.index()].kind {
                InstKind::FieldAddress { base, .. }
                | InstKind::ElementAddress { base, .. }
                | InstKind::ByteOffset { base, .. }
                | InstKind::Cast(base) => base,
                _ => return None,
            },
            _ => return None,
        };
    }
    None
}

fn declared(global: &Global) -> Span {
    global.variable.as_ref().map_or(Span::NOWHERE, |variable| variable.span)
}

fn shown(global: &Global) -> &str {
    global.variable.as_ref().map_or(&global.name, |variable| &variable.name)
}
