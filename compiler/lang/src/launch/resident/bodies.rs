//! Replaces, in the code of kernels that the resident kernel runs, everything that relies on the hardware's blocks.
//!
//! | Operation | becomes |
//! |---|---|
//! | a `shared` variable | an offset in the slice of dynamic shared memory that the block has |
//! | `sync_threads`, `sync_threads_…` | a barrier of the block's team, but in some copies: see `whole.rs` |
//! | a mask of lanes | those of its lanes that the block has and, where it matters, that have not returned: see `warps.rs` |
//! | `stream_create`, `stream_destroy`, `device_last_error` | calls of the scheduler |
//!
//! Functions that ordinary kernels call too are copied first. The ordinary entries of these kernels only trap.

use std::collections::BTreeMap;

use super::plan::{Blocks, Plan, meeting};
use super::warps;
use super::whole;
use crate::builtins::{BlockReduceOp, Builtin};
use crate::error::Result;
use crate::ir::graph::CallGraph;
use crate::ir::{
    Addressed, BlockId, Function, FunctionId, GlobalId, Inst, InstId, InstKind, Module, Operand,
    Role, Space, Terminator, Variable,
};
use crate::launch::merge::{Added, NOWHERE};
use crate::source::Span;
use crate::types::{Scalar, Type};

/// Rewrites the kernels of the plan, and copies some. The scheduler has been added, and launches are still symbolic.
pub(super) fn rewrite(module: &mut Module, plan: &Plan, scheduler: &Added) -> Result<()> {
    let calls = Calls {
        slice: scheduler.function("slice")?,
        barrier: scheduler.function("block_barrier")?,
        count: scheduler.function("block_count")?,
        or: scheduler.function("block_or")?,
        and: scheduler.function("block_and")?,
        create_stream: scheduler.function("create_stream")?,
        destroy_stream: scheduler.function("destroy_stream")?,
        take_error: scheduler.function("take_error")?,
    };
    let own = separate(module, plan);
    let meeting = meeting(module, &plan.early_in_warps);
    let of_workers = whole::copy_for_workers(module, plan, &own);
    let all = own.iter().map(|id| (id, false)).chain(of_workers.iter().map(|id| (id, true)));
    for (id, keeps_barriers) in all {
        let shared = shared_variables(module, &module.functions[id.index()], plan);
        let function = &mut module.functions[id.index()];
        Body { function, calls: &calls, keeps_barriers }.rewrite(&shared);
    }
    whole::copy_for_warps(module, plan, &own);
    for id in own {
        let lanes = match meeting[id.index()] {
            Blocks::None => "lanes",
            Blocks::Unaligned => "meet_unaligned",
            Blocks::All => "meet",
        };
        let lanes = scheduler.function(lanes)?;
        // Aligned warps run copies.
        let meets = meeting[id.index()] == Blocks::All;
        warps::rewrite(&mut module.functions[id.index()], lanes, meets);
    }
    for at in 0..module.functions.len() {
        if let Role::Entry(kernel) = module.functions[at].role
            && plan.runs(kernel)
        {
            only_trap(&mut module.functions[at]);
        }
    }
    Ok(())
}

/// The functions of the scheduler that replace operations.
struct Calls {
    slice: FunctionId,
    barrier: FunctionId,
    count: FunctionId,
    or: FunctionId,
    and: FunctionId,
    create_stream: FunctionId,
    destroy_stream: FunctionId,
    take_error: FunctionId,
}

/// Copies the functions that kernels of both kinds call, and gives those that only the plan's kernels call.
fn separate(module: &mut Module, plan: &Plan) -> Vec<FunctionId> {
    let calls = CallGraph::of(module);
    let reached = |wanted: bool| {
        let mut bodies = vec![false; module.functions.len()];
        let kernels = module.kernels.iter().zip(&plan.nests);
        for (kernel, _) in kernels.filter(|(_, nests)| **nests == wanted) {
            bodies[kernel.body.index()] = true;
        }
        calls.reached_from(&bodies)
    };
    let (ordinary, nesting) = (reached(false), reached(true));
    let nesting: Vec<FunctionId> =
        (0..).map(FunctionId).zip(nesting).filter(|(_, is)| *is).map(|(id, _)| id).collect();
    let of_both = nesting.iter().copied().filter(|id| ordinary[id.index()]);
    let copies = copy_functions(module, of_both, ".resident");
    let own: Vec<FunctionId> =
        nesting.into_iter().map(|id| copies.get(&id).copied().unwrap_or(id)).collect();
    redirect_calls(module, &own, &copies);
    own
}

/// Copies functions, with a suffix to their names. Gives the copies by the functions.
pub(super) fn copy_functions(
    module: &mut Module,
    functions: impl Iterator<Item = FunctionId>,
    suffix: &str,
) -> BTreeMap<FunctionId, FunctionId> {
    let mut copies = BTreeMap::new();
    for id in functions {
        let mut copy = module.function(id).clone();
        copy.name.push_str(suffix);
        copies.insert(id, FunctionId(module.functions.len() as u32));
        module.functions.push(copy);
    }
    copies
}

/// Makes the `callers` call copies where there are some.
pub(super) fn redirect_calls(
    module: &mut Module,
    callers: &[FunctionId],
    copies: &BTreeMap<FunctionId, FunctionId>,
) {
    for id in callers {
        for inst in &mut module.functions[id.index()].instructions {
            if let InstKind::Call { function, .. } = &mut inst.kind
                && let Some(copy) = copies.get(function)
            {
                *function = *copy;
            }
        }
    }
}

/// A `shared` variable that a function names.
struct Shared {
    /// A pointer to it.
    ty: Type,
    /// Its offset in the slice.
    bytes: u32,
    /// How debuggers show it.
    variable: Option<Variable>,
}

/// The `shared` variables that a function names.
fn shared_variables(
    module: &Module,
    function: &Function,
    plan: &Plan,
) -> BTreeMap<GlobalId, Shared> {
    let mut found = BTreeMap::new();
    let mut note = |operand: &Operand| {
        if let Operand::Global(id) = operand
            && module.globals[id.index()].space == Space::Shared
        {
            let global = &module.globals[id.index()];
            let bytes = plan.offsets.get(id).copied().unwrap_or(0);
            let (ty, variable) = (Type::pointer_mut(global.ty.clone()), global.variable.clone());
            found.insert(*id, Shared { ty, bytes, variable });
        }
    };
    function.instructions.iter().for_each(|inst| inst.kind.for_each_operand(&mut note));
    for block in &function.blocks {
        if let Terminator::Return(Some(operand)) = &block.terminator {
            note(operand);
        }
    }
    found
}

struct Body<'m> {
    function: &'m mut Function,
    calls: &'m Calls,
    /// See `whole.rs`.
    keeps_barriers: bool,
}

impl Body<'_> {
    fn rewrite(mut self, shared: &BTreeMap<GlobalId, Shared>) {
        for at in 0..self.function.blocks.len() {
            let old = std::mem::take(&mut self.function.blocks[at].instructions);
            let mut new = Vec::with_capacity(old.len());
            for id in old {
                self.instruction(id, &mut new);
                new.push(id);
            }
            self.function.blocks[at].instructions = new;
        }
        if !shared.is_empty() {
            self.replace_shared(shared);
        }
    }

    fn add(&mut self, kind: InstKind, ty: Type, span: Span) -> InstId {
        self.function.instructions.push(Inst { kind, ty, span });
        InstId(self.function.instructions.len() as u32 - 1)
    }

    /// Replaces one instruction; `before` takes what must come before it.
    fn instruction(&mut self, id: InstId, before: &mut Vec<InstId>) {
        let Inst { kind, span, .. } = &self.function.instructions[id.index()];
        let span = *span;
        let InstKind::Builtin { builtin, arguments, .. } = kind else { return };
        let (builtin, mut arguments) = (*builtin, arguments.clone());
        let call = |function| InstKind::Call { function, arguments: arguments.clone() };
        let kind = match builtin {
            Builtin::SyncThreads | Builtin::SyncThreadsReduce(_) if self.keeps_barriers => return,
            Builtin::SyncThreads => call(self.calls.barrier),
            Builtin::SyncThreadsReduce(BlockReduceOp::Count) => call(self.calls.count),
            Builtin::SyncThreadsReduce(BlockReduceOp::And) => call(self.calls.and),
            Builtin::SyncThreadsReduce(BlockReduceOp::Or) => call(self.calls.or),
            Builtin::DeviceLastError => call(self.calls.take_error),
            Builtin::StreamCreate => {
                let handle = self.add(call(self.calls.create_stream), Type::U64, span);
                before.push(handle);
                InstKind::Cast(Operand::Inst(handle))
            }
            Builtin::StreamDestroy => {
                let stream = InstKind::Cast(arguments.remove(0));
                let handle = self.add(stream, Type::U64, span);
                before.push(handle);
                let arguments = vec![Operand::Inst(handle)];
                InstKind::Call { function: self.calls.destroy_stream, arguments }
            }
            _ => return,
        };
        self.function.instructions[id.index()].kind = kind;
    }

    /// Computes the addresses of `shared` variables at the start of the function.
    fn replace_shared(&mut self, shared: &BTreeMap<GlobalId, Shared>) {
        let span = self.function.span;
        let kind = InstKind::Call { function: self.calls.slice, arguments: vec![] };
        let slice = self.add(kind, Type::pointer_mut(Type::Scalar(Scalar::U8)), span);
        let mut first = vec![slice];
        let mut addresses = BTreeMap::new();
        for (global, Shared { ty, bytes, variable }) in shared {
            let kind = InstKind::ByteOffset { base: Operand::Inst(slice), bytes: *bytes };
            let address = self.add(kind, ty.clone(), span);
            if let Some(variable) = variable.clone() {
                self.function.addressed.push(Addressed { variable, address });
            }
            first.push(address);
            addresses.insert(*global, Operand::Inst(address));
        }
        let replace = |operand: &mut Operand| {
            if let Operand::Global(id) = operand
                && let Some(address) = addresses.get(id)
            {
                *operand = address.clone();
            }
        };
        for inst in &mut self.function.instructions {
            inst.kind.for_each_operand_mut(replace);
        }
        for block in &mut self.function.blocks {
            if let Terminator::Return(Some(operand)) = &mut block.terminator {
                replace(operand);
            }
        }
        let entry = &mut self.function.blocks[BlockId(0).index()].instructions;
        entry.splice(0..0, first);
    }
}

/// Replaces the work of an ordinary entry: the host must launch the resident kernel.
fn only_trap(entry: &mut Function) {
    let kind = InstKind::Builtin { builtin: Builtin::Trap, arguments: vec![], format: None };
    entry.instructions = vec![Inst { kind, ty: Type::Unit, span: NOWHERE }];
    entry.blocks.truncate(1);
    entry.blocks[0].instructions = vec![InstId(0)];
    entry.blocks[0].terminator = Terminator::Unreachable;
    entry.slots.clear();
}
