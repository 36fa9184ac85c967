//! Turns: in kernels that launch into the tail stream, one thread of a block launches at a time.
//!
//! The device runtime hangs if diverged lanes of a warp launch at the same time and one of them launches into the tail
//! stream: both wait in `cudaGetParameterBufferV2` for ever (seen on an H200 with driver 580.159.04, with code of both
//! back ends at `-O 0` and `-O 3`; never between launches separated by `sync_warp`, nor in programs without a tail
//! launch). The lanes of a warp cannot be kept together everywhere, so they take turns:
//! ```text
//!   call @gridlet.await_turn()
//!   launch child<<<…, stream = tail>>>(…)
//!   call @gridlet.end_turn()
//! ```
//! A word of shared memory tells whether a thread is launching. A thread that waits does not block the others of its warp:
//! sm_70 and later guarantee it (CUDA C++ Programming Guide, "Independent Thread Scheduling").
//!
//! All lanes of a warp run the same kernel. The launches of a kernel therefore need turns only if the kernel, or a function
//! that it may call, launches into the tail stream. Such a function takes turns whichever kernel calls it, and every kernel that
//! may call one clears the word first, with `call @gridlet.open_turns()`.
//!
//! The pass runs before launches are lowered.

use super::symbols::{AWAIT_TURN, END_TURN, OPEN_TURNS, TURN};
use crate::builtins::{AtomicOp, Builtin, Scope};
use crate::error::Result;
use crate::ir::build::{BodyBuilder, Signature};
use crate::ir::graph::CallGraph;
use crate::ir::{
    BinaryOp, Const, Function, FunctionId, Global, GlobalId, Init, Inst, InstId, InstKind, Module,
    Operand, Role, Space, Stream, Terminator,
};
use crate::source::{FileId, Span};
use crate::types::{Scalar, Type};

/// By function, whether its launches need turns: a kernel that launches into the tail stream may call it.
fn need_turns(module: &Module, calls: &CallGraph) -> Vec<bool> {
    let is_tail = |inst: &Inst| matches!(&inst.kind, InstKind::Launch(launch) if launch.stream == Stream::Tail);
    let launches_into_tail =
        calls.may_reach(|id| module.function(id).instructions.iter().any(is_tail));
    let bodies = launches_into_tail.into_iter().zip(&module.functions);
    let bodies = bodies.map(|(tail, function)| tail && matches!(function.role, Role::Body(_)));
    calls.reached_from(&bodies.collect::<Vec<_>>())
}

/// Makes the threads of a block launch in turns, in kernels that launch into the tail stream.
pub(super) fn take_turns(module: &mut Module) -> Result<()> {
    let calls = CallGraph::of(module);
    let need_turns = need_turns(module, &calls);
    let launches = |function: &Function| {
        function.instructions.iter().any(|inst| matches!(inst.kind, InstKind::Launch(_)))
    };
    let take_turns: Vec<bool> =
        need_turns.iter().zip(&module.functions).map(|(need, it)| *need && launches(it)).collect();
    if !take_turns.contains(&true) {
        return Ok(());
    }
    let may_take_turns = calls.may_reach(|id| take_turns[id.index()]);
    module.globals.push(Global {
        name: TURN.into(),
        space: Space::Shared,
        ty: Type::U32,
        init: Init::Unset,
        exported: false,
        variable: None,
    });
    let turn = Operand::Global(GlobalId(module.globals.len() as u32 - 1));
    let [open, wait, end] = [0, 1, 2].map(|at| FunctionId((module.functions.len() + at) as u32));
    for (at, function) in module.functions.iter_mut().enumerate() {
        if take_turns[at] {
            enclose_launches(function, wait, end);
        }
        if may_take_turns[at] && matches!(function.role, Role::Body(_)) {
            let call = call(function, open, function.span);
            function.blocks[0].instructions.insert(0, call);
        }
    }
    module.functions.extend([build_open(&turn)?, build_await(&turn)?, build_end(&turn)?]);
    Ok(())
}

/// Inserts a call before and after every launch of a function.
fn enclose_launches(function: &mut Function, before: FunctionId, behind: FunctionId) {
    for at in 0..function.blocks.len() {
        let old = std::mem::take(&mut function.blocks[at].instructions);
        let mut new = Vec::with_capacity(old.len());
        for id in old {
            let Inst { kind, span, .. } = &function.instructions[id.index()];
            if matches!(kind, InstKind::Launch(_)) {
                let span = *span;
                let before = call(function, before, span);
                new.extend([before, id, call(function, behind, span)]);
            } else {
                new.push(id);
            }
        }
        function.blocks[at].instructions = new;
    }
}

fn call(caller: &mut Function, function: FunctionId, span: Span) -> InstId {
    let kind = InstKind::Call { function, arguments: vec![] };
    caller.instructions.push(Inst { kind, ty: Type::Unit, span });
    InstId(caller.instructions.len() as u32 - 1)
}

fn nowhere() -> Span {
    Span::new(FileId(0), 0..0)
}

fn number(value: i128) -> Operand {
    Operand::Const(Const::Int(Scalar::U32, value))
}

fn finish(body: BodyBuilder, name: &str) -> Result<Function> {
    body.finish(Signature {
        name: name.into(),
        role: Role::Device,
        takes_geometry: false,
        parameters: vec![],
        result: Type::Unit,
        span: nowhere(),
    })
}

/// Sets the word, and returns its old value.
fn exchange(body: &mut BodyBuilder, turn: &Operand, value: i128) -> Operand {
    let kind = InstKind::Builtin {
        builtin: Builtin::Atomic(AtomicOp::Exch, Scope::Block),
        arguments: vec![turn.clone(), number(value)],
        format: None,
    };
    body.emit(kind, Type::U32, nowhere())
}

fn builtin(body: &mut BodyBuilder, builtin: Builtin) {
    let kind = InstKind::Builtin { builtin, arguments: vec![], format: None };
    body.emit(kind, Type::Unit, nowhere());
}

/// `gridlet.open_turns()`: every thread of the block calls it first. All write the same value.
fn build_open(turn: &Operand) -> Result<Function> {
    let mut body = BodyBuilder::new();
    body.store(turn.clone(), number(0), nowhere());
    builtin(&mut body, Builtin::SyncThreads);
    body.terminate(Terminator::Return(None));
    finish(body, OPEN_TURNS)
}

/// `gridlet.await_turn()`
fn build_await(turn: &Operand) -> Result<Function> {
    let mut body = BodyBuilder::new();
    let [again, mine] = body.blocks("turn", ["again", "mine"]);
    body.jump(again);
    body.place(again);
    let taken = exchange(&mut body, turn, 1);
    let taken = InstKind::Binary(BinaryOp::Ne, taken, number(0));
    let taken = body.emit(taken, Type::BOOL, nowhere());
    body.branch(taken, again, mine);
    body.place(mine);
    builtin(&mut body, Builtin::Fence(Scope::Block));
    body.terminate(Terminator::Return(None));
    finish(body, AWAIT_TURN)
}

/// `gridlet.end_turn()`
fn build_end(turn: &Operand) -> Result<Function> {
    let mut body = BodyBuilder::new();
    builtin(&mut body, Builtin::Fence(Scope::Block));
    exchange(&mut body, turn, 0);
    body.terminate(Terminator::Return(None));
    finish(body, END_TURN)
}
