//! The choice of a launch strategy for a program.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use gridlet_artifact::UnknownStrategy;

use super::LaunchStrategy;
use crate::ir::graph::of_kernels;
use crate::ir::uniform::returns_before;
use crate::ir::{InstKind, Kernel, Module};

/// How to choose the launch strategy of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LaunchChoice {
    /// By the program: see [`LaunchChoice::resolve`].
    #[default]
    Auto,
    /// This strategy, whatever the program.
    Fixed(LaunchStrategy),
}

impl LaunchChoice {
    /// All choices.
    pub fn all() -> impl Iterator<Item = LaunchChoice> {
        [LaunchChoice::Auto].into_iter().chain(LaunchStrategy::ALL.map(LaunchChoice::Fixed))
    }

    /// The strategy for a module whose launches are symbolic, and the reason for it. It depends on the module alone,
    /// because all images of a bundle have the same strategy.
    ///
    /// [`LaunchChoice::Auto`] is [`LaunchStrategy::Resident`] for programs that launch, except where a kernel that it would
    /// run is an `extern kernel`, calls functions of other modules, whose barriers and shared memory would be those of the hardware's block, or
    /// has warp operations that some threads reach after others of the warp have returned, also in blocks whose warps are
    /// [aligned](crate::ir::uniform::Scope::AlignedWarp).
    pub fn resolve(self, module: &Module) -> (LaunchStrategy, String) {
        match self {
            LaunchChoice::Auto => automatic(module),
            LaunchChoice::Fixed(strategy) => (strategy, "requested".into()),
        }
    }

    /// The name on the command line: `auto`, or that of the strategy.
    pub fn name(self) -> &'static str {
        match self {
            LaunchChoice::Auto => "auto",
            LaunchChoice::Fixed(strategy) => strategy.name(),
        }
    }
}

fn automatic(module: &Module) -> (LaunchStrategy, String) {
    if !super::launches(module) {
        return (LaunchStrategy::Cdp, "the program launches nothing".into());
    }
    match obstacle(module) {
        Some(obstacle) => (LaunchStrategy::Cdp, obstacle),
        None => (LaunchStrategy::Resident, "the program launches kernels".into()),
    }
}

/// What the first kernel that stands against resident launches does.
fn obstacle(module: &Module) -> Option<String> {
    let nests = super::resident::nests(module);
    let first = |is: &dyn Fn(usize, &Kernel) -> bool| {
        let mut kernels = module.kernels.iter().enumerate().filter(|(at, _)| nests[*at]);
        kernels.find(|(at, kernel)| is(*at, kernel)).map(|(_, kernel)| &*kernel.name)
    };
    if let Some(kernel) = first(&|_, kernel| kernel.is_extern()) {
        return Some(format!("the program launches `{kernel}`, a kernel of another module"));
    }
    let calls_others = of_kernels(module, |function| {
        function.instructions.iter().any(|inst| matches!(inst.kind, InstKind::CallExtern { .. }))
    });
    if let Some(kernel) = first(&|at, _| calls_others[at]) {
        return Some(format!("`{kernel}` calls functions of other modules"));
    }
    let returns = returns_before(module);
    let kernel = first(&|at, _| returns[at].in_aligned_warps)?;
    Some(format!("threads of `{kernel}` may return before warp operations of others"))
}

impl From<LaunchStrategy> for LaunchChoice {
    fn from(strategy: LaunchStrategy) -> Self {
        LaunchChoice::Fixed(strategy)
    }
}

impl Display for LaunchChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LaunchChoice {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        match name {
            "auto" => Ok(LaunchChoice::Auto),
            name => name.parse().map(LaunchChoice::Fixed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn automatic_choice(source: &str) -> (LaunchStrategy, String) {
        let mut sources = crate::source::SourceMap::default();
        sources.add("test.grid", source);
        LaunchChoice::Auto.resolve(&crate::program::check(sources).unwrap().module)
    }

    #[test]
    fn programs_that_launch_are_resident_if_they_can_be() {
        let launching = "kernel a(p: *mut u32) { launch b<<<1, 32>>>(p); }";
        let chosen = |child: &str| automatic_choice(&format!("{launching}\n{child}"));
        let cdp = |reason: &str| (LaunchStrategy::Cdp, reason.to_owned());
        let plain = chosen("kernel b(p: *mut u32) { *p = 1; }");
        assert_eq!(plain, (LaunchStrategy::Resident, "the program launches kernels".into()));
        let other = chosen("extern fn f(p: *mut u32);\nkernel b(p: *mut u32) { f(p); }");
        assert_eq!(other, cdp("`b` calls functions of other modules"));
        let others = chosen("extern kernel b(p: *mut u32);");
        assert_eq!(others, cdp("the program launches `b`, a kernel of another module"));
        let early = chosen(
            "kernel b(p: *mut u32) {
                if thread_idx.x > 20 { return; }
                *p = reduce_add(0xffffffff, 1u32);
            }",
        );
        assert_eq!(early, cdp("threads of `b` may return before warp operations of others"));
        // Nothing launches it.
        let alone = chosen(
            "kernel b(p: *mut u32) { *p = 1; }
            kernel c(p: *mut u32) {
                if thread_idx.x > 20 { return; }
                *p = reduce_add(0xffffffff, 1u32);
            }",
        );
        assert_eq!(alone.0, LaunchStrategy::Resident);
        let flat = automatic_choice("kernel b(p: *mut u32) { *p = 1; }");
        assert_eq!(flat, cdp("the program launches nothing"));
    }

    #[test]
    fn every_choice_is_read_by_its_name() {
        let names: Vec<_> = LaunchChoice::all().map(LaunchChoice::name).collect();
        assert_eq!(names, ["auto", "cdp", "resident"]);
        for choice in LaunchChoice::all() {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        assert!("teleport".parse::<LaunchChoice>().is_err());
    }
}
