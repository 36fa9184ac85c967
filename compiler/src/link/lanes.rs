//! Machine code in which the lanes of a warp find each other again after nested branches.

use super::{Cubin, LinkOutput, barriers, occupancy};
use crate::error::Result;
use crate::ptx::{Ptx, nesting, turns};
use gridlet_lang::arch::CudaArch;
use gridlet_lang::diagnostics::{Diagnostic, ids};
use gridlet_lang::ir::symbol;
use gridlet_lang::launch::{LaunchStrategy, resident, runs_resident};
use gridlet_lang::program::Checked;
use gridlet_lang::source::Span;

/// PTX and what a tool made of it.
pub(crate) struct Assembled {
    /// The PTX, with the turns and calls that it got.
    pub(crate) ptx: Ptx,
    pub(crate) cubin: Cubin,
    /// The tool's log.
    pub(crate) log: String,
    /// The symbols of functions with deep nests in which lanes may be lost.
    pub(crate) losing: Vec<String>,
}

/// Assembles PTX, and a second time with turns in the device runtime if the machine code can take the lanes of a warp apart before
/// (`ptx/turns.rs`), and with calls in nested branches if it loses lanes there (`ptx/nesting.rs`). If it `optimizes`, once more for
/// kernels that other registers suit better (`occupancy.rs`).
///
/// ptxas also saves barriers late in a few functions without deep nests, such as `partition` of the example quicksort for sm_75; that
/// lanes are lost there was never seen.
///
/// # Errors
/// Those of `assemble`.
pub(crate) fn assemble(
    mut ptx: Ptx,
    arch: CudaArch,
    optimizes: bool,
    assemble: impl Fn(&Ptx) -> Result<LinkOutput>,
) -> Result<Assembled> {
    let mut output = assemble(&ptx)?;
    let barriers::Found { mut losing, yielding } = barriers::read(&output.cubin, arch);
    let mut mended = turns::with_turns(&ptx, &yielding);
    if !losing.is_empty() {
        mended = nesting::with_calls(mended.as_ref().unwrap_or(&ptx)).or(mended);
    }
    if let Some(mended) = mended {
        output = assemble(&mended)?;
        losing = barriers::read(&output.cubin, arch).losing;
        ptx = mended;
    }
    if optimizes
        && losing.is_empty()
        && let Some((limited, better)) = occupancy::improve(&ptx, &output.cubin, &assemble)
        && barriers::read(&better.cubin, arch).losing.is_empty()
    {
        (ptx, output) = (limited, better);
    }
    if !losing.is_empty() {
        losing = nesting::deep_among(&ptx, losing);
    }
    Ok(Assembled { ptx, cubin: output.cubin, log: output.log, losing })
}

/// The warning of a function that may lose lanes, with its name and place in `program` if that declares it.
pub(crate) fn warning(losing: &str, program: Option<&Checked>) -> Diagnostic {
    let declared = program.map_or(vec![], |program| declarations(losing, program));
    let names: Vec<String> = match &declared[..] {
        [] => vec![format!("`{losing}`")],
        found => found.iter().map(|(name, _)| format!("`{name}`")).collect(),
    };
    let message = format!(
        "more branches are nested in {} than the GPU has convergence barriers",
        names.join(" or ")
    );
    let mut places =
        declared.into_iter().map(|(_, span)| span).filter(|span| *span != Span::NOWHERE);
    let warning = match places.next() {
        Some(span) => Diagnostic::warning(ids::LOST_LANES, span, message),
        None => Diagnostic::general_warning(ids::LOST_LANES, message),
    };
    let warning = places.fold(warning, |warning, span| warning.label(span, "or here"));
    warning
        .note(
            "a `break`, `continue` or `return` leaves many of them at once: lanes of a warp that take different branches may \
             wait for each other for ever",
        )
        .hint("set a variable instead, and test it behind each of these branches")
}

/// The kernels or functions of a program that may have become this function: one, or all that run in resident launches.
fn declarations(losing: &str, program: &Checked) -> Vec<(String, Span)> {
    let module = &program.module;
    let kernels = module.kernels.iter().filter(|kernel| !kernel.is_extern());
    if losing == symbol::external(resident::ENTRY) {
        let nests = runs_resident(module, LaunchStrategy::Resident);
        let nesting = module.kernels.iter().zip(nests).filter(|(_, nests)| *nests);
        return nesting.map(|(kernel, _)| (kernel.name.clone(), kernel.span)).collect();
    }
    // Code that is compiled twice has a copy with fast mathematics.
    let losing = losing.strip_suffix("$fast").unwrap_or(losing);
    let is_called = |name: &str| symbol::in_ptx(&symbol::internal(name)) == losing;
    let of_kernel = kernels.clone().find(|kernel| {
        let entries = [kernel.name.clone(), symbol::nested(&kernel.name)];
        let body = &module.function(kernel.body).name;
        entries.iter().any(|name| symbol::external(name) == losing)
            || is_called(body)
            || is_called(&symbol::work(&kernel.name))
    });
    if let Some(kernel) = of_kernel {
        return vec![(kernel.name.clone(), kernel.span)];
    }
    let function = module.functions.iter().find(|function| is_called(&function.name));
    let name = |name: &str| name.strip_prefix(symbol::OWN).unwrap_or(name).to_owned();
    function.map(|function| (name(&function.name), function.span)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridlet_lang::diagnostics::render;
    use gridlet_lang::program;
    use gridlet_lang::source::SourceMap;

    #[test]
    fn warnings_name_functions_as_the_source_does() {
        let source = "\
fn again(n: u32) -> u32 { if n == 0 { return 0; } return again(n - 1) + n; }
kernel leaf<const N: u32>(p: *mut u32) { p[0] = again(N); }
kernel root(p: *mut u32) { launch leaf::<8><<<1, 1>>>(p); }
kernel alone(p: *mut u32) { p[1] = 1; }
";
        let program = program::check(SourceMap::single("a.grid", source)).unwrap();
        let named = |symbol: &str| {
            let warning = warning(symbol, Some(&program));
            let places = warning.labels.iter().map(|label| {
                format!("{}:{}", program.sources.line(label.span), program.sources.text(label.span))
            });
            let names = warning.message.split('`').skip(1).step_by(2);
            names.chain([&*places.collect::<Vec<_>>().join(" ")]).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named("alone"), "alone 4:alone");
        assert_eq!(named("leaf$8"), "leaf::<8> 2:leaf");
        assert_eq!(named("own_$_leaf$8_$_body"), "leaf::<8> 2:leaf");
        assert_eq!(named("own_$_leaf$8_$_body$fast"), "leaf::<8> 2:leaf");
        assert_eq!(named("gridlet$nested$leaf$8"), "leaf::<8> 2:leaf");
        assert_eq!(named("own_$_gridlet_$_work_$_root"), "root 3:root");
        assert_eq!(named("own_$_again"), "again 1:again");
        assert_eq!(named("__gridlet_resident"), "root leaf::<8> 3:root 2:leaf");
        // A function of a module that was linked in.
        assert_eq!(named("other"), "other ");
        let warning = warning("root", Some(&program));
        insta::assert_snapshot!(render(&[warning], &program.sources, false));
    }
}
