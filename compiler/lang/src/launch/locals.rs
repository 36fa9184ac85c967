//! The limit of local memory on GPUs. Beyond it, the driver refuses to load the code, or a launch of it.

use std::collections::BTreeSet;

use super::{LaunchOptions, Lowering, cdp};
use crate::diagnostics::{Diagnostic, ids};
use crate::error::{Error, Result};
use crate::ir::{Function, Module, Operand, Role, SlotId, symbol};
use crate::layout::type_layout;

/// The most bytes of local memory that a thread of a GPU has (CUDA Programming Guide, "Technical Specifications per Compute
/// Capability").
pub const MAX_LOCAL_BYTES: u64 = 512 << 10;

/// Refuses functions whose own variables take more local memory than a thread of a GPU has. Those that nothing uses, and
/// the compiler's own, do not count.
///
/// # Errors
/// [`Error::Program`] with `local-too-large` at the largest variable of each such function.
pub fn check_locals(module: &Module, options: &LaunchOptions) -> Result<()> {
    if options.lowering == Lowering::Cdp(cdp::Options::CPU) {
        return Ok(());
    }
    let errors: Vec<_> =
        module.functions.iter().filter_map(|function| in_function(module, function)).collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::Program(errors)) }
}

fn in_function(module: &Module, function: &Function) -> Option<Diagnostic> {
    let declared = function.slots.iter().enumerate();
    let mut sized: Vec<_> = declared
        .filter(|(_, slot)| slot.variable.is_some())
        .map(|(at, slot)| (at, type_layout(&slot.ty, &module.structs).size))
        .collect();
    let sum = |sized: &[(usize, u64)]| {
        sized.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size))
    };
    if sum(&sized) <= MAX_LOCAL_BYTES {
        return None;
    }
    let used = used_slots(function);
    sized.retain(|(at, _)| used.contains(at));
    let bytes = sum(&sized);
    let (at, largest) = *sized.iter().max_by_key(|(_, size)| *size)?;
    let variable = function.slots[at].variable.as_ref().filter(|_| bytes > MAX_LOCAL_BYTES)?;
    let (what, name) = match function.role {
        Role::Device => ("function", &function.name),
        Role::Body(id) | Role::Entry(id) => ("kernel", &module.kernel(id).name),
    };
    let name = name.strip_prefix(symbol::OWN).unwrap_or(name);
    let message = format!(
        "the local variables of {what} `{name}` take {bytes} bytes; a thread of a GPU has at most {MAX_LOCAL_BYTES}"
    );
    let error = Diagnostic::error(ids::LOCAL_TOO_LARGE, variable.span, message);
    Some(
        error
            .at_caret(format!("`{}` takes {largest} bytes", variable.name))
            .hint("let the host allocate a buffer, and pass it to the kernel"),
    )
}

fn used_slots(function: &Function) -> BTreeSet<usize> {
    let mut used = BTreeSet::new();
    for inst in &function.instructions {
        inst.kind.for_each_operand(|operand| {
            if let Operand::Slot(SlotId(at)) = operand {
                used.insert(*at as usize);
            }
        });
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::CudaArch;
    use crate::builder;
    use crate::diagnostics::render;
    use crate::launch::LaunchStrategy;
    use crate::program::{Checked, check};
    use crate::source::SourceMap;

    /// What is wrong with a program for a GPU; empty if nothing is.
    fn wrong(program: &Checked) -> String {
        assert!(check_locals(&program.module, &LaunchOptions::CPU).is_ok());
        let seen = LaunchStrategy::ALL.map(|strategy| {
            let options = LaunchOptions::for_arch(strategy, CudaArch::DEFAULT);
            match check_locals(&program.module, &options) {
                Err(Error::Program(messages)) => render(&messages, &program.sources, false),
                other => other.map(|()| String::new()).unwrap(),
            }
        });
        assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
        seen[0].clone()
    }

    fn wrong_in(body: &str) -> String {
        let text = format!("kernel k(p: *mut u32, n: u32) {{\n{body}}}\n");
        wrong(&check(SourceMap::single("a.grid", text)).unwrap())
    }

    #[test]
    fn local_variables_fit_a_thread_of_a_gpu() {
        let array = |name: &str, count: u32| {
            format!(
                "    let mut {name} = [0u32; {count}];\n    {name}[n] = 1;\n    *p = {name}[n + 1];\n"
            )
        };
        let mut seen = wrong_in(&array("x", 200_000));
        seen += &wrong_in(&(array("x", 80_000) + &array("y", 90_000)));
        let text = "launches symbolic\n\nkernel @k(p: *mut u32) body @k.body\n\n\
            body @k.body(%geometry: geometry, %p: *mut u32) {\n  slot $x: [u32; 100000000]\nentry:\n  \
            %0: *mut u32 = element_address $x, 7u32\n  store %0, 1u32\n  return\n}\n\
            entry @k(%p: *mut u32) {\nentry:\n  %0: geometry = hardware_geometry\n  \
            call @k.body(%0, %p)\n  return\n}\n";
        seen += &wrong(&builder::read("a.gir", text).unwrap());
        insta::assert_snapshot!(seen);
        let unused = text.replace("$x, 7", "%p, 7");
        assert_eq!(wrong(&builder::read("a.gir", &unused).unwrap()), "");
        assert_eq!(wrong_in(&array("x", 131_072)), "");
    }
}
