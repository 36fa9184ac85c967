//! How launches are lowered: from symbolic [`InstKind::Launch`]es to calls that the device can make.
//! So are the other operations of the device runtime, and operations of warps and blocks that the target lacks.
//!
//! The stage is IR to IR. Each strategy is a file of its own; `symbols` spells what they call.

mod cdp;
mod fill;
mod runtime;
mod statistics;
pub mod symbols;
mod turns;

use crate::arch::CudaArch;
use crate::error::{Error, Result};
use crate::ir::expand::{Instructions, expand};
use crate::ir::{InstKind, Module, Role, graph::CallGraph, verify::verify};
use crate::layout::{Layouts, compute_layouts};
pub use fill::fills;
pub use statistics::instrument;
use symbols::DeviceRuntimeAbi;
pub use symbols::{LAUNCHES_MADE, LOST_LAUNCH_RECORD, STATISTICS};

/// How the device launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Through CUDA's device runtime, `libcudadevrt.a`, as nvcc does it: any kernel can be launched from
    /// any other, also across languages.
    #[default]
    Cdp,
}

impl Strategy {
    /// The name on the command line and in manifests: `cdp`.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Cdp => "cdp",
        }
    }
}

/// What the launch stage is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchOptions {
    /// How launches are lowered.
    pub strategy: Strategy,
    /// Which symbols the device runtime has.
    pub symbols: DeviceRuntimeAbi,
    /// Whether every launch that succeeds adds 1 to [`symbols::LAUNCHES_MADE`]. Fills are not counted.
    pub count_launches: bool,
    /// Whether `memset_async` launches a kernel, [`symbols::FILL_KERNEL`], and does not call the device runtime's
    /// `cudaMemsetAsync`, which writes zeros whatever the value.
    pub fill_by_kernel: bool,
    /// Whether the threads of a block launch in turns, in programs that launch into the tail stream: CUDA's device
    /// runtime hangs otherwise.
    pub turns: bool,
    /// What the target does in one instruction; the rest becomes functions.
    pub instructions: Instructions,
}

impl LaunchOptions {
    /// How launches are lowered for the CPU device, which has the device runtime in software.
    pub const CPU: LaunchOptions = LaunchOptions {
        strategy: Strategy::Cdp,
        symbols: DeviceRuntimeAbi::Public,
        count_launches: false,
        fill_by_kernel: false,
        turns: false,
        instructions: Instructions::NONE,
    };

    /// The ordinary way to launch on an architecture.
    pub fn for_arch(arch: CudaArch) -> Self {
        LaunchOptions {
            strategy: Strategy::default(),
            symbols: DeviceRuntimeAbi::for_arch(arch),
            count_launches: false,
            fill_by_kernel: true,
            turns: true,
            instructions: Instructions { redux: arch.has_redux(), ..Instructions::GPU },
        }
    }
}

/// Replaces every launch in a module. A module without launches only becomes [`Module::lowered`].
///
/// A plain launch that fails is counted in the record that the host reads: see
/// [`symbols::LOST_LAUNCH_RECORD`]. Where fills are launches, a module that fills gets one kernel more.
///
/// # Errors
/// [`Error::Internal`] if the module is lowered already, breaks the rules of [`crate::ir`], or has other
/// kernels than `layouts`.
pub fn lower(module: &Module, layouts: &Layouts, options: &LaunchOptions) -> Result<Module> {
    if module.lowered {
        return Err(Error::internal("launch", "the launches are lowered already"));
    }
    if module.kernels.len() != layouts.kernels.len() {
        return Err(Error::internal("launch", "the layouts are those of another module"));
    }
    verify(module)?;
    let mut lowered = module.clone();
    if options.fill_by_kernel && fills(module) {
        fill::fill_by_kernel(&mut lowered)?;
        verify(&lowered)?;
        let layouts = compute_layouts(&lowered)?;
        lower_launches(&mut lowered, &layouts, options)?;
    } else if makes_grids(module) {
        lower_launches(&mut lowered, layouts, options)?;
    }
    lowered.lowered = true;
    runtime::lower(&mut lowered, options.symbols);
    expand(&mut lowered, options.instructions)?;
    verify(&lowered)?;
    Ok(lowered)
}

fn lower_launches(module: &mut Module, layouts: &Layouts, options: &LaunchOptions) -> Result<()> {
    if options.turns {
        turns::take_turns(module)?;
    }
    match options.strategy {
        Strategy::Cdp => cdp::lower(module, layouts, options),
    }
}

/// For each function, whether it or one that it calls launches; entries are left as they are.
fn may_launch(module: &Module) -> Vec<bool> {
    let launches = |id| {
        let instructions = &module.function(id).instructions;
        instructions.iter().any(|inst| matches!(inst.kind, InstKind::Launch(_)))
    };
    let may = CallGraph::of(module).may_reach(launches).into_iter().zip(&module.functions);
    may.map(|(may, function)| may && !matches!(function.role, Role::Entry(_))).collect()
}

/// Whether a module whose launches are symbolic has any.
pub fn launches(module: &Module) -> bool {
    let mut instructions = module.functions.iter().flat_map(|function| &function.instructions);
    instructions.any(|inst| matches!(inst.kind, InstKind::Launch(_)))
}

/// Whether a module whose launches are symbolic makes grids, of its own kernels or, where fills are launches, of
/// another: whether its images have a [`LOST_LAUNCH_RECORD`], the same on every target.
pub fn makes_grids(module: &Module) -> bool {
    launches(module) || fills(module)
}

/// Whether a module whose launches are symbolic needs the device runtime, for launches or otherwise.
pub fn needs_device_runtime(module: &Module) -> bool {
    let mut instructions = module.functions.iter().flat_map(|function| &function.instructions);
    let needs = |kind: &InstKind| match kind {
        InstKind::Builtin { builtin, .. } => runtime::function(*builtin).is_some(),
        kind => matches!(kind, InstKind::Launch(_)),
    };
    instructions.any(|inst| needs(&inst.kind))
}

#[cfg(test)]
mod tests;
