//! Kernels in which some threads may return while others still wait for them.

use super::{Scope, Uniformity, regions::Regions};
use crate::builtins::{Builtin, WaitsFor};
use crate::ir::graph::CallGraph;
use crate::ir::{BlockId, Function, FunctionId, InstKind, Module, Terminator, reach};

/// The operations of a kernel that threads may reach after other threads have returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyReturns {
    /// Barriers of the block. Also true if threads may pass different numbers of barriers.
    pub barriers: bool,
    /// Warp operations that wait for the lanes of a mask.
    pub warp_operations: bool,
    /// These also in blocks whose warps are [aligned](Scope::AlignedWarp).
    pub in_aligned_warps: bool,
}

/// By kernel, whether a thread may return from it while another thread of its block can still reach a barrier, or one of
/// its warp a warp operation. Conservative: true unless shown to be false.
///
/// External functions count as functions that do not wait. A warp operation that only some lanes reach is assumed to name
/// no other lanes in its mask, unless these return without another barrier or warp operation on their way.
pub fn returns_before(module: &Module) -> Vec<EarlyReturns> {
    let calls = CallGraph::of(module);
    let waits = [WaitsFor::Block, WaitsFor::Warp].map(|scope| Waiting::of(module, &calls, scope));
    let [barriers, warp_operations] = &waits;
    let of_kernels = |is: &[bool]| {
        let may = calls.may_reach(|id| is[id.index()]);
        module.kernels.iter().map(|kernel| may[kernel.body.index()]).collect::<Vec<_>>()
    };

    let in_block = Uniformity::of(module, Scope::Block, |_| false);
    // Between a branch and its post-dominator, one thread may pass a barrier that another one does not. Without barriers
    // there, all threads go through the same barriers, whether they return early or not.
    let splits = per_function(module, |id, function| {
        blocks(function).any(|block| in_block.is_partial(id, block) && barriers.has(id, block))
    });
    let before_barriers = of_kernels(&splits);

    // In a kernel whose threads may pass different barriers, these order no loads.
    let mut split = vec![false; module.functions.len()];
    for (kernel, _) in module.kernels.iter().zip(&before_barriers).filter(|(_, is)| **is) {
        split[kernel.body.index()] = true;
    }
    let split = calls.reached_from(&split);
    let ends = Ends::of(module, &calls, &waits);
    let leaves = |scope| {
        let in_warp = Uniformity::of(module, scope, |id| split[id.index()]);
        let leaves = per_function(module, |id, function| {
            if !warp_operations.functions[id.index()] {
                return false;
            }
            let mut regions = Regions::of(function);
            for block in blocks(function).filter(|block| {
                in_warp.branch_varies(module, id, *block)
                    && ends.one_side_ends(function, id, *block)
            }) {
                regions.add(function, block);
            }
            blocks(function).any(|block| regions.has(block) && warp_operations.has(id, block))
        });
        of_kernels(&leaves)
    };
    let before_warp_operations = leaves(Scope::Warp);
    let in_aligned_warps = match before_warp_operations.contains(&true) {
        true => leaves(Scope::AlignedWarp),
        false => vec![false; module.kernels.len()],
    };
    before_barriers
        .into_iter()
        .zip(before_warp_operations)
        .zip(in_aligned_warps)
        .map(|((barriers, warp_operations), in_aligned_warps)| EarlyReturns {
            barriers,
            warp_operations,
            in_aligned_warps,
        })
        .collect()
}

fn blocks(function: &Function) -> impl Iterator<Item = BlockId> + use<> {
    (0..function.blocks.len() as u32).map(BlockId)
}

fn per_function(module: &Module, is: impl Fn(FunctionId, &Function) -> bool) -> Vec<bool> {
    let functions = module.functions.iter().enumerate();
    functions.map(|(at, function)| is(FunctionId(at as u32), function)).collect()
}

/// Whether an operation waits for other threads of a scope.
fn waits_for(kind: &InstKind, scope: WaitsFor) -> bool {
    match kind {
        InstKind::Builtin { builtin: Builtin::ActiveMask, .. } => false,
        InstKind::Builtin { builtin, .. } => builtin.properties().waits == scope,
        _ => false,
    }
}

/// Where threads wait for others of a scope.
struct Waiting {
    /// By function, whether it waits, itself or in a function that it may call.
    functions: Vec<bool>,
    /// By function and block, the same.
    blocks: Vec<Vec<bool>>,
}

impl Waiting {
    fn of(module: &Module, calls: &CallGraph, scope: WaitsFor) -> Self {
        let functions = calls.may_reach(|id| {
            module.function(id).instructions.iter().any(|inst| waits_for(&inst.kind, scope))
        });
        let of_function = |function: &Function| {
            let waits = |kind: &InstKind| match kind {
                InstKind::Call { function, .. } => functions[function.index()],
                kind => waits_for(kind, scope),
            };
            let block = |block: &crate::ir::Block| {
                block.instructions.iter().any(|id| waits(&function.instructions[id.index()].kind))
            };
            function.blocks.iter().map(block).collect()
        };
        let blocks = module.functions.iter().map(of_function).collect();
        Waiting { functions, blocks }
    }

    fn has(&self, function: FunctionId, block: BlockId) -> bool {
        self.blocks[function.index()][block.index()]
    }
}

/// From where a thread can return from the kernel without waiting for others on the way.
struct Ends {
    /// By function and block: whether the function can return so from the beginning of the block.
    blocks: Vec<Vec<bool>>,
    /// By function: whether the kernel can return so once this function has returned.
    after: Vec<bool>,
}

impl Ends {
    fn of(module: &Module, calls: &CallGraph, waits: &[Waiting; 2]) -> Self {
        // Only functions in which every path waits hold a thread up; a recursive call is assumed not to.
        let mut holds = vec![false; module.functions.len()];
        let mut all = vec![Vec::new(); module.functions.len()];
        for at in calls.callees_first() {
            let id = FunctionId(at as u32);
            let function = module.function(id);
            if !waits.iter().any(|waits| waits.functions[at]) {
                all[at] = ends_of(function, |_| false);
                continue;
            }
            all[at] = ends_of(function, |kind| is_held(kind, &holds));
            holds[at] = !all[at].first().copied().unwrap_or(true);
        }
        let mut ends = Ends { blocks: all, after: vec![false; module.functions.len()] };
        let mut open: Vec<FunctionId> = module.kernels.iter().map(|kernel| kernel.body).collect();
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut ends.after[id.index()], true) {
                ends.calls_before_end(module, id, &holds, &mut open);
            }
        }
        ends
    }

    /// Lists the calls after which a function can return without waiting.
    fn calls_before_end(
        &self,
        module: &Module,
        id: FunctionId,
        holds: &[bool],
        found: &mut Vec<FunctionId>,
    ) {
        let function = module.function(id);
        for block in &function.blocks {
            let mut successors = block.terminator.successors();
            if !matches!(block.terminator, Terminator::Return(_))
                && !successors.any(|to| self.blocks[id.index()][to.index()])
            {
                continue;
            }
            for inst in block.instructions.iter().rev() {
                let kind = &function.instructions[inst.index()].kind;
                if let InstKind::Call { function, .. } = kind {
                    found.push(*function);
                }
                if is_held(kind, holds) {
                    break;
                }
            }
        }
    }

    /// Whether a thread that takes one of the sides of a branch can return from the kernel without waiting.
    fn one_side_ends(&self, function: &Function, id: FunctionId, branch: BlockId) -> bool {
        let mut sides = function.blocks[branch.index()].terminator.successors();
        self.after[id.index()] && sides.any(|to| self.blocks[id.index()][to.index()])
    }
}

fn is_held(kind: &InstKind, holds: &[bool]) -> bool {
    match kind {
        InstKind::Call { function, .. } => holds[function.index()],
        kind => waits_for(kind, WaitsFor::Block) || waits_for(kind, WaitsFor::Warp),
    }
}

/// By block, whether the function can return from its beginning without an operation for which `holds` is true.
fn ends_of(function: &Function, holds: impl Fn(&InstKind) -> bool) -> Vec<bool> {
    let open: Vec<bool> = function
        .blocks
        .iter()
        .map(|block| {
            !block.instructions.iter().any(|id| holds(&function.instructions[id.index()].kind))
        })
        .collect();
    let edges = function.blocks.iter().enumerate().filter(|(at, _)| open[*at]);
    let edges = edges
        .flat_map(|(from, block)| block.terminator.successors().map(move |to| (from, to.index())));
    let returns =
        |at: &usize| open[*at] && matches!(function.blocks[*at].terminator, Terminator::Return(_));
    reach::leading_to(function.blocks.len(), edges, (0..function.blocks.len()).filter(returns))
}
