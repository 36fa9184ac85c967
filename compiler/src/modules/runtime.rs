//! The device runtime's functions in a module: their signatures, and the launches.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use gridlet_lang::launch::cdp::symbols::{DeviceRuntimeAbi, RuntimeFunction, runtime_function};
use gridlet_lang::types::Type;
use inkwell::llvm_sys::LLVMOpcode;

use super::kernels::{self, name};
use super::layout::{Types, extent};
use crate::nvvm::legacy::llvm::{Attribute, Kind, Module, Place, Shape, Value, attribute_kind};

/// The functions of the device runtime that a module declares, and those that call them in turn.
pub(super) fn declared(module: Module<'_>) -> Vec<(Value<'_>, RuntimeFunction)> {
    let functions = module.functions().into_iter();
    functions.filter_map(|function| Some((function, runtime_function(&name(function))?))).collect()
}

/// The calls of a function. Another use of it is the error.
pub(super) fn calls(function: Value<'_>) -> Vec<Value<'_>> {
    let is_call = |user: &Value<'_>| {
        user.kind() == Kind::Instruction
            && user.opcode() == LLVMOpcode::LLVMCall
            && user.callee() == function
    };
    function.users().into_iter().filter(is_call).collect()
}

/// What is wrong with the declaration of a function of the device runtime.
pub(super) fn wrong_signature(function: Value<'_>, known: RuntimeFunction) -> Option<String> {
    let wanted = DeviceRuntimeAbi::Public.declaration(known);
    let given = function.value_type();
    let parameters = given.parameters();
    let mut types = Types::default();
    let fits = parameters.len() == wanted.parameters.len()
        && !given.is_variadic()
        && passes(given.result(), None, &wanted.result, &mut types)
        && parameters.iter().zip(&wanted.parameters).zip(0..).all(|((given, wanted), at)| {
            let kind = attribute_kind("byval");
            let attributes = function.attributes(Place::Parameter(at));
            let copied = attributes.iter().find_map(|attribute| match attribute {
                Attribute::Type(of, ty) if Some(*of) == kind => Some(*ty),
                _ => None,
            });
            passes(*given, copied, wanted, &mut types)
        });
    if fits {
        return None;
    }
    let shown = |ty: &Type| match ty {
        Type::Pointer { .. } | Type::Stream => "ptr".to_owned(),
        Type::Struct(_) => "%struct.dim3".to_owned(),
        Type::Scalar(scalar) => format!("i{}", scalar.bits()),
        other => format!("{other:?}"),
    };
    let parameters: Vec<String> = wanted.parameters.iter().map(shown).collect();
    let symbol = name(function);
    Some(format!(
        "`{symbol}` has the wrong signature `{}`\n  CUDA's is `{} ({})`, with `%struct.dim3 = type {{ i32, i32, i32 }}`",
        given.print(),
        shown(&wanted.result),
        parameters.join(", ")
    ))
}

/// What is wrong with a fill by the device runtime, which writes zeros for every value (see [`gridlet_lang::launch`], "fill").
pub(super) fn wrong_fill(call: Value<'_>) -> Option<String> {
    let value = call.arguments().get(1).copied()?;
    if value.unsigned() == Some(0) {
        return None;
    }
    let given = match value.int() {
        Some(value) => format!("not {value}"),
        None => "and this one is not known before it runs".into(),
    };
    Some(format!(
        "on GPUs, `{}` writes zeros for every value, {given}; give the constant 0, or launch a kernel that fills",
        name(call.callee())
    ))
}

/// Whether PTX passes a type as it passes a type of the device runtime.
fn passes<'m>(
    given: crate::nvvm::legacy::llvm::Type<'m>,
    copied: Option<crate::nvvm::legacy::llvm::Type<'m>>,
    wanted: &Type,
    types: &mut Types<'m>,
) -> bool {
    let size = match wanted {
        Type::Struct(_) => {
            let whole = extent(copied.unwrap_or(given));
            let is_whole =
                matches!(copied.unwrap_or(given).shape(), Shape::Struct | Shape::Array(..));
            return is_whole && whole.is_some_and(|whole| (whole.size, whole.alignment) == (12, 4));
        }
        Type::Scalar(scalar) => scalar.size(),
        _ => 8,
    };
    let is_word = match given.shape() {
        Shape::Pointer(space) => space == 0 && copied.is_none(),
        Shape::Int(_) => true,
        _ => false,
    };
    is_word && types.value(given).is_some() && extent(given).is_some_and(|own| own.size == size)
}

/// By kernel, the names of the kernels whose parameter buffers it asks for, directly or in functions that it calls.
pub(super) fn launches(module: Module<'_>) -> Vec<Vec<String>> {
    let mut own: HashMap<Value<'_>, BTreeSet<String>> = HashMap::new();
    for (function, _) in declared(module)
        .into_iter()
        .filter(|(_, known)| *known == RuntimeFunction::GetParameterBuffer)
    {
        for call in calls(function) {
            let (Some(target), Some(caller)) = (call.arguments().first().copied(), call.function())
            else {
                continue;
            };
            if target.kind() == Kind::Function {
                own.entry(caller).or_default().insert(name(target));
            }
        }
    }
    let order: BTreeMap<String, usize> =
        kernels::kernels(module).into_iter().map(name).zip(0..).collect();
    let of_kernel = |kernel: Value<'_>| {
        let reached = reached(kernel);
        let mut found: Vec<&String> =
            reached.iter().filter_map(|function| own.get(function)).flatten().collect();
        found.sort_by_key(|name| order.get(*name).copied());
        found.dedup();
        found.into_iter().cloned().collect()
    };
    kernels::kernels(module).into_iter().map(of_kernel).collect()
}

/// A function and all functions that it may call directly or indirectly.
pub(super) fn reached(function: Value<'_>) -> Vec<Value<'_>> {
    let (mut seen, mut open) = (HashSet::from([function]), vec![function]);
    let mut all = vec![];
    while let Some(function) = open.pop() {
        all.push(function);
        let instructions = function.blocks().into_iter().flat_map(|block| block.instructions());
        open.extend(instructions.filter_map(called).filter(|called| seen.insert(*called)));
    }
    all
}

/// The function that an instruction calls directly.
fn called(instruction: Value<'_>) -> Option<Value<'_>> {
    let is_call = instruction.opcode() == LLVMOpcode::LLVMCall;
    let callee = is_call.then(|| instruction.callee())?;
    (callee.kind() == Kind::Function).then_some(callee)
}
