//! Turns: in kernels that launch into the tail stream, the lanes of a warp that are together call the device runtime in turn with
//! the others.
//!
//! The device runtime hangs if diverged lanes of a warp launch at the same time and one of them launches into the tail
//! stream: both wait in `cudaGetParameterBufferV2` for ever (seen on an H200 with driver 580.159.04, with code of both
//! back ends at `-O 0` and `-O 3`; never between launches separated by `sync_warp`, nor in programs without a tail
//! launch). The lanes of a warp cannot be kept together everywhere. Each function of the device runtime therefore gets another with
//! the same parameters, which is called in its place:
//! ```text
//! fn gridlet.turn.cudaLaunchDeviceV2(…) -> i32
//!   call @gridlet.await_turn()
//!   %0: i32 = call extern @cudaLaunchDeviceV2(…)
//!   call @gridlet.end_turn()
//!   return %0
//! ```
//! It stays out of line: two such calls in the branches of an `if` must not become one `gridlet.await_turn` before the branch.
//!
//! `turns.grid` holds what waits. A lane that waits does not block the others of its warp: sm_70 and later guarantee it (CUDA C++
//! Programming Guide, "Independent Thread Scheduling"). But no branch stands around the loop that waits: with two of them,
//! `tails_of_many_lanes.grid` hung in each run (H200, driver 580.159.04). Probably lanes wait at the end of a branch for others whose turn is
//! after theirs.
//!
//! A word has the lanes whose turn it is, and each lane waits for its own bit. Before, the word counted lanes, the first lane of a group waited
//! for all, and the others waited for it at `sync_warp`: two random launch trees hung in each run. A dump showed the first lane of a
//! group waiting for ever, and that all others had launched (H200, driver 580.159.04, 2026-11-28): at the `YIELD` of the loop, the others of
//! the group seem to go on from `sync_warp`, launch before their turn, and make the count less than 0.
//!
//! All lanes of a warp run the same kernel. The launches of a kernel therefore need turns only if the kernel, or a function
//! that it may call, launches into the tail stream. Such a function takes turns whichever kernel calls it, and every kernel that
//! may call one clears its warps' words first, with `call @gridlet.open_turns()`. A kernel whose blocks have one thread
//! (`#[launch_bounds(1)]`) has no lanes that could be apart, so its tail launches need none. Where a kernel without such bounds is
//! launched with one thread, `gridlet.open_turns` writes that there are none.
//!
//! Where a kernel launches only in the thread that `thread_idx.x` chooses (`one_thread.rs`), `call @gridlet.open_row()` opens the turns: in
//! blocks of one row it writes that there are none. They took 2 % of the time of shortest paths in a grid at most (docs/measurements.md).
//!
//! Code that lets lanes run apart needs turns without tail launches, too; only the machine code shows it (`ptx/turns.rs` in `gridlet`).

use std::collections::BTreeMap;

use super::one_thread;
use super::symbols::{
    AWAIT_TURN, END_TURN, IN_TURN, INSIDE, OPEN_ROW, OPEN_TURNS, TURNS, runtime_function,
};
use crate::error::Result;
use crate::ir::build::{BodyBuilder, Signature};
use crate::ir::graph::CallGraph;
use crate::ir::{
    Extern, ExternId, Function, FunctionId, Inst, InstId, InstKind, LaunchBounds, Module, Operand,
    Parameter, Role, Stream, Terminator,
};
use crate::launch::merge::{self, NOWHERE};
use crate::types::Type;

/// Whether a function of a lowered module must not be inlined.
pub(super) fn stays_out_of_line(function: &str) -> bool {
    function.starts_with(IN_TURN)
}

/// By function of a module whose launches are symbolic, whether its calls of the device runtime need turns: a kernel that
/// launches into the tail stream and whose blocks may have several threads may call it.
pub(super) fn need_turns(module: &Module) -> Vec<bool> {
    let calls = CallGraph::of(module);
    let is_tail = |inst: &Inst| matches!(&inst.kind, InstKind::Launch(launch) if launch.stream == Stream::Tail);
    let launches_into_tail =
        calls.may_reach(|id| module.function(id).instructions.iter().any(is_tail));
    let bodies = launches_into_tail.into_iter().zip(&module.functions);
    let bodies = bodies.map(|(tail, function)| match function.role {
        Role::Body(kernel) => {
            tail && !LaunchBounds::is_one_thread(module.kernel(kernel).launch_bounds)
        }
        _ => false,
    });
    calls.reached_from(&bodies.collect::<Vec<_>>())
}

/// Makes the functions that `need` turns call the device runtime in turns. Launches and the other operations of the device runtime
/// are lowered already; `need` has the functions from before.
pub(super) fn take_turns(module: &mut Module, need: &[bool]) -> Result<()> {
    let calls = CallGraph::of(module);
    let called = called_by(module, need);
    if called.is_empty() {
        return Ok(());
    }
    let may_take_turns = calls.may_reach(|id| {
        need.get(id.index()) == Some(&true) && calls_device_runtime(module, module.function(id))
    });
    let launches_with_one_thread = launch_with_one_thread(module, &may_take_turns);
    let own = module.functions.len();
    let added = merge::add(module, "turns.grid", include_str!("turns.grid"), |name| match name {
        "open_turns" => OPEN_TURNS.into(),
        "open_row" => OPEN_ROW.into(),
        "await_turn" => AWAIT_TURN.into(),
        "end_turn" => END_TURN.into(),
        "inside" => INSIDE.into(),
        _ => TURNS.into(),
    })?;
    module.functions[own..].iter_mut().for_each(|function| read_geometry(function, own));
    let [open, open_row, wait, end] =
        ["open_turns", "open_row", "await_turn", "end_turn"].map(|name| added.function(name));
    let (open, open_row, wait, end) = (open?, open_row?, wait?, end?);

    let mut in_turn = BTreeMap::new();
    for id in called {
        let function = build_in_turn(id, &module.externs[id.index()], wait, end)?;
        in_turn.insert(id.0, FunctionId(module.functions.len() as u32));
        module.functions.push(function);
    }
    for (function, _) in module.functions.iter_mut().zip(need).filter(|(_, need)| **need) {
        for inst in &mut function.instructions {
            if let InstKind::CallExtern { function, arguments } = &mut inst.kind
                && let Some(function) = in_turn.get(&function.0)
            {
                let arguments = std::mem::take(arguments);
                inst.kind = InstKind::Call { function: *function, arguments };
            }
        }
    }
    for (at, function) in module.functions.iter_mut().enumerate().take(own) {
        if may_take_turns[at] && matches!(function.role, Role::Body(_)) {
            let open = if launches_with_one_thread[at] { open_row } else { open };
            let kind = InstKind::Call { function: open, arguments: vec![] };
            function.instructions.push(Inst { kind, ty: Type::Unit, span: function.span });
            let call = InstId(function.instructions.len() as u32 - 1);
            function.blocks[0].instructions.insert(0, call);
        }
    }
    Ok(())
}

/// By function, whether it calls the device runtime, itself and not in others that take turns, and with one thread of a block at most if
/// the block has one row.
fn launch_with_one_thread(module: &Module, may_take_turns: &[bool]) -> Vec<bool> {
    let calls_others = |kind: &InstKind| matches!(kind, InstKind::Call { function, .. } if may_take_turns[function.index()]);
    let calls_runtime = |kind: &InstKind| matches!(kind, InstKind::CallExtern { function, .. } if is_of_device_runtime(module, *function));
    let with_one = |function: &Function| {
        !function.instructions.iter().any(|inst| calls_others(&inst.kind))
            && one_thread::executes(function, |id| {
                calls_runtime(&function.instructions[id.index()].kind)
            })
    };
    module.functions.iter().map(with_one).collect()
}

/// Makes an added function read the geometry from the hardware: not all functions that launch have it. `own` functions come before
/// the added ones.
fn read_geometry(function: &mut Function, own: usize) {
    for inst in &mut function.instructions {
        if let InstKind::Call { function, arguments } = &mut inst.kind
            && function.index() >= own
        {
            arguments.remove(0);
        }
    }
    function.takes_geometry = false;
    function.parameters.remove(0);
    let geometry = InstId(function.instructions.len() as u32);
    let mut is_read = false;
    for inst in &mut function.instructions {
        inst.kind.for_each_operand_mut(|operand| {
            if *operand == Operand::Parameter(0) {
                *operand = Operand::Inst(geometry);
                is_read = true;
            }
        });
    }
    if is_read {
        let kind = InstKind::HardwareGeometry;
        function.instructions.push(Inst { kind, ty: Type::GEOMETRY, span: NOWHERE });
        function.blocks[0].instructions.insert(0, geometry);
    }
}

fn is_of_device_runtime(module: &Module, function: ExternId) -> bool {
    let item = &module.externs[function.index()];
    item.span.is_none() && runtime_function(&item.name).is_some()
}

/// The functions of the device runtime that a function calls.
fn runtime_calls<'m>(
    module: &'m Module,
    function: &'m Function,
) -> impl Iterator<Item = ExternId> + 'm {
    function.instructions.iter().filter_map(|inst| match &inst.kind {
        InstKind::CallExtern { function, .. } if is_of_device_runtime(module, *function) => {
            Some(*function)
        }
        _ => None,
    })
}

fn calls_device_runtime(module: &Module, function: &Function) -> bool {
    runtime_calls(module, function).next().is_some()
}

/// The functions of the device runtime that the functions that `need` turns call, each once.
fn called_by(module: &Module, need: &[bool]) -> Vec<ExternId> {
    let functions = module.functions.iter().zip(need).filter(|(_, need)| **need);
    let mut called: Vec<ExternId> =
        functions.flat_map(|(function, _)| runtime_calls(module, function)).collect();
    called.sort_by_key(|id| id.0);
    called.dedup();
    called
}

/// A function that calls one of the device runtime in turn.
fn build_in_turn(
    id: ExternId,
    called: &Extern,
    wait: FunctionId,
    end: FunctionId,
) -> Result<Function> {
    let mut body = BodyBuilder::new();
    let call = |function| InstKind::Call { function, arguments: vec![] };
    body.emit(call(wait), Type::Unit, NOWHERE);
    let arguments = (0..called.parameters.len() as u32).map(Operand::Parameter).collect();
    let kind = InstKind::CallExtern { function: id, arguments };
    let result = body.emit(kind, called.result.clone(), NOWHERE);
    body.emit(call(end), Type::Unit, NOWHERE);
    body.terminate(Terminator::Return(Some(result)));
    let parameters = called.parameters.iter().enumerate();
    let parameters =
        parameters.map(|(at, ty)| Parameter { name: format!("p{at}"), ty: ty.clone() });
    body.finish(Signature {
        name: format!("{IN_TURN}{}", called.name),
        role: Role::Device,
        takes_geometry: false,
        parameters: parameters.collect(),
        result: called.result.clone(),
        span: NOWHERE,
    })
}
