//! The strategy `cdp`: launches through CUDA's device runtime.
//!
//! `launches.rs` replaces launches by calls, `runtime.rs` the other operations of the device runtime; only `symbols.rs`
//! spells the names and signatures. Two passes work around bugs of the device runtime on GPUs: before them, `launch/fill.rs`
//! turns `memset_async` into a launch of a kernel; after them, `turns.rs` makes the lanes of a warp call the device runtime in
//! turns, in kernels with tail launches.

mod launches;
mod one_thread;
mod runtime;
pub mod symbols;
mod turns;

use crate::arch::CudaArch;
use crate::error::Result;
use crate::ir::verify::verify;
use crate::ir::{InstKind, Module};
pub(super) use crate::launch::fill::fills;
use crate::launch::{Reports, fill, uses};
use crate::layout::{Layouts, compute_layouts};
use symbols::DeviceRuntimeAbi;

/// The strategy's options for one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The symbols of the device runtime.
    pub symbols: DeviceRuntimeAbi,
    /// Whether `memset_async` launches a kernel, [`fill::FILL_KERNEL`], instead of calling the device runtime's
    /// `cudaMemsetAsync`, which writes zeros whatever the value.
    pub fill_by_kernel: bool,
    /// Whether the lanes of a warp call the device runtime in turns, in kernels that launch into the tail stream. Without turns,
    /// it hangs.
    pub turns: bool,
}

impl Options {
    /// For the CPU device, whose device runtime has none of the bugs.
    pub const CPU: Options =
        Options { symbols: DeviceRuntimeAbi::Public, fill_by_kernel: false, turns: false };

    /// For a GPU.
    pub fn for_arch(arch: CudaArch) -> Self {
        Options { symbols: DeviceRuntimeAbi::for_arch(arch), fill_by_kernel: true, turns: true }
    }
}

/// Replaces launches and the other operations of the device runtime.
pub(super) fn lower(
    module: &mut Module,
    layouts: &Layouts,
    options: Options,
    reports: Reports,
) -> Result<()> {
    let filled;
    let mut layouts = layouts;
    if options.fill_by_kernel && fills(module) {
        fill::by_kernels(module, false)?;
        verify(module)?;
        filled = compute_layouts(module)?;
        layouts = &filled;
    }
    let need_turns = if options.turns { turns::need_turns(module) } else { vec![] };
    if makes_grids(module) {
        launches::lower(module, layouts, options.symbols, reports)?;
    }
    runtime::lower(module, options.symbols);
    turns::take_turns(module, &need_turns)
}

/// Whether a function of a lowered module must not be inlined.
pub(super) fn stays_out_of_line(function: &str) -> bool {
    turns::stays_out_of_line(function)
}

/// Whether a module whose launches are symbolic creates grids, of its own kernels or of the kernel that fills.
pub(super) fn makes_grids(module: &Module) -> bool {
    super::launches(module) || fills(module)
}

/// Whether a module whose launches are symbolic calls the device runtime, for launches or otherwise.
pub(super) fn needs_device_runtime(module: &Module) -> bool {
    let needs = |kind: &InstKind| match kind {
        InstKind::Builtin { builtin, .. } => runtime::function(*builtin).is_some(),
        kind => matches!(kind, InstKind::Launch(_)),
    };
    uses(module, needs)
}

#[cfg(test)]
mod tests;
