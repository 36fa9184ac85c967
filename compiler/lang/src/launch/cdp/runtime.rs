//! Device-runtime operations other than launches: each becomes a call.

use super::symbols::{
    DeviceRuntimeAbi, MEMCPY_DEVICE_TO_DEVICE, RuntimeFunction, STREAM_NON_BLOCKING,
};
use crate::builtins::Builtin;
use crate::ir::{Const, ExternId, Function, Inst, InstId, InstKind, Module, Operand, Slot, SlotId};
use crate::types::{Scalar, Type};

/// The device-runtime function that a built-in calls.
pub(super) fn function(builtin: Builtin) -> Option<RuntimeFunction> {
    Some(match builtin {
        Builtin::StreamCreate => RuntimeFunction::StreamCreate,
        Builtin::StreamDestroy => RuntimeFunction::StreamDestroy,
        Builtin::MemcpyAsync => RuntimeFunction::MemcpyAsync,
        Builtin::MemsetAsync => RuntimeFunction::MemsetAsync,
        Builtin::DeviceLastError => RuntimeFunction::GetLastError,
        _ => return None,
    })
}

/// Replaces every such operation of a module.
pub(super) fn lower(module: &mut Module, symbols: DeviceRuntimeAbi) {
    let mut declared: Vec<(RuntimeFunction, ExternId)> = vec![];
    for function in &mut module.functions {
        let calls: Vec<(InstId, RuntimeFunction)> = (0..)
            .map(InstId)
            .zip(&function.instructions)
            .filter_map(|(id, inst)| match &inst.kind {
                InstKind::Builtin { builtin, .. } => Some((id, self::function(*builtin)?)),
                _ => None,
            })
            .collect();
        for (id, called) in calls {
            let known = declared.iter().find(|(known, _)| *known == called).map(|(_, id)| *id);
            let callee = known.unwrap_or_else(|| {
                let id = ExternId(module.externs.len() as u32);
                module.externs.push(symbols.declaration(called));
                declared.push((called, id));
                id
            });
            rewrite(function, id, called, callee);
        }
    }
}

fn rewrite(function: &mut Function, id: InstId, called: RuntimeFunction, callee: ExternId) {
    let inst = &mut function.instructions[id.index()];
    let InstKind::Builtin { arguments, .. } = &mut inst.kind else { return };
    let mut arguments = std::mem::take(arguments);
    match called {
        RuntimeFunction::StreamCreate => return create_stream(function, id, callee),
        // The kind of copy comes before the stream.
        RuntimeFunction::MemcpyAsync => arguments.insert(3, number(MEMCPY_DEVICE_TO_DEVICE)),
        _ => {}
    }
    inst.kind = InstKind::CallExtern { function: callee, arguments };
}

fn number(value: i32) -> Operand {
    Operand::Const(Const::Int(Scalar::I32, value.into()))
}

/// The device runtime writes the handle through a pointer. If it fails and writes none, the handle stays the default
/// stream.
fn create_stream(function: &mut Function, id: InstId, callee: ExternId) {
    let slot = Operand::Slot(SlotId(function.slots.len() as u32));
    function.slots.push(Slot {
        name: "stream".into(),
        ty: Type::Stream,
        unset: false,
        variable: None,
    });
    let span = function.instructions[id.index()].span;
    let flags = Operand::Const(Const::Int(Scalar::U32, STREAM_NON_BLOCKING.into()));
    let before = [
        Inst {
            kind: InstKind::Store {
                pointer: slot.clone(),
                value: Operand::Const(Const::Zero(Type::Stream)),
            },
            ty: Type::Unit,
            span,
        },
        Inst {
            kind: InstKind::CallExtern { function: callee, arguments: vec![slot.clone(), flags] },
            ty: Type::I32,
            span,
        },
    ];
    let first = function.instructions.len() as u32;
    function.instructions.extend(before);
    function.instructions[id.index()].kind = InstKind::Load(slot);
    for block in &mut function.blocks {
        if let Some(at) = block.instructions.iter().position(|inst| *inst == id) {
            block.instructions.splice(at..at, [InstId(first), InstId(first + 1)]);
        }
    }
}
