//! The strategy `resident`: one kernel runs whole trees of grids.
//!
//! The scheduler is written in the language, in `scheduler/`. This folder fits a program to it:
//! - `plan.rs` decides which kernels it runs, and measures what they need;
//! - `bodies.rs` replaces, in the code of these kernels, the operations that rely on the hardware's blocks;
//! - `warps.rs` does so with their warp operations;
//! - `launches.rs` lowers their launches to calls of the scheduler;
//! - `dispatch.rs` makes the functions that the scheduler calls, and its entry, [`ENTRY`]; those that run blocks are in `runner.rs`;
//! - `pointer_spaces.rs` tells the code generator which pointers point to global or to shared memory.
//!
//! A kernel that neither launches nor is launched stays an ordinary kernel. The symbol of every other kernel only traps.

mod bodies;
mod dispatch;
mod launches;
mod plan;
mod pointer_spaces;
mod runner;
#[cfg(test)]
mod tests;
mod warps;
mod whole;

use super::{Reports, fill, merge};
use crate::error::{Error, Result};
use crate::ir::verify::verify;
use crate::ir::{Module, symbol};
use crate::layout::{Layouts, compute_layouts};
use plan::Plan;
pub use plan::may_lack_registers;
pub use pointer_spaces::PointerSpaces;

/// The kernel that the host launches in place of kernels that launch or are launched.
pub const ENTRY: &str = "__gridlet_resident";

/// Functions of codegen that `scheduler/state.grid` declares: PTX instructions that the language lacks.
pub mod instructions {
    /// `barrier.sync.aligned id, threads`: all threads of a warp must come to the same instruction. Without `.aligned`, launch
    /// trees hung: one thread of a warp had passed a second barrier, and the others waited in the code that ptxas adds so that
    /// diverged threads meet (CUDA 13.0, H200). No smaller program showed it, so the cause is not known.
    pub const BARRIER: &str = "gridlet.hardware_barrier";
    /// `fence.acquire.gpu`: later loads see what came before the release that this thread has seen. It only empties the L1 cache,
    /// and waits for nothing. The language's `fence_device` is sequentially consistent: it waits for all stores, and empties the
    /// cache.
    pub const ACQUIRE: &str = "gridlet.hardware_acquire";
    /// `fence.release.gpu`: waits until others can see what came before. It keeps the L1 cache.
    pub const RELEASE: &str = "gridlet.hardware_release";
    /// `fence.acquire.cta`, which needs no instruction.
    pub const ACQUIRE_BLOCK: &str = "gridlet.hardware_acquire_block";
    /// `fence.release.cta`
    pub const RELEASE_BLOCK: &str = "gridlet.hardware_release_block";
    /// `fence.acq_rel.cta`
    pub const FENCE_BLOCK: &str = "gridlet.hardware_fence_block";
    /// `nanosleep.u32`
    pub const SLEEP: &str = "gridlet.hardware_sleep";
    /// `%tid.x`
    pub const THREAD: &str = "gridlet.hardware_thread";
    /// The address of the block's dynamic shared memory.
    pub const SHARED: &str = "gridlet.hardware_shared";
    /// The pointer to an address in global memory.
    pub const GLOBAL: &str = "gridlet.hardware_global";
}

/// Functions of the scheduler that stay functions: they are called in many places, or seldom.
const OUT_OF_LINE: &[&str] = &[
    "allocate_slowly",
    "append_tail",
    "await_work",
    "begin_grid",
    "begin_whole",
    "change_teams",
    "close_stream",
    "collect",
    "complete",
    "destroy_stream",
    "dismiss",
    "donate",
    "drain",
    "draining_barrier",
    "empty_outbox",
    "enqueue",
    "give_back",
    "hand_over",
    "index_in_rows",
    "index_of_many",
    "leave",
    "meet",
    "meet_apart",
    "pop_batch",
    "push_batch",
    "refill",
    "release",
    "release_batch",
    "several_teams_barrier",
    "share_grid",
    "spill",
    "stand_by",
    "subtract",
    "take_spare",
    "tickets",
    "unspill",
];

/// The function that launches a record.
pub(super) const SUBMIT: &str = "gridlet.submit";

/// Whether a function of the scheduler is part of a launch, besides [`SUBMIT`].
pub(super) fn prepares_launch(function: &str) -> bool {
    matches!(function, "gridlet.begin" | "gridlet.parameters" | "gridlet.note_error")
}

/// Whether a function of the scheduler must not be inlined.
pub(super) fn stays_out_of_line(function: &str) -> bool {
    function.strip_prefix("gridlet.").is_some_and(|name| OUT_OF_LINE.contains(&name))
}

/// The files of the scheduler, which together are one source.
const SCHEDULER: &str = concat!(
    include_str!("scheduler/state.grid"),
    include_str!("scheduler/kernels.grid"),
    include_str!("scheduler/records.grid"),
    include_str!("scheduler/ring.grid"),
    include_str!("scheduler/work.grid"),
    include_str!("scheduler/indices.grid"),
    include_str!("scheduler/account.grid"),
    include_str!("scheduler/shortcuts.grid"),
    include_str!("scheduler/standby.grid"),
    include_str!("scheduler/own_stack.grid"),
    include_str!("scheduler/pick.grid"),
    include_str!("scheduler/spill.grid"),
    include_str!("scheduler/share.grid"),
    include_str!("scheduler/errors.grid"),
    include_str!("scheduler/warps.grid"),
);

/// Replaces launches and the other operations of the device runtime in a module. A module without them does not change.
///
/// # Errors
/// [`Error::Invalid`] if the module launches an `extern kernel`; otherwise only internal errors.
pub(super) fn lower(module: &mut Module, layouts: &Layouts, reports: Reports) -> Result<()> {
    if !applies(module) {
        return Ok(());
    }
    let nests = nests(module);
    let mut launched = module.kernels.iter().zip(&nests).filter(|(_, nests)| **nests);
    if let Some((kernel, _)) = launched.find(|(kernel, _)| kernel.is_extern()) {
        return Err(Error::Invalid(format!(
            "`{}` is an `extern kernel`, which cannot be launched with `--launch resident`: one kernel runs all grids, and \
             the code of this one is in another module; use `--launch cdp` or `--launch auto`",
            kernel.name
        )));
    }
    let own_kernels = module.kernels.len();
    fill::by_kernels(module, true)?;
    verify(module)?;
    let layouts = if module.kernels.len() == own_kernels {
        layouts.clone()
    } else {
        compute_layouts(module)?
    };
    let plan = Plan::of(module, &layouts)?;
    let scheduler = merge::add(module, "the scheduler", SCHEDULER, |name| match name {
        "enter" => ENTRY.into(),
        _ => format!("gridlet.{name}"),
    })?;
    bodies::rewrite(module, &plan, &scheduler)?;
    launches::lower(module, &layouts, &plan, &scheduler, reports)?;
    dispatch::generate(module, &layouts, &plan, &scheduler)?;
    module.resident = Some(plan.manifest(&symbol::external(ENTRY)));
    Ok(())
}

/// Whether the strategy changes a module whose launches are symbolic: it launches, fills, copies, or has other operations of
/// the device runtime.
pub(super) fn applies(module: &Module) -> bool {
    super::launches(module) || super::uses(module, plan::is_runtime_operation)
}

/// By kernel of a module whose launches are symbolic, the bytes of its `shared` variables in the resident kernel, if that runs
/// it.
pub(super) fn shared_bytes(module: &Module) -> Vec<Option<u32>> {
    plan::shared_bytes(module)
}

/// By kernel of a module whose launches are symbolic, whether the resident kernel runs it.
pub(super) fn nests(module: &Module) -> Vec<bool> {
    plan::nests(module)
}
