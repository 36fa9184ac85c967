//! The static shared memory of a module's kernels, and its constant memory.

use std::collections::HashSet;

use gridlet_lang::launch::MAX_STATIC_SHARED_BYTES;

use super::check::Finding;
use super::kernels::{self, name};
use super::layout::extent;
use super::runtime::reached;
use crate::nvvm::legacy::llvm::{Kind, Module, Shape, Value};

/// The address space of shared memory.
const SHARED: u32 = 3;

/// The kernels with more static shared memory than any GPU gives.
pub(super) fn check(module: Module<'_>) -> Vec<Finding<'_>> {
    let is_static = |variable: &Value<'_>| {
        variable.ty().shape() == Shape::Pointer(SHARED) && !variable.is_declaration()
    };
    let variables = module.variables().into_iter().filter(is_static);
    let sized: Vec<_> = variables
        .filter_map(|variable| Some((variable, extent(variable.value_type())?.size)))
        .collect();
    let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
    if sum(&mut sized.iter().map(|(_, size)| *size)) <= MAX_STATIC_SHARED_BYTES {
        return vec![];
    }
    let used: Vec<(HashSet<Value<'_>>, u64)> =
        sized.into_iter().map(|(variable, size)| (functions(variable), size)).collect();
    let too_large = |kernel| {
        let reached = reached(kernel);
        let is_used = |users: &HashSet<_>| reached.iter().any(|one| users.contains(one));
        let own = used.iter().filter(|(users, _)| is_used(users));
        let bytes = sum(&mut own.map(|(_, size)| *size));
        (bytes > MAX_STATIC_SHARED_BYTES).then(|| Finding {
            at: Some(kernel),
            message: format!(
                "the variables in shared memory (`addrspace(3)`) of the kernel `{}` take {bytes} bytes, with those of the functions \
                 that it calls; a kernel has at most {MAX_STATIC_SHARED_BYTES}: declare a large one as `external addrspace(3) global [0 x …]`, \
                 and give its bytes in the launch",
                name(kernel)
            ),
        })
    };
    kernels::kernels(module).into_iter().filter_map(too_large).collect()
}

/// The address space of constant memory, and the most bytes of variables there (CUDA Programming Guide, "Technical Specifications per
/// Compute Capability").
const CONSTANT: u32 = 4;
const MAX_CONSTANT_BYTES: u64 = 65_536;

/// The largest variable in constant memory, if all of them take more than there is.
pub(super) fn constants(module: Module<'_>) -> Option<Finding<'_>> {
    let is_constant = |variable: &Value<'_>| {
        variable.ty().shape() == Shape::Pointer(CONSTANT)
            && !variable.is_declaration()
            && !variable.users().is_empty()
    };
    let variables = module.variables().into_iter().filter(is_constant);
    let sized = variables.filter_map(|one| Some((one, extent(one.value_type())?.size)));
    let sized: Vec<_> = sized.collect();
    let bytes = sized.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
    let (largest, _) = sized.into_iter().max_by_key(|(_, size)| *size)?;
    (bytes > MAX_CONSTANT_BYTES).then(|| Finding {
        at: Some(largest),
        message: format!(
            "the variables in constant memory (`addrspace(4)`) take {bytes} bytes, and there are {MAX_CONSTANT_BYTES}; put a large one, as \
             `{}`, into global memory (`addrspace(1)`)",
            name(largest)
        ),
    })
}

/// The functions with instructions that use a variable, also through constants.
fn functions(variable: Value<'_>) -> HashSet<Value<'_>> {
    let (mut seen, mut open, mut found) = (HashSet::new(), vec![variable], HashSet::new());
    while let Some(value) = open.pop() {
        for user in value.users() {
            if user.kind() == Kind::Instruction {
                found.extend(user.function());
            } else if seen.insert(user) {
                open.push(user);
            }
        }
    }
    found
}
