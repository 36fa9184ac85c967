//! Parameters and results without bytes, for which the tools write PTX that ptxas cannot read, or end.

use super::check::Finding;
use super::kernels::{self, name};
use super::layout::extent;
use crate::nvvm::legacy::llvm::{Module, Shape, Type, Value};

/// The functions that pass something without bytes.
pub(super) fn check(module: Module<'_>) -> Vec<Finding<'_>> {
    let functions = module.functions().into_iter();
    functions
        .filter_map(|function| Some(Finding { at: Some(function), message: wrong(function)? }))
        .collect()
}

fn wrong(function: Value<'_>) -> Option<String> {
    let symbol = name(function);
    if symbol.starts_with("llvm.") {
        return None;
    }
    let is_empty = |ty: Type<'_>| extent(ty).is_some_and(|extent| extent.size == 0);
    let result = function.value_type().result();
    if result.shape() != Shape::Void && is_empty(result) {
        let ty = result.print();
        return Some(format!(
            "`{symbol}` returns the type `{ty}`, which has no bytes; make it `void`"
        ));
    }
    let parameter = kernels::parameters(function).into_iter().find(|one| is_empty(one.ty))?;
    Some(format!(
        "the parameter `{}` of `{symbol}` has the type `{}`, which has no bytes, and PTX cannot pass it; leave it out",
        parameter.name,
        parameter.ty.print()
    ))
}
