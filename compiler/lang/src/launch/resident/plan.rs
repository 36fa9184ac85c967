//! Decides which kernels the resident kernel runs, and measures what they need.

use std::collections::BTreeMap;

use gridlet_artifact::manifest::Resident;

use crate::builtins::Builtin;
use crate::error::{Error, Result};
use crate::ir::graph::{self, CallGraph};
use crate::ir::uniform::{EarlyReturns, returns_before};
use crate::ir::{
    Const, Function, FunctionId, GlobalId, InstKind, KernelId, Launch, Module, Operand, Space,
    Stream,
};
use crate::launch::{fill, uses};
use crate::layout::Layouts;
use crate::types::layout::type_layout;

/// Maximum number of threads in a block (CUDA C++ Programming Guide, "Technical Specifications").
const MAX_THREADS: u32 = 1024;

/// The most shared memory that a worker asks for.
const MAX_SHARED_BYTES: u32 = 200 * 1024;

/// Bytes of dynamic shared memory that are reserved if a launch asks for a number that is not a constant.
const UNKNOWN_SHARED_BYTES: u32 = 32 * 1024;

/// Bytes of shared memory for each thread of a worker that let small blocks run side by side. With these a worker has no more than 48 KiB,
/// which every GPU gives to a block, and as many workers fit on an SM as their threads allow: an SM has 64 bytes or more for a thread (CUDA
/// Programming Guide, "Technical Specifications per Compute Capability").
const SHARED_BYTES_OF_THREAD: u32 = 48;

/// Bytes of a record before the parameter buffer; `HEADER_BYTES` in `scheduler/state.grid`.
const HEADER_BYTES: u32 = 64;

/// Some of the blocks that a kernel may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blocks {
    None,
    /// Those whose warps are not [aligned](crate::ir::uniform::Scope::AlignedWarp).
    Unaligned,
    All,
}

/// What the resident kernel runs.
pub(super) struct Plan {
    /// By kernel, whether the resident kernel runs it.
    pub(super) nests: Vec<bool>,
    /// By kernel, the bits that `scheduler/state.grid` calls properties of kernels.
    pub(super) flags: Vec<u32>,
    /// By kernel, in which blocks threads may return before others of their warp reach a warp operation.
    pub(super) early_in_warps: Vec<Blocks>,
    /// By kernel, whether the warps of a block need not wait for each other before the next block.
    pub(super) apart: Vec<bool>,
    /// By kernel, whether a thread keeps the index of its block to find the next one. Otherwise it divides, which takes long beside a short
    /// block, but needs fewer registers: see [`may_lack_registers`].
    pub(super) keeps_index: Vec<bool>,
    /// By kernel, around which blocks its runner must call `enter_lanes` and `leave_lanes`.
    pub(super) meets: Vec<Blocks>,
    /// By kernel, the end of its `shared` variables in a block's slice, in bytes.
    pub(super) shared: Vec<u32>,
    /// The offset of each `shared` variable in a block's slice, in bytes.
    pub(super) offsets: BTreeMap<GlobalId, u32>,
    /// By kernel, the most threads that a block may have.
    pub(super) threads: Vec<u32>,
    /// The size of a record in bytes.
    pub(super) record_bytes: u32,
    /// The number of 64-bit words for the root's parameters.
    pub(super) parameter_words: u32,
    /// Whether any grid but the root is a scope.
    pub(super) has_scopes: bool,
    /// By kernel, whether it has barriers that no thread misses, and is launched, by a kernel or only by the host, with blocks that are as
    /// large as a worker: see `whole.rs`.
    pub(super) fills_worker: Vec<bool>,
    /// Whether a thread's last error is kept: some kernel asks for it.
    pub(super) keeps_errors: bool,
    /// The largest block of any launch.
    max_block_threads: u32,
    /// The most threads of a block that a `#[launch_bounds]` allows.
    declared_threads: u32,
    /// The most shared memory of a block of any launch.
    shared_bytes: u32,
}

pub(super) const CAN_PACK: u32 = 1;
const TAILS: u32 = 2;
pub(super) const DEFAULTS: u32 = 4;
const BARRIERS: u32 = 8;
const RETURNS_EARLY: u32 = 16;
const APART: u32 = 32;
const LAUNCHES: u32 = 64;
pub(super) const IN_PARTS: u32 = 128;

/// The most instructions of a kernel, with those of the functions that it calls, that are worth another copy of them.
const MOST_SHORT: usize = 400;

impl Plan {
    /// Plans for a module whose launches are symbolic.
    pub(super) fn of(module: &Module, layouts: &Layouts) -> Result<Plan> {
        let nests = nests(module);
        let (offsets, shared) = shared_layout(module, &nests)?;
        let threads: Vec<u32> = module
            .kernels
            .iter()
            .map(|kernel| kernel.launch_bounds.map_or(MAX_THREADS, |bounds| bounds.max_threads))
            .collect();
        let declared = module.kernels.iter().zip(&nests).filter(|(_, nests)| **nests);
        let declared = declared.filter_map(|(kernel, _)| Some(kernel.launch_bounds?.max_threads));
        let declared_threads = declared.max().unwrap_or(0);
        let mut max_block_threads = 1;
        // The threads and the shared memory of each launch's blocks.
        let mut blocks = vec![];
        // By kernel that is launched, the largest block of a constant size.
        let mut largest = vec![None; module.kernels.len()];
        // And whether its grids need not wait for each other.
        let mut may_pile_up = vec![false; module.kernels.len()];
        for_each_launch(module, |function, launch| {
            let kernel = launch.kernel.index();
            let block = constant_product(function, &launch.block);
            largest[kernel] = largest[kernel].max(Some(block.unwrap_or(0)));
            may_pile_up[kernel] |= launch.stream == Stream::FireAndForget;
            let block = block.unwrap_or(u64::from(threads[kernel]));
            let block = block.min(MAX_THREADS.into()) as u32;
            max_block_threads = max_block_threads.max(block);
            let extra = match constant(function, &launch.shared) {
                Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
                None => UNKNOWN_SHARED_BYTES,
            };
            let own = shared[kernel].next_multiple_of(16);
            blocks.push((block, own.saturating_add(extra)));
        });
        let shared_bytes = shared_of_worker(&blocks, max_block_threads);
        let sizes = nests.iter().zip(&layouts.kernels).filter(|(nests, _)| **nests);
        let parameters = sizes.map(|(_, layout)| layout.size).max().unwrap_or(0);
        let early = returns_before(module);
        let mut flags = flags(module, &early);
        let early_in_warps: Vec<Blocks> = early
            .iter()
            .zip(&nests)
            .map(|(early, nests)| match early {
                EarlyReturns { in_aligned_warps: true, .. } if *nests => Blocks::All,
                EarlyReturns { warp_operations: true, .. } if *nests => Blocks::Unaligned,
                _ => Blocks::None,
            })
            .collect();
        let has_scopes = graph::orders_grids(module);
        let fills_worker = (0..module.kernels.len())
            .map(|kernel| {
                let size = u64::from(max_block_threads);
                nests[kernel]
                    && flags[kernel] & (BARRIERS | RETURNS_EARLY) == BARRIERS
                    && early_in_warps[kernel] != Blocks::All
                    && size > 32
                    && largest[kernel].is_none_or(|largest| largest == size && size % 32 == 0)
            })
            .collect();
        let apart = apart(module, &flags);
        for (flags, _) in flags.iter_mut().zip(&apart).filter(|(_, apart)| **apart) {
            *flags |= APART;
        }
        let loops = graph::has_loops(module);
        let is_short = is_short(module, &loops);
        for (at, flags) in flags.iter_mut().enumerate() {
            let has_parts =
                largest[at].is_some_and(|size| size == 0 || size > 32) && threads[at] > 32;
            if nests[at] && may_pile_up[at] && apart[at] && is_short[at] && has_parts {
                *flags |= IN_PARTS;
            }
        }
        Ok(Plan {
            apart,
            meets: meets(module, &early_in_warps),
            early_in_warps,
            keeps_index: may_lack_registers(loops, has_scopes).map(|few| !few).collect(),
            has_scopes,
            fills_worker,
            flags,
            nests,
            shared,
            offsets,
            threads,
            record_bytes: (HEADER_BYTES + parameters).next_multiple_of(128),
            parameter_words: parameters.div_ceil(8),
            keeps_errors: uses(module, |kind| {
                matches!(kind, InstKind::Builtin { builtin: Builtin::DeviceLastError, .. })
            }),
            max_block_threads,
            declared_threads,
            shared_bytes,
        })
    }

    /// The manifest's description.
    pub(super) fn manifest(&self, symbol: &str) -> Resident {
        let mut resident = Resident::new(symbol);
        resident.record_bytes = self.record_bytes;
        resident.parameter_words = self.parameter_words;
        resident.max_block_threads = self.max_block_threads;
        resident.shared_bytes = self.shared_bytes;
        resident
    }

    /// Whether a warp may run a kernel's blocks in parts: see [`is_short`].
    pub(super) fn runs_in_parts(&self, kernel: KernelId) -> bool {
        self.flags.get(kernel.index()).is_some_and(|flags| flags & IN_PARTS != 0)
    }

    /// Whether the resident kernel runs a kernel.
    pub(super) fn runs(&self, kernel: KernelId) -> bool {
        self.nests.get(kernel.index()).copied().unwrap_or(false)
    }

    /// The bound on the threads of the resident kernel that makes the compiler leave enough registers, if it needs one: where
    /// a kernel launches larger blocks than the compiler expects, or the host may because a kernel says so.
    pub(super) fn thread_bound(&self) -> Option<u32> {
        (self.max_block_threads.max(self.declared_threads) > 256).then_some(MAX_THREADS)
    }
}

/// The shared memory of a worker with so many threads: enough for the block of any launch, and up to a limit for as many blocks side by
/// side as it has warps for. `blocks` has the threads and the shared memory of the blocks of each launch.
fn shared_of_worker(blocks: &[(u32, u32)], threads: u32) -> u32 {
    let warps = threads.div_ceil(32);
    let one = blocks.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    // Each warp has an equal part, in units of 16 bytes.
    let side_by_side = blocks.iter().filter_map(|(threads, bytes)| {
        let width = threads.div_ceil(32).max(1);
        let of_warp = bytes.div_ceil(width).checked_next_multiple_of(16)?;
        (width * 2 <= warps).then_some(of_warp.saturating_mul(warps))
    });
    let all = side_by_side.max().unwrap_or(0).min(warps * 32 * SHARED_BYTES_OF_THREAD);
    // What no block can have makes its launch fail.
    one.max(all).min(MAX_SHARED_BYTES).next_multiple_of(16)
}

/// By kernel, whether it lets the resident kernel have few registers where grids are launched seldom: it has `loops`
/// ([`graph::has_loops`]), and no grid waits for another (`waits`: [`graph::orders_grids`]).
pub fn may_lack_registers(loops: Vec<bool>, waits: bool) -> impl Iterator<Item = bool> {
    loops.into_iter().map(move |loops| loops && !waits)
}

/// By kernel, whether it launches or is launched, or uses streams.
pub(super) fn nests(module: &Module) -> Vec<bool> {
    let launched = graph::launched(module);
    let operates = graph::of_kernels(module, |function| {
        let mut kinds = function.instructions.iter().map(|inst| &inst.kind);
        kinds.any(is_runtime_operation)
    });
    let mut nests: Vec<bool> =
        launched.iter().zip(operates).map(|(any, operates)| !any.is_empty() || operates).collect();
    for kernel in launched.into_iter().flatten() {
        nests[kernel.index()] = true;
    }
    nests
}

/// Whether an instruction is an operation of the device runtime other than a launch.
pub(super) fn is_runtime_operation(kind: &InstKind) -> bool {
    matches!(
        kind,
        InstKind::Builtin {
            builtin: Builtin::StreamCreate | Builtin::StreamDestroy | Builtin::DeviceLastError,
            ..
        }
    ) || fill::is_fill(kind)
        || fill::is_copy(kind)
}

fn for_each_launch(module: &Module, mut visit: impl FnMut(&Function, &Launch)) {
    for function in &module.functions {
        for inst in &function.instructions {
            if let InstKind::Launch(launch) = &inst.kind {
                visit(function, launch);
            }
        }
    }
}

/// The value of a constant operand.
fn constant(function: &Function, operand: &Operand) -> Option<u64> {
    match operand {
        Operand::Const(Const::Int(_, value)) => u64::try_from(*value).ok(),
        Operand::Const(Const::Zero(_)) => Some(0),
        Operand::Inst(id) => match &function.instructions[id.index()].kind {
            InstKind::Cast(operand) => constant(function, operand),
            _ => None,
        },
        _ => None,
    }
}

/// The product of a `dim3` of constants.
fn constant_product(function: &Function, operand: &Operand) -> Option<u64> {
    let Operand::Inst(id) = operand else { return None };
    let InstKind::Aggregate(parts) = &function.instructions[id.index()].kind else { return None };
    parts.iter().map(|part| constant(function, part)).product()
}

/// By kernel, the end of its `shared` variables in a block's slice, in bytes, if the resident kernel runs it.
pub(super) fn shared_bytes(module: &Module) -> Vec<Option<u32>> {
    let nests = nests(module);
    let ends = shared_layout(module, &nests)
        .map_or_else(|_| vec![u32::MAX; nests.len()], |(_, ends)| ends);
    ends.into_iter().zip(nests).map(|(end, nests)| nests.then_some(end)).collect()
}

/// The offset of each `shared` variable in a block's slice, and by kernel the end of its own. Variables that no kernel
/// uses together may overlap.
fn shared_layout(module: &Module, nests: &[bool]) -> Result<(BTreeMap<GlobalId, u32>, Vec<u32>)> {
    let used = graph::used_globals(module, |global| global.space == Space::Shared);
    let mut ends = vec![0_u64; module.kernels.len()];
    let mut users: BTreeMap<GlobalId, Vec<usize>> = BTreeMap::new();
    for (kernel, globals) in used.iter().enumerate().filter(|(at, _)| nests[*at]) {
        globals.iter().for_each(|id| users.entry(*id).or_default().push(kernel));
    }
    let mut offsets = BTreeMap::new();
    for (id, kernels) in users {
        let global = &module.globals[id.index()];
        let layout = type_layout(&global.ty, &module.structs);
        let start = kernels.iter().map(|&kernel| ends[kernel]).max().unwrap_or(0);
        let start = start.next_multiple_of(layout.alignment);
        let end = start.saturating_add(layout.size);
        let offset = u32::try_from(end).map(|_| start as u32);
        let too_large = |_| Error::internal("launch", format!("`{}` is too large", global.name));
        offsets.insert(id, offset.map_err(too_large)?);
        kernels.iter().for_each(|&kernel| ends[kernel] = end);
    }
    Ok((offsets, ends.into_iter().map(|end| u32::try_from(end).unwrap_or(u32::MAX)).collect()))
}

/// By kernel, the properties that the scheduler asks for.
fn flags(module: &Module, early: &[EarlyReturns]) -> Vec<u32> {
    let reach = |is: &dyn Fn(&InstKind) -> bool| {
        graph::of_kernels(module, |function| {
            function.instructions.iter().any(|inst| is(&inst.kind))
        })
    };
    let launches_into = |is: fn(&Stream) -> bool| {
        reach(&|kind| matches!(kind, InstKind::Launch(launch) if is(&launch.stream)))
    };
    let tails = launches_into(|stream| *stream == Stream::Tail);
    // A value may be the default stream.
    let defaults = launches_into(|stream| matches!(stream, Stream::Default | Stream::Value(_)));
    let waits = graph::waits(module);
    let lane_dependent = reach(&|kind| {
        matches!(
            kind,
            InstKind::Builtin {
                builtin: Builtin::LaneId | Builtin::ActiveMask | Builtin::DeviceLastError,
                ..
            }
        )
    });
    let shares = uses_shared(module);
    let launched = graph::launched(module);
    (0..module.kernels.len())
        .map(|at| {
            let can_pack = !waits[at].block
                && !waits[at].warp
                && !lane_dependent[at]
                && !defaults[at]
                && !tails[at]
                && !shares[at];
            let bits = [
                (CAN_PACK, can_pack),
                (TAILS, tails[at]),
                (DEFAULTS, defaults[at]),
                (BARRIERS, waits[at].block),
                (RETURNS_EARLY, early[at].barriers),
                (LAUNCHES, !launched[at].is_empty()),
            ];
            bits.into_iter().filter(|(_, is)| *is).map(|(bit, _)| bit).sum()
        })
        .collect()
}

/// By kernel, whether it has no barriers, no `shared` variables and no default stream of its blocks, so that nothing joins the
/// warps of a block.
fn apart(module: &Module, flags: &[u32]) -> Vec<bool> {
    let joins = flags.iter().map(|flags| flags & (BARRIERS | DEFAULTS) != 0);
    joins.zip(uses_shared(module)).map(|(joins, shares)| !joins && !shares).collect()
}

/// By kernel, whether its code is so short that a warp takes longer to find out about a grid than to run a part of a block: it has no
/// loops and no warp operations. Without loops no thread waits for another, so without barriers the warps of a block may run one after
/// another.
fn is_short(module: &Module, loops: &[bool]) -> Vec<bool> {
    let calls = CallGraph::of(module);
    let recursive = calls.recursive();
    let is_unknown = |kind: &InstKind| matches!(kind, InstKind::CallExtern { .. });
    let may_be_long = calls.may_reach(|id| {
        let mut kinds = module.function(id).instructions.iter().map(|inst| &inst.kind);
        recursive[id.index()] || kinds.any(is_unknown)
    });
    // With those of the functions that it calls, as if they were in their places.
    let mut instructions = vec![0_usize; module.functions.len()];
    for at in calls.callees_first() {
        let function = &module.functions[at];
        let called = function.instructions.iter().filter_map(|inst| match &inst.kind {
            InstKind::Call { function, .. } => Some(instructions[function.index()]),
            _ => None,
        });
        instructions[at] = called.fold(function.instructions.len(), usize::saturating_add);
    }
    let kernels = module.kernels.iter().zip(loops).zip(graph::waits(module));
    kernels
        .map(|((kernel, loops), waits)| {
            let body = kernel.body.index();
            !loops && !waits.warp && !may_be_long[body] && instructions[body] <= MOST_SHORT
        })
        .collect()
}

/// By kernel, whether it uses shared memory, static or dynamic.
fn uses_shared(module: &Module) -> Vec<bool> {
    let shared = graph::used_globals(module, |global| global.space == Space::Shared);
    let extra = graph::uses_dynamic_shared(module);
    shared.iter().zip(extra).map(|(shared, extra)| !shared.is_empty() || extra).collect()
}

/// By function, in which blocks its warp operations begin with `meet`: those in which a kernel that may call it needs that.
pub(super) fn meeting(module: &Module, early: &[Blocks]) -> Vec<Blocks> {
    let calls = CallGraph::of(module);
    let mut meeting = vec![Blocks::None; module.functions.len()];
    for blocks in [Blocks::Unaligned, Blocks::All] {
        let mut bodies = vec![false; module.functions.len()];
        for (kernel, _) in module.kernels.iter().zip(early).filter(|(_, early)| **early >= blocks) {
            bodies[kernel.body.index()] = true;
        }
        for (meeting, _) in
            meeting.iter_mut().zip(calls.reached_from(&bodies)).filter(|(_, reached)| *reached)
        {
            *meeting = blocks;
        }
    }
    meeting
}

/// By kernel, in which blocks it, or a function that it may call, has warp operations that begin with `meet`.
fn meets(module: &Module, early: &[Blocks]) -> Vec<Blocks> {
    let calls = CallGraph::of(module);
    let meeting = meeting(module, early);
    let may = |blocks: Blocks| {
        calls.may_reach(|id| {
            let mut kinds = module.function(id).instructions.iter().map(|inst| &inst.kind);
            meeting[id.index()] >= blocks && kinds.any(takes_mask)
        })
    };
    let (some, all) = (may(Blocks::Unaligned), may(Blocks::All));
    let of_body = |body: FunctionId| match (some[body.index()], all[body.index()]) {
        (_, true) => Blocks::All,
        (true, _) => Blocks::Unaligned,
        _ => Blocks::None,
    };
    module.kernels.iter().map(|kernel| of_body(kernel.body)).collect()
}

/// Whether an instruction is a warp operation; its first argument is the mask.
pub(super) fn takes_mask(kind: &InstKind) -> bool {
    matches!(
        kind,
        InstKind::Builtin {
            builtin: Builtin::SyncWarp
                | Builtin::Shuffle(_)
                | Builtin::Vote(_)
                | Builtin::MatchAny
                | Builtin::Reduce(_),
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::shared_of_worker;

    #[test]
    fn small_blocks_run_side_by_side_as_far_as_shared_memory_goes() {
        // Floyd and Warshall's algorithm in tiles: blocks of 1,024 threads, and four of 256 in their place.
        assert_eq!(shared_of_worker(&[(1024, 4096), (1024, 8192), (256, 8192)], 1024), 32 * 1024);
        // Not all eight fit into 48 KiB.
        assert_eq!(shared_of_worker(&[(1024, 0), (128, 8192)], 1024), 48 * 1024);
        // A block alone may have more.
        assert_eq!(shared_of_worker(&[(256, 100 * 1024)], 1024), 100 * 1024);
        assert_eq!(shared_of_worker(&[(32, u32::MAX)], 1024), 200 * 1024);
        // A warp's part is a multiple of 16 bytes.
        assert_eq!(shared_of_worker(&[(128, 0), (32, 100)], 128), 4 * 112);
        // No second block fits beside these, and most need none.
        assert_eq!(shared_of_worker(&[(256, 100), (192, 400)], 256), 400);
        assert_eq!(shared_of_worker(&[(1, 0)], 1), 0);
        assert_eq!(shared_of_worker(&[], 1), 0);
    }
}
