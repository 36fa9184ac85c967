//! Launches whose status nothing reads: they become plain launches, which record their failures.
//!
//! A status is read if it, or a value that is computed from it, decides a branch, is returned, is an argument of a call, a
//! launch or a built-in, or is stored where others may find it. Storing it in a local variable counts only if a value that
//! is loaded from there is read. The door for modules of LLVM IR has the same rule.

use crate::ir::reach::leading_to;
use crate::ir::{Const, Function, InstKind, Operand, Terminator};
use crate::types::{Scalar, Type};

/// Makes the failures of such launches recorded. The function must be sound.
pub(super) fn record(function: &mut Function) {
    let is_try = |kind: &InstKind| matches!(kind, InstKind::Launch(launch) if launch.is_try);
    if !function.instructions.iter().any(|inst| is_try(&inst.kind)) {
        return;
    }
    let read = read_values(function);
    let mut is_dropped = vec![false; read.len()];
    for (at, inst) in function.instructions.iter_mut().enumerate() {
        if let InstKind::Launch(launch) = &mut inst.kind
            && launch.is_try
            && !read[at]
        {
            (launch.is_try, inst.ty, is_dropped[at]) = (false, Type::Unit, true);
        }
    }
    // What only computes more of what nothing reads still has the status as an operand.
    for inst in &mut function.instructions {
        inst.kind.for_each_operand_mut(|operand| {
            if matches!(operand, Operand::Inst(id) if is_dropped[id.index()]) {
                *operand = Operand::Const(Const::Int(Scalar::I32, 0));
            }
        });
    }
}

/// By instruction, whether its value is read.
fn read_values(function: &Function) -> Vec<bool> {
    let count = function.instructions.len();
    // The nodes are the instructions, the slots, and behind them the reader.
    let reader = count + function.slots.len();
    let node = |operand: &Operand| match operand {
        Operand::Inst(id) => Some(id.index()),
        Operand::Slot(id) => Some(count + id.index()),
        _ => None,
    };
    let mut edges = vec![];
    for (at, inst) in function.instructions.iter().enumerate() {
        let user = match &inst.kind {
            InstKind::Store { pointer, .. } => {
                variable(function, pointer).map_or(reader, |slot| count + slot)
            }
            InstKind::Call { .. }
            | InstKind::CallExtern { .. }
            | InstKind::Builtin { .. }
            | InstKind::Launch(_) => reader,
            _ => at,
        };
        inst.kind.for_each_operand(|operand| edges.extend(node(operand).map(|used| (used, user))));
    }
    for block in &function.blocks {
        let (Terminator::Branch { condition: used, .. } | Terminator::Return(Some(used))) =
            &block.terminator
        else {
            continue;
        };
        edges.extend(node(used).map(|used| (used, reader)));
    }
    leading_to(reader + 1, edges.into_iter(), std::iter::once(reader))
}

/// The local variable that an address points into, as an index of the function's slots.
fn variable<'f>(function: &'f Function, mut address: &'f Operand) -> Option<usize> {
    loop {
        match address {
            Operand::Slot(id) => return Some(id.index()),
            Operand::Inst(id) => match &function.instructions[id.index()].kind {
                InstKind::FieldAddress { base, .. }
                | InstKind::ElementAddress { base, .. }
                | InstKind::ByteOffset { base, .. }
                | InstKind::Cast(base) => address = base,
                _ => return None,
            },
            _ => return None,
        }
    }
}
