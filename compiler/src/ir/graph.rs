//! Who calls, who launches and who uses what.

use super::{FunctionId, GEOMETRY_DYNAMIC_SHARED, GlobalId, InstKind, KernelId, Module, Operand};
use crate::builtins::Builtin;
use crate::types::Type;

/// `from` and every function that it may call, directly or through others, in the order of their ids.
/// A launch is no call.
pub fn reachable(module: &Module, from: FunctionId) -> Vec<FunctionId> {
    let mut reached = vec![false; module.functions.len()];
    let mut open = vec![from];
    while let Some(function) = open.pop() {
        if std::mem::replace(&mut reached[function.index()], true) {
            continue;
        }
        for inst in &module.function(function).instructions {
            if let InstKind::Call { function: callee, .. } = &inst.kind {
                open.push(*callee);
            }
        }
    }
    let ids = reached.iter().enumerate().filter(|(_, reached)| **reached);
    ids.map(|(index, _)| FunctionId(index as u32)).collect()
}

/// The kernels that a kernel, or a function that it may call, may launch: each once, in the order of the
/// source. The answer is the same before and after launches are lowered.
pub fn launched_by(module: &Module, kernel: KernelId) -> Vec<KernelId> {
    let mut launched = vec![false; module.kernels.len()];
    for function in reachable(module, module.kernel(kernel).body) {
        for inst in &module.function(function).instructions {
            if let InstKind::Launch(launch) = &inst.kind {
                launched[launch.kernel.index()] = true;
            }
            inst.kind.for_each_operand(|operand| {
                if let Operand::Kernel(kernel) = operand {
                    launched[kernel.index()] = true;
                }
            });
        }
    }
    let ids = launched.iter().enumerate().filter(|(_, launched)| **launched);
    ids.map(|(index, _)| KernelId(index as u32)).collect()
}

/// The globals that a function, and every function that it may call, uses: each once, in the order of the
/// module.
pub fn used_globals(module: &Module, function: FunctionId) -> Vec<GlobalId> {
    let mut used = vec![false; module.globals.len()];
    for function in reachable(module, function) {
        for inst in &module.function(function).instructions {
            if let InstKind::Builtin { format: Some(format), .. } = &inst.kind {
                used[format.index()] = true;
            }
            inst.kind.for_each_operand(|operand| {
                if let Operand::Global(global) = operand {
                    used[global.index()] = true;
                }
            });
        }
    }
    let ids = used.iter().enumerate().filter(|(_, used)| **used);
    ids.map(|(index, _)| GlobalId(index as u32)).collect()
}

/// Whom the threads of a kernel wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// All threads of the block: barriers.
    pub block: bool,
    /// Threads of the warp: shuffles, votes and barriers over a mask of lanes.
    pub warp: bool,
}

/// Whom a kernel, or a function that it may call, waits for.
pub fn waits(module: &Module, kernel: KernelId) -> Waits {
    let mut waits = Waits::default();
    for id in reachable(module, module.kernel(kernel).body) {
        for inst in &module.function(id).instructions {
            let InstKind::Builtin { builtin, .. } = &inst.kind else { continue };
            match builtin {
                Builtin::SyncThreads | Builtin::SyncThreadsReduce(_) => waits.block = true,
                Builtin::SyncWarp
                | Builtin::Shuffle(_)
                | Builtin::Vote(_)
                | Builtin::MatchAny
                | Builtin::Reduce(_)
                | Builtin::ActiveMask => waits.warp = true,
                _ => {}
            }
        }
    }
    waits
}

/// Whether a kernel, or a function that it may call, reads the base of the dynamic shared memory.
pub fn uses_dynamic_shared(module: &Module, kernel: KernelId) -> bool {
    reachable(module, module.kernel(kernel).body).into_iter().any(|id| {
        let function = module.function(id);
        function.instructions.iter().any(|inst| match &inst.kind {
            InstKind::Extract { base, index: GEOMETRY_DYNAMIC_SHARED } => {
                module.operand_type(function, base) == Type::GEOMETRY
            }
            _ => false,
        })
    })
}
