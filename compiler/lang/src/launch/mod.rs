//! The launch stage: replaces symbolic [`InstKind::Launch`]es, the other operations of the device runtime, and
//! operations of warps and blocks that the target lacks by code that the device can run.
//!
//! The stage is IR to IR. Each launch strategy is a folder, and only that folder spells the functions that its code
//! calls; the `match`es here choose among the strategies. `status` holds the handling of a launch's status, which all
//! strategies share, `statistics` the wrappers of instrumented builds.

pub mod cdp;
mod choice;
mod device;
pub mod fill;
mod locals;
mod merge;
mod out_of_line;
pub mod resident;
mod shared;
mod statistics;
mod status;

pub use choice::LaunchChoice;
pub use gridlet_artifact::LaunchStrategy;

use crate::arch::CudaArch;
use crate::error::{Error, Result};
use crate::ir::expand::{Instructions, expand};
use crate::ir::{InstKind, Module, Role, graph::CallGraph, verify::verify};
use crate::layout::Layouts;
pub use device::{CpuArgument, CpuCall, DeviceFunction};
pub use locals::{MAX_LOCAL_BYTES, check_locals};
pub use out_of_line::copies_launches;
pub use shared::{MAX_STATIC_SHARED_BYTES, check_shared};
pub use statistics::{STATISTICS, instrument};
use status::Reports;
pub use status::{
    LAUNCHES_MADE, LOST_LAUNCH_NOTICE, LOST_LAUNCH_RECORD, RECORD_LOST_LAUNCH, mark_linked,
};

/// A strategy with its options for one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// [`LaunchStrategy::Cdp`].
    Cdp(cdp::Options),
    /// [`LaunchStrategy::Resident`].
    Resident,
}

/// The options of the launch stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// How launches are lowered.
    pub lowering: Lowering,
    /// Whether every launch that succeeds adds 1 to [`LAUNCHES_MADE`]. Fills are not counted.
    pub count_launches: bool,
    /// Whether a lost launch is noted in host memory, through [`LOST_LAUNCH_NOTICE`]: copying the record from a GPU takes longer
    /// than a launch.
    pub notice: bool,
    /// The operations that are single instructions on the target; all others become calls of functions.
    pub instructions: Instructions,
}

impl LaunchOptions {
    /// For the CPU device, which implements CUDA's device runtime in software, whatever the strategy on GPUs.
    pub const CPU: LaunchOptions = LaunchOptions {
        lowering: Lowering::Cdp(cdp::Options::CPU),
        count_launches: false,
        notice: false,
        instructions: Instructions::CPU,
    };

    /// The usual options of a strategy for an architecture.
    pub fn for_arch(strategy: LaunchStrategy, arch: CudaArch) -> Self {
        LaunchOptions {
            lowering: match strategy {
                LaunchStrategy::Cdp => Lowering::Cdp(cdp::Options::for_arch(arch)),
                LaunchStrategy::Resident => Lowering::Resident,
            },
            count_launches: false,
            notice: true,
            instructions: Instructions { redux: arch.has_redux(), ..Instructions::GPU },
        }
    }

    gridlet_artifact::setters! {
        with_count_launches: count_launches: bool,
        with_notice: notice: bool,
    }
}

/// Replaces every launch in a module. A module without launches only becomes [`Module::lowered`].
///
/// A plain launch that fails is recorded for the host: see [`LOST_LAUNCH_RECORD`]. A strategy may add kernels: see
/// [`adds_kernels`].
///
/// # Errors
/// [`Error::Invalid`] if the strategy cannot launch an `extern kernel`; [`Error::Internal`] if the module is lowered already,
/// breaks the rules of [`crate::ir`], or has other kernels than `layouts`.
pub fn lower(module: &Module, layouts: &Layouts, options: &LaunchOptions) -> Result<Module> {
    if module.lowered {
        return Err(Error::internal("launch", "the launches are lowered already"));
    }
    if module.kernels.len() != layouts.kernels.len() {
        return Err(Error::internal("launch", "the layouts belong to another module"));
    }
    verify(module)?;
    let mut lowered = module.clone();
    let reports = Reports { count_launches: options.count_launches, notice: options.notice };
    match options.lowering {
        Lowering::Cdp(cdp) => cdp::lower(&mut lowered, layouts, cdp, reports)?,
        Lowering::Resident => resident::lower(&mut lowered, layouts, reports)?,
    }
    lowered.lowered = true;
    expand(&mut lowered, options.instructions)?;
    verify(&lowered)?;
    Ok(lowered)
}

/// Whether a module whose launches are symbolic creates grids of its own kernels or of kernels that the strategy adds.
/// If so, its images have a [`LOST_LAUNCH_RECORD`], on every target.
pub fn makes_grids(module: &Module, strategy: LaunchStrategy) -> bool {
    match strategy {
        // The kernels that `resident` adds for copies cannot be lost in silence: `memcpy_async` gives their status.
        LaunchStrategy::Cdp | LaunchStrategy::Resident => cdp::makes_grids(module),
    }
}

/// Whether the strategy adds kernels to a module whose launches are symbolic. Manifests, `gridlet layout` and statistics
/// leave such kernels out.
pub fn adds_kernels(module: &Module, strategy: LaunchStrategy) -> bool {
    match strategy {
        LaunchStrategy::Cdp => cdp::fills(module),
        LaunchStrategy::Resident => resident::applies(module),
    }
}

/// By kernel of a module whose launches are symbolic, whether the host must launch the strategy's own kernel in its place.
pub fn runs_resident(module: &Module, strategy: LaunchStrategy) -> Vec<bool> {
    match strategy {
        LaunchStrategy::Cdp => vec![false; module.kernels.len()],
        LaunchStrategy::Resident => resident::nests(module),
    }
}

/// By kernel of a module whose launches are symbolic, the part of a block's shared memory, in bytes, that its `shared` variables
/// need in the strategy's own kernel, if that runs it.
pub fn resident_shared_bytes(module: &Module, strategy: LaunchStrategy) -> Vec<Option<u32>> {
    match strategy {
        LaunchStrategy::Cdp => vec![None; module.kernels.len()],
        LaunchStrategy::Resident => resident::shared_bytes(module),
    }
}

/// Whether GPU images of a module whose launches are symbolic must be linked with CUDA's device runtime,
/// `libcudadevrt.a`.
pub fn needs_device_runtime(module: &Module, strategy: LaunchStrategy) -> bool {
    match strategy {
        LaunchStrategy::Cdp => cdp::needs_device_runtime(module),
        LaunchStrategy::Resident => false,
    }
}

/// Whether a function of a lowered module must not be inlined, because it is called seldom or in many places.
pub fn stays_out_of_line(function: &str) -> bool {
    status::stays_out_of_line(function)
        || cdp::stays_out_of_line(function)
        || resident::stays_out_of_line(function)
}

/// The device function with a symbol; `None` if no strategy calls it.
pub fn device_function(symbol: &str) -> Option<DeviceFunction> {
    LaunchStrategy::ALL.into_iter().find_map(|strategy| match strategy {
        LaunchStrategy::Cdp => cdp::symbols::device_function(symbol),
        LaunchStrategy::Resident => None,
    })
}

/// The parameters of device functions that are pointers to a named struct where LLVM's pointers are typed: symbol of the
/// function, index of the parameter, name of the struct. All other pointers point to bytes.
pub fn struct_pointers() -> Vec<(String, u32, &'static str)> {
    let of = |strategy| match strategy {
        LaunchStrategy::Cdp => cdp::symbols::struct_pointers(),
        LaunchStrategy::Resident => Vec::new(),
    };
    LaunchStrategy::ALL.into_iter().flat_map(of).collect()
}

/// For each function, whether it or a function that it calls launches; false for entries.
fn may_launch(module: &Module) -> Vec<bool> {
    let launches = |id| {
        let instructions = &module.function(id).instructions;
        instructions.iter().any(|inst| matches!(inst.kind, InstKind::Launch(_)))
    };
    let may = CallGraph::of(module).may_reach(launches).into_iter().zip(&module.functions);
    may.map(|(may, function)| may && !matches!(function.role, Role::Entry(_))).collect()
}

/// Whether a module whose launches are symbolic has any launches.
pub fn launches(module: &Module) -> bool {
    uses(module, |kind| matches!(kind, InstKind::Launch(_)))
}

/// Whether any instruction of a module is of a kind.
fn uses(module: &Module, is: impl Fn(&InstKind) -> bool) -> bool {
    module.functions.iter().flat_map(|function| &function.instructions).any(|inst| is(&inst.kind))
}

#[cfg(test)]
mod tests;
