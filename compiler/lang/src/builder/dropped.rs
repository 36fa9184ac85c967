//! Launches whose status nothing reads: they become plain launches, which record their failures.
//!
//! A status is read if it, or a value that is computed from it, decides a branch, is an argument of a launch, a built-in or an
//! `extern fn`, or is stored where others may find it. Storing it in a local variable counts only if a value that is loaded from
//! there is read, passing it to a function only if that reads its parameter, and returning it only if a caller reads it. The
//! door for modules of LLVM IR has the same rule.

use crate::ir::reach::leading_to;
use crate::ir::{Const, Function, InstKind, Operand, Terminator};
use crate::types::{Scalar, Type};

/// Makes the failures of such launches recorded. The functions must be sound.
pub(super) fn record(functions: &mut [Function]) {
    let is_try = |kind: &InstKind| matches!(kind, InstKind::Launch(launch) if launch.is_try);
    let mut instructions = functions.iter().flat_map(|function| &function.instructions);
    if !instructions.any(|inst| is_try(&inst.kind)) {
        return;
    }
    let (read, starts) = read_values(functions);
    for (function, start) in functions.iter_mut().zip(starts) {
        record_in(function, &read[start..]);
    }
}

/// `read`: by instruction, whether its value is read.
fn record_in(function: &mut Function, read: &[bool]) {
    let mut is_dropped = vec![false; function.instructions.len()];
    for (at, inst) in function.instructions.iter_mut().enumerate() {
        if let InstKind::Launch(launch) = &mut inst.kind
            && launch.is_try
            && !read[at]
        {
            (launch.is_try, inst.ty, is_dropped[at]) = (false, Type::Unit, true);
        }
    }
    let none = |operand: &mut Operand| {
        if matches!(operand, Operand::Inst(id) if is_dropped[id.index()]) {
            *operand = Operand::Const(Const::Int(Scalar::I32, 0));
        }
    };
    // What only computes more of what nothing reads still has the status as an operand.
    for inst in &mut function.instructions {
        inst.kind.for_each_operand_mut(none);
    }
    for block in &mut function.blocks {
        if let Terminator::Return(Some(result)) = &mut block.terminator {
            none(result);
        }
    }
}

/// Whether values are read, and where those of each function's instructions start.
fn read_values(functions: &[Function]) -> (Vec<bool>, Vec<usize>) {
    // The nodes of a function are its instructions, slots, parameters and result; behind all of them is the reader.
    let sizes = functions.iter().map(|function| {
        function.instructions.len() + function.slots.len() + function.parameters.len() + 1
    });
    let mut reader = 0;
    let mut starts = vec![];
    for size in sizes {
        starts.push(reader);
        reader += size;
    }
    let slots = |at: usize| starts[at] + functions[at].instructions.len();
    let parameters = |at: usize| slots(at) + functions[at].slots.len();
    let result = |at: usize| parameters(at) + functions[at].parameters.len();
    let mut edges = vec![];
    for (of, function) in functions.iter().enumerate() {
        let node = |operand: &Operand| match operand {
            Operand::Inst(id) => Some(starts[of] + id.index()),
            Operand::Slot(id) => Some(slots(of) + id.index()),
            Operand::Parameter(at) => Some(parameters(of) + *at as usize),
            _ => None,
        };
        for (at, inst) in function.instructions.iter().enumerate() {
            let own = starts[of] + at;
            let user = match &inst.kind {
                InstKind::Store { pointer, .. } => {
                    variable(function, pointer).map_or(reader, |slot| slots(of) + slot)
                }
                InstKind::Call { function: callee, arguments } => {
                    let passed = arguments.iter().zip(parameters(callee.index())..);
                    edges.extend(passed.filter_map(|(used, to)| Some((node(used)?, to))));
                    edges.push((result(callee.index()), own));
                    continue;
                }
                InstKind::CallExtern { .. } | InstKind::Builtin { .. } | InstKind::Launch(_) => {
                    reader
                }
                _ => own,
            };
            inst.kind
                .for_each_operand(|operand| edges.extend(node(operand).map(|used| (used, user))));
        }
        for block in &function.blocks {
            let (used, user) = match &block.terminator {
                Terminator::Branch { condition, then, otherwise } if then != otherwise => {
                    (condition, reader)
                }
                Terminator::Return(Some(used)) => (used, result(of)),
                _ => continue,
            };
            edges.extend(node(used).map(|used| (used, user)));
        }
    }
    (leading_to(reader + 1, edges.into_iter(), std::iter::once(reader)), starts)
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
