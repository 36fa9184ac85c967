//! Kernels with `#[fast_math]` in programs that have others too: their functions, whose code `ptx::splice` exchanges.

use std::collections::BTreeSet;

use super::bug;
use crate::error::Result;
use gridlet_lang::ir::{Function, FunctionId, InstKind, Kernel, Module, Role, graph, symbol};

/// The bodies that other functions call than the kernel's own entry. Where its entry alone calls it, a body becomes part of
/// that.
pub(super) fn called_bodies(module: &Module) -> BTreeSet<FunctionId> {
    let of_others = |function: &&Function| !matches!(function.role, Role::Entry(_));
    let calls = module.functions.iter().filter(of_others).flat_map(|function| {
        function.instructions.iter().filter_map(|inst| match inst.kind {
            InstKind::Call { function, .. } => Some(function),
            _ => None,
        })
    });
    calls.filter(|id| matches!(module.function(*id).role, Role::Body(_))).collect()
}

/// The symbols, as PTX spells them, of the functions at which code with fast mathematics begins: entries of kernels with
/// `#[fast_math]`, and their bodies in the kernel that runs resident launches.
///
/// # Errors
/// [`Error::Internal`](crate::Error::Internal) if such code runs other kernels.
pub(crate) fn fast_functions(module: &Module) -> Result<Vec<String>> {
    let is_fast = |kernel: &&Kernel| kernel.fast_math && !kernel.is_extern();
    let called = called_bodies(module);
    let mut starts = vec![false; module.functions.len()];
    let mut names = vec![];
    for kernel in module.kernels.iter().filter(is_fast) {
        names.push(symbol::external(&kernel.name));
        for body in kernel.bodies() {
            starts[body.index()] = true;
            if called.contains(&body) {
                names.push(symbol::in_ptx(&symbol::internal(&module.function(body).name)));
            }
        }
    }
    let reached = graph::CallGraph::of(module).reached_from(&starts);
    for (function, _) in module.functions.iter().zip(reached).filter(|(_, reached)| *reached) {
        if let Role::Body(kernel) = function.role
            && !module.kernel(kernel).fast_math
        {
            return Err(bug(format!("fast mathematics would reach `{}`", function.name)));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridlet_lang::arch::CudaArch;
    use gridlet_lang::launch::{LaunchOptions, LaunchStrategy};
    use gridlet_lang::program::check;
    use gridlet_lang::source::SourceMap;

    #[test]
    fn the_copy_of_a_fast_kernel_for_whole_warps_is_fast_too() {
        let source = "#[fast_math] kernel fast(p: *mut f32) { *p = shfl(0xffffffff, *p / 3.0, 0); }
            kernel exact(p: *mut f32) { *p = shfl(0xffffffff, *p / 3.0, 0); }
            kernel root(p: *mut f32) { launch fast<<<1, 32>>>(p); launch exact<<<1, 32>>>(p); }";
        let program = check(SourceMap::single("test.grid", source)).expect("a right program");
        let options = LaunchOptions::for_arch(LaunchStrategy::Resident, CudaArch::DEFAULT);
        let module = program.lower(&options).expect("a lowered program");
        insta::assert_snapshot!(fast_functions(&module).expect("names").join("\n"));
    }
}
