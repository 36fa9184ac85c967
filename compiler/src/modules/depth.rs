//! How deep a module's types nest: everything behind this check recurses over types.

use std::collections::HashMap;

use inkwell::llvm_sys::LLVMOpcode;

use super::check::Finding;
use super::kernels::name;
use crate::inputs::MAX_NESTING;
use crate::nvvm::legacy::llvm::{Attribute, Module, Place, Shape, Type, Value};

/// The first function or variable with a type that nests too deep. Text with too many brackets is refused before LLVM reads it;
/// this is for named types, for bitcode, and for modules that were built through inkwell.
pub(super) fn check(module: Module<'_>) -> Option<Finding<'_>> {
    let mut depths = Depths::default();
    let too_deep = |at, what: &str| Finding {
        at: Some(at),
        message: format!(
            "{what} `{}` has a type that nests more than {MAX_NESTING} deep; write types that nest less",
            name(at)
        ),
    };
    for variable in module.variables() {
        if depths.of(variable.value_type()) > MAX_NESTING {
            return Some(too_deep(variable, "the variable"));
        }
    }
    for function in module.functions() {
        let mut parts = types(function).into_iter().chain(
            function
                .blocks()
                .into_iter()
                .flat_map(|block| block.instructions())
                .flat_map(instruction_types),
        );
        if parts.any(|ty| depths.of(ty) > MAX_NESTING) {
            return Some(too_deep(function, "the function"));
        }
    }
    None
}

/// Whether a type nests too deep.
pub(super) fn is_too_deep(ty: Type<'_>) -> bool {
    Depths::default().of(ty) > MAX_NESTING
}

/// The types of a function's parameters and result.
fn types(function: Value<'_>) -> Vec<Type<'_>> {
    let whole = function.value_type();
    let mut all = whole.parameters();
    for at in (0..).take(all.len()) {
        let attributes = function.attributes(Place::Parameter(at)).into_iter();
        all.extend(attributes.filter_map(|attribute| match attribute {
            Attribute::Type(_, ty) => Some(ty),
            _ => None,
        }));
    }
    all.push(whole.result());
    all
}

/// The types that an instruction names.
fn instruction_types(instruction: Value<'_>) -> Vec<Type<'_>> {
    let constants = instruction.operands().into_iter().filter(|operand| operand.is_constant());
    let mut all: Vec<_> = constants.map(Value::ty).collect();
    all.push(instruction.ty());
    match instruction.opcode() {
        LLVMOpcode::LLVMAlloca => all.push(instruction.allocated()),
        LLVMOpcode::LLVMGetElementPtr => all.push(instruction.gep_source()),
        _ => {}
    }
    all
}

/// The depths that are known.
#[derive(Default)]
struct Depths<'m>(HashMap<Type<'m>, usize>);

impl<'m> Depths<'m> {
    /// The number of types inside each other. A list rather than recursion.
    fn of(&mut self, ty: Type<'m>) -> usize {
        let mut open = vec![(ty, None)];
        while let Some((ty, parts)) = open.pop() {
            let Some(parts) = parts else {
                if !self.0.contains_key(&ty) {
                    let parts = parts_of(ty);
                    open.push((ty, Some(parts.clone())));
                    open.extend(parts.into_iter().map(|part| (part, None)));
                }
                continue;
            };
            let deepest = parts.iter().filter_map(|part| self.0.get(part)).max();
            self.0.insert(ty, 1 + deepest.copied().unwrap_or_default());
        }
        self.0.get(&ty).copied().unwrap_or_default()
    }
}

fn parts_of(ty: Type<'_>) -> Vec<Type<'_>> {
    match ty.shape() {
        Shape::Struct if !ty.is_opaque() => ty.fields(),
        Shape::Array(element, _) | Shape::Vector(element, _) => vec![element],
        _ => vec![],
    }
}
