//! The graph of calls, launches and uses of globals.
//!
//! Each query answers for a whole module at once: a separate walk per kernel would take time proportional to
//! kernels times functions.

use super::{
    Block, BlockId, Function, FunctionId, GEOMETRY_DYNAMIC_SHARED, Global, GlobalId, InstKind,
    KernelId, Module, Operand, Stream, reach,
};
use crate::builtins::{Memory, WaitsFor};
use crate::types::Type;

/// The call graph. Launches are not calls.
#[derive(Clone, Debug)]
pub struct CallGraph {
    /// By function, its callees, each once.
    callees: Vec<Vec<usize>>,
}

impl CallGraph {
    /// The calls of a module.
    pub fn of(module: &Module) -> Self {
        let callees = module.functions.iter().map(|function| {
            let called = function.instructions.iter().filter_map(|inst| match &inst.kind {
                InstKind::Call { function, .. } => Some(function.index()),
                _ => None,
            });
            each_once(called.collect())
        });
        CallGraph { callees: callees.collect() }
    }

    /// By function, whether `is` holds for it or for a function that it may call, directly or indirectly.
    pub fn may_reach(&self, is: impl Fn(FunctionId) -> bool) -> Vec<bool> {
        let edges = self.callees.iter().enumerate();
        let edges = edges.flat_map(|(from, callees)| callees.iter().map(move |&to| (from, to)));
        let seeds = (0..self.callees.len()).filter(|&at| is(FunctionId(at as u32)));
        reach::leading_to(self.callees.len(), edges, seeds)
    }

    /// By function, whether it is one of `from`, or one of these may call it, directly or indirectly.
    pub fn reached_from(&self, from: &[bool]) -> Vec<bool> {
        let edges = self.callees.iter().enumerate();
        let edges = edges.flat_map(|(from, callees)| callees.iter().map(move |&to| (to, from)));
        let seeds = (0..self.callees.len()).filter(|&at| from[at]);
        reach::leading_to(self.callees.len(), edges, seeds)
    }

    /// The functions in an order in which each comes after those that it calls, unless they also call it.
    pub fn callees_first(&self) -> Vec<usize> {
        reach::post_order(&self.callees)
    }

    /// By function, whether it may call itself, directly or indirectly.
    pub fn recursive(&self) -> Vec<bool> {
        reach::on_cycles(&self.callees)
    }

    /// By kernel, the union of `own` over its body and all functions that it may call, without duplicates and
    /// in ascending order. `own` is each function's own contribution.
    fn gather<T: Copy + Ord>(&self, module: &Module, own: &[Vec<T>]) -> Vec<Vec<T>> {
        let has_any = self.may_reach(|id| !own[id.index()].is_empty());
        let mut seen_by = vec![usize::MAX; self.callees.len()];
        let of_kernel = |(kernel, body): (usize, usize)| {
            let mut all = Vec::new();
            let mut open = vec![body];
            while let Some(function) = open.pop() {
                let is_new = std::mem::replace(&mut seen_by[function], kernel) != kernel;
                if is_new && has_any[function] {
                    all.extend_from_slice(&own[function]);
                    open.extend(&self.callees[function]);
                }
            }
            each_once(all)
        };
        let bodies = module.kernels.iter().map(|kernel| kernel.body.index());
        bodies.enumerate().map(of_kernel).collect()
    }
}

fn each_once<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort_unstable();
    items.dedup();
    items
}

/// By kernel, whether `is` holds for its body or for a function that it may call.
pub fn of_kernels(module: &Module, is: impl Fn(&Function) -> bool) -> Vec<bool> {
    let may = CallGraph::of(module).may_reach(|id| is(module.function(id)));
    module.kernels.iter().map(|kernel| may[kernel.body.index()]).collect()
}

/// By kernel, whether its threads may learn what other threads wrote while they run: by barriers, operations of a warp,
/// atomic operations and fences, or in a linked module.
pub fn exchanges(module: &Module) -> Vec<bool> {
    of_kernels(module, |function| {
        function.instructions.iter().any(|inst| match &inst.kind {
            InstKind::Builtin { builtin, .. } => {
                let properties = builtin.properties();
                properties.waits != WaitsFor::No
                    || matches!(properties.memory, Memory::Fence | Memory::Atomic(_))
            }
            InstKind::CallExtern { function, .. } => {
                module.externs.get(function.index()).is_some_and(|item| item.span.is_some())
            }
            _ => false,
        })
    })
}

/// By kernel, the kernels that it, or a function that it may call, may launch: without duplicates, in source
/// order. The result is the same before and after launches are lowered.
pub fn launched(module: &Module) -> Vec<Vec<KernelId>> {
    let own = module.functions.iter().map(|function| {
        let mut launched = Vec::new();
        for inst in &function.instructions {
            if let InstKind::Launch(launch) = &inst.kind {
                launched.push(launch.kernel);
            }
            inst.kind.for_each_operand(|operand| {
                if let Operand::Kernel(kernel) = operand {
                    launched.push(*kernel);
                }
            });
        }
        each_once(launched)
    });
    CallGraph::of(module).gather(module, &own.collect::<Vec<_>>())
}

/// By kernel, the globals that it, or a function that it may call, uses, as far as `is` selects them: without
/// duplicates, in the order of the module.
pub fn used_globals(module: &Module, is: impl Fn(&Global) -> bool) -> Vec<Vec<GlobalId>> {
    let own = module.functions.iter().map(|function| {
        let mut used = Vec::new();
        let mut note = |id: GlobalId| {
            if is(&module.globals[id.index()]) {
                used.push(id);
            }
        };
        for inst in &function.instructions {
            if let InstKind::Builtin { format: Some(format), .. } = &inst.kind {
                note(*format);
            }
            inst.kind.for_each_operand(|operand| {
                if let Operand::Global(global) = operand {
                    note(*global);
                }
            });
        }
        each_once(used)
    });
    CallGraph::of(module).gather(module, &own.collect::<Vec<_>>())
}

/// The scopes in which a kernel's threads wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// All threads of the block: barriers.
    pub block: bool,
    /// Threads of the warp: shuffles, votes and barriers over a mask of lanes.
    pub warp: bool,
}

/// By kernel, the scopes in which it, or a function that it may call, waits.
pub fn waits(module: &Module) -> Vec<Waits> {
    let waits_for = |wanted: WaitsFor| {
        of_kernels(module, |function| {
            function.instructions.iter().any(|inst| match &inst.kind {
                InstKind::Builtin { builtin, .. } => builtin.properties().waits == wanted,
                _ => false,
            })
        })
    };
    let (block, warp) = (waits_for(WaitsFor::Block), waits_for(WaitsFor::Warp));
    block.into_iter().zip(warp).map(|(block, warp)| Waits { block, warp }).collect()
}

/// By block of a function, the indices of its successors.
pub(crate) fn control_flow(function: &Function) -> Vec<Vec<usize>> {
    let next = |block: &Block| block.terminator.successors().map(BlockId::index).collect();
    function.blocks.iter().map(next).collect()
}

/// By kernel, whether it, or a function that it may call, has a loop.
pub fn has_loops(module: &Module) -> Vec<bool> {
    of_kernels(module, has_loop)
}

/// By function, whether it, or one that it may call, has a loop.
pub fn functions_with_loops(module: &Module) -> Vec<bool> {
    CallGraph::of(module).may_reach(|id| has_loop(module.function(id)))
}

fn has_loop(function: &Function) -> bool {
    reach::on_cycles(&control_flow(function)).contains(&true)
}

/// Whether a kernel that is launched launches in turn; `launched`: see [`launched()`].
pub fn launches_in_levels(launched: &[Vec<KernelId>]) -> bool {
    launched.iter().flatten().any(|kernel| !launched[kernel.index()].is_empty())
}

/// Whether a kernel launches into a stream that orders grids: any but fire and forget.
pub fn orders_grids(module: &Module) -> bool {
    let orders = of_kernels(module, |function| {
        function.instructions.iter().any(|inst| match &inst.kind {
            InstKind::Launch(launch) => launch.stream != Stream::FireAndForget,
            _ => false,
        })
    });
    orders.contains(&true)
}

/// By kernel, whether it, or a function that it may call, reads memory in a loop of its own. Local variables as such are no memory.
pub fn reads_in_loops(module: &Module) -> Vec<bool> {
    of_kernels(module, |function| {
        let in_loop = reach::on_cycles(&control_flow(function));
        let mut looping = function.blocks.iter().zip(in_loop).filter(|(_, is_in_loop)| *is_in_loop);
        looping.any(|(block, _)| {
            block.instructions.iter().any(|id| match &function.instructions[id.index()].kind {
                InstKind::Load(from) => !matches!(from, Operand::Slot(_)),
                _ => false,
            })
        })
    })
}

/// By kernel, whether it, or a function that it may call, reads the base of dynamic shared memory.
pub fn uses_dynamic_shared(module: &Module) -> Vec<bool> {
    of_kernels(module, |function| {
        function.instructions.iter().any(|inst| match &inst.kind {
            InstKind::Extract { base, index: GEOMETRY_DYNAMIC_SHARED } => {
                module.operand_type(function, base) == Type::GEOMETRY
            }
            _ => false,
        })
    })
}
