//! Functions that launch, but promise to write nothing that others see: LLVM leaves out their calls, and the launches with them.

use std::collections::HashSet;

use gridlet_lang::launch::cdp::symbols::RuntimeFunction;

use super::check::Finding;
use super::kernels::{self, name};
use super::runtime;
use crate::nvvm::legacy::llvm::{Attribute, Module, Place, Value, attribute_kind};

/// In LLVM's attribute `memory`, the bits of writes to memory that the IR cannot reach, and to any but that of arguments and of
/// `errno` (`llvm/Support/ModRef.h`, `IRMemLocation`).
const WRITES: u64 = 1 << 3 | 1 << 7;

/// The functions and calls with such a promise. That of a kernel has no effect, because nobody calls it.
pub(super) fn check(module: Module<'_>) -> Vec<Finding<'_>> {
    let declared = runtime::declared(module).into_iter();
    let launch = declared.filter(|(_, known)| *known == RuntimeFunction::LaunchDevice);
    let mut open: Vec<_> = launch.map(|(function, _)| function).collect();
    let mut seen: HashSet<_> = open.iter().copied().collect();
    let mut findings = vec![];
    while let Some(function) = open.pop() {
        let symbol = name(function);
        let is_wrong =
            !kernels::is_kernel(function) && is_dropped(&function.attributes(Place::Function));
        findings.extend(is_wrong.then(|| finding(function, &format!("`{symbol}`"))));
        for call in runtime::calls(function) {
            let is_wrong = is_dropped(&call.call_attributes(Place::Function));
            findings.extend(is_wrong.then(|| finding(call, &format!("this call of `{symbol}`"))));
            open.extend(call.function().filter(|caller| seen.insert(*caller)));
        }
    }
    findings
}

fn finding<'m>(at: Value<'m>, what: &str) -> Finding<'m> {
    let message = format!(
        "{what} launches a kernel, but has an attribute (`memory`, `readnone` or `readonly`) that says it writes nothing, so LLVM \
         leaves the launch out; remove the attribute"
    );
    Finding { at: Some(at), message }
}

fn is_dropped(attributes: &[Attribute<'_>]) -> bool {
    let memory = attribute_kind("memory");
    attributes.iter().any(|attribute| match attribute {
        Attribute::Enum(kind, effects) => Some(*kind) == memory && effects & WRITES == 0,
        _ => false,
    })
}
