//! Implements warp and block operations that a target lacks as functions of shuffles and barriers.
//!
//! For a warp operation, every lane of the mask runs the same loop over the lanes of the mask that have not ended: a
//! shuffle cannot read from the others. So all lanes get the same result, also for floats: the order of additions is the
//! same in every lane.

use super::build::{BodyBuilder, Signature};
use super::{
    BinaryOp, Const, Function, FunctionId, Global, GlobalId, Init, InstKind, Module, Operand,
    Parameter, Role, Space, Terminator, UnaryOp,
};
use crate::builtins::{
    AtomicOp, BitOp, BlockReduceOp, Builtin, Instruction, Lowering, MathOp, Order, ReduceOp, Scope,
    ShuffleMode, VoteMode,
};
use crate::error::{Error, Result};
use crate::source::Span;
use crate::types::{Scalar, Type};

/// The operations for which a target has an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// Reductions of `i32` and `u32` over a warp: `redux.sync`, from sm_80 on.
    pub redux: bool,
    /// Reductions of every type over a warp.
    pub reductions: bool,
    /// `sync_threads_count`, `sync_threads_and` and `sync_threads_or`.
    pub barrier_reductions: bool,
    /// Whether operations report their source position, so that each call needs its own function.
    pub positions: bool,
}

impl Instructions {
    /// The instructions of every GPU that Gridlet supports.
    pub const GPU: Instructions = Instructions {
        redux: false,
        reductions: false,
        barrier_reductions: true,
        positions: false,
    };
    /// The operations of the CPU device.
    pub const CPU: Instructions =
        Instructions { redux: true, reductions: true, barrier_reductions: false, positions: true };

    /// Whether the target has an instruction for an operation on `ty`.
    fn has(self, builtin: Builtin, ty: &Type) -> bool {
        let Lowering::Expand(instruction) = builtin.properties().lowering else { return true };
        match instruction {
            Instruction::Redux => {
                self.reductions || self.redux && matches!(*ty, Type::I32 | Type::U32)
            }
            Instruction::BarrierReduction => self.barrier_reductions,
        }
    }
}

/// Replaces each operation that the target lacks by a call of a function. One function is added per type, and
/// per position if positions matter.
///
/// # Errors
/// Only internal errors.
pub fn expand(module: &mut Module, target: Instructions) -> Result<()> {
    let mut made: Vec<(Builtin, Type, Option<Span>)> = vec![];
    let first = module.functions.len();
    for at in 0..first {
        for inst in 0..module.functions[at].instructions.len() {
            let function = &module.functions[at];
            let InstKind::Builtin { builtin, arguments, .. } = &function.instructions[inst].kind
            else {
                continue;
            };
            // The last argument is the value.
            let Some(value) = arguments.last() else { continue };
            let position = target.positions.then_some(function.instructions[inst].span);
            let key = (*builtin, module.operand_type(function, value), position);
            if target.has(*builtin, &key.1) {
                continue;
            }
            let arguments = arguments.clone();
            let known = made.iter().position(|made| *made == key);
            let callee = known.unwrap_or_else(|| {
                made.push(key);
                made.len() - 1
            });
            let function = FunctionId((first + callee) as u32);
            module.functions[at].instructions[inst].kind = InstKind::Call { function, arguments };
        }
    }
    let mut count = None;
    for (at, (builtin, ty, position)) in made.into_iter().enumerate() {
        let mut function = match builtin {
            Builtin::SyncThreadsReduce(op) => {
                let count = *count.get_or_insert_with(|| add_count(module));
                barrier_reduction(builtin, op, count)?
            }
            _ => warp_operation(builtin, ty)?,
        };
        if let Some(position) = position {
            function.name = format!("{}.{at}", function.name);
            function.span = position;
            for inst in &mut function.instructions {
                inst.span = position;
            }
        }
        module.functions.push(function);
    }
    Ok(())
}

const MASK: Operand = Operand::Parameter(0);
const VALUE: Operand = Operand::Parameter(1);
const NOWHERE: Span = Span::NOWHERE;

fn word(value: i128) -> Operand {
    Operand::Const(Const::Int(Scalar::U32, value))
}

/// The variable in which the threads of a block count.
fn add_count(module: &mut Module) -> GlobalId {
    module.globals.push(Global {
        name: "gridlet.block_count".into(),
        space: Space::Shared,
        ty: Type::U32,
        init: Init::Unset,
        exported: false,
        variable: None,
    });
    GlobalId(module.globals.len() as u32 - 1)
}

/// Counts in shared memory. All threads write the initial zero, so that no thread index is needed. The first
/// barrier separates it from threads that still read the previous count.
fn barrier_reduction(builtin: Builtin, op: BlockReduceOp, count: GlobalId) -> Result<Function> {
    let mut body = BodyBuilder::new();
    let barrier = |body: &mut BodyBuilder| {
        emit_builtin(body, Builtin::SyncThreads, vec![], &Type::Unit);
    };
    let count = Operand::Global(count);
    barrier(&mut body);
    let zero = Builtin::AtomicStore(Order::Relaxed, Scope::Device);
    emit_builtin(&mut body, zero, vec![count.clone(), word(0)], &Type::Unit);
    barrier(&mut body);
    // For `and`, counts the threads for which the predicate is false.
    let predicate = Operand::Parameter(0);
    let counted = match op {
        BlockReduceOp::And => {
            body.emit(InstKind::Unary(UnaryOp::Not, predicate), Type::BOOL, NOWHERE)
        }
        _ => predicate,
    };
    let one_or_zero = body.emit(InstKind::Cast(counted), Type::U32, NOWHERE);
    let add = Builtin::Atomic(AtomicOp::Add, Scope::Block);
    emit_builtin(&mut body, add, vec![count.clone(), one_or_zero], &Type::U32);
    barrier(&mut body);
    let sum = emit_builtin(
        &mut body,
        Builtin::AtomicLoad(Order::Relaxed, Scope::Device),
        vec![count],
        &Type::U32,
    );
    let (value, result) = match op {
        BlockReduceOp::Count => (sum, Type::U32),
        BlockReduceOp::And => {
            (binary(&mut body, BinaryOp::Eq, sum, word(0), &Type::BOOL), Type::BOOL)
        }
        BlockReduceOp::Or => {
            (binary(&mut body, BinaryOp::Ne, sum, word(0), &Type::BOOL), Type::BOOL)
        }
    };
    body.terminate(Terminator::Return(Some(value)));
    body.finish(Signature {
        name: format!("gridlet.{}", builtin.name()),
        role: Role::Device,
        takes_geometry: false,
        parameters: vec![Parameter { name: "predicate".into(), ty: Type::BOOL }],
        result,
        span: NOWHERE,
    })
}

fn warp_operation(builtin: Builtin, ty: Type) -> Result<Function> {
    let scalar = ty.as_scalar().map_or("?", Scalar::name);
    let name = format!("gridlet.{}.{scalar}", builtin.name());
    let (body, result) = match builtin {
        Builtin::Reduce(op) => (reduce(op, &ty), ty.clone()),
        _ => {
            let message = format!("no function replaces `{}`", builtin.name());
            return Err(Error::internal("expand", message));
        }
    };
    body.finish(Signature {
        name,
        role: Role::Device,
        takes_geometry: false,
        parameters: vec![
            Parameter { name: "mask".into(), ty: Type::U32 },
            Parameter { name: "value".into(), ty },
        ],
        result,
        span: NOWHERE,
    })
}

fn emit_builtin(
    body: &mut BodyBuilder,
    builtin: Builtin,
    arguments: Vec<Operand>,
    ty: &Type,
) -> Operand {
    body.emit(InstKind::Builtin { builtin, arguments, format: None }, ty.clone(), NOWHERE)
}

fn binary(
    body: &mut BodyBuilder,
    op: BinaryOp,
    left: Operand,
    right: Operand,
    ty: &Type,
) -> Operand {
    body.emit(InstKind::Binary(op, left, right), ty.clone(), NOWHERE)
}

fn shuffle(
    body: &mut BodyBuilder,
    mode: ShuffleMode,
    value: Operand,
    lane: Operand,
    ty: &Type,
) -> Operand {
    emit_builtin(body, Builtin::Shuffle(mode), vec![MASK, value, lane], ty)
}

/// The lanes of the mask that have not ended.
fn live_lanes(body: &mut BodyBuilder) -> Operand {
    let yes = Operand::Const(Const::Bool(true));
    emit_builtin(body, Builtin::Vote(VoteMode::Ballot), vec![MASK, yes], &Type::U32)
}

/// The index of the lowest lane in `lanes`, and `lanes` without it.
fn lowest(body: &mut BodyBuilder, lanes: Operand) -> (Operand, Operand) {
    let lane = emit_builtin(body, Builtin::Bit(BitOp::Ctz), vec![lanes.clone()], &Type::U32);
    let below = binary(body, BinaryOp::Sub, lanes.clone(), word(1), &Type::U32);
    let rest = binary(body, BinaryOp::And, lanes, below, &Type::U32);
    (lane, rest)
}

/// Emits a loop that runs its body for the index of each lane in `lanes`, in ascending order.
fn for_each_lane(
    body: &mut BodyBuilder,
    lanes: Operand,
    each: impl FnOnce(&mut BodyBuilder, Operand),
) {
    let left = body.slot("lanes", Type::U32);
    body.store(left.clone(), lanes, NOWHERE);
    let [head, inside, end] = body.blocks("lanes", ["head", "body", "end"]);
    body.jump(head);
    body.place(head);
    let lanes = body.load(left.clone(), &Type::U32, NOWHERE);
    let more = binary(body, BinaryOp::Ne, lanes.clone(), word(0), &Type::BOOL);
    body.branch(more, inside, end);
    body.place(inside);
    let (lane, rest) = lowest(body, lanes);
    each(body, lane);
    body.store(left, rest, NOWHERE);
    body.jump(head);
    body.place(end);
}

fn combine(
    body: &mut BodyBuilder,
    op: ReduceOp,
    left: Operand,
    right: Operand,
    ty: &Type,
) -> Operand {
    let op = match op {
        ReduceOp::Add => BinaryOp::Add,
        ReduceOp::And => BinaryOp::And,
        ReduceOp::Or => BinaryOp::Or,
        ReduceOp::Xor => BinaryOp::Xor,
        ReduceOp::Min | ReduceOp::Max => {
            let math = if op == ReduceOp::Min { MathOp::Min } else { MathOp::Max };
            return emit_builtin(body, Builtin::Math(math), vec![left, right], ty);
        }
    };
    binary(body, op, left, right, ty)
}

/// A full warp uses a butterfly of five shuffles; any other set of lanes goes lane by lane.
fn reduce(op: ReduceOp, ty: &Type) -> BodyBuilder {
    let mut body = BodyBuilder::new();
    let all = word(0xffff_ffff);
    let live = live_lanes(&mut body);
    let is_whole = binary(&mut body, BinaryOp::Eq, live.clone(), all, &Type::BOOL);
    let [whole, part] = body.blocks("warp", ["whole", "part"]);
    body.branch(is_whole, whole, part);

    body.place(whole);
    let mut sum = VALUE;
    for distance in [16, 8, 4, 2, 1] {
        let other = shuffle(&mut body, ShuffleMode::Xor, sum.clone(), word(distance), ty);
        sum = combine(&mut body, op, sum, other, ty);
    }
    body.terminate(Terminator::Return(Some(sum)));

    body.place(part);
    let (first, rest) = lowest(&mut body, live);
    let sum = body.slot("sum", ty.clone());
    let value = shuffle(&mut body, ShuffleMode::Index, VALUE, first, ty);
    body.store(sum.clone(), value, NOWHERE);
    for_each_lane(&mut body, rest, |body, lane| {
        let old = body.load(sum.clone(), ty, NOWHERE);
        let other = shuffle(body, ShuffleMode::Index, VALUE, lane, ty);
        let new = combine(body, op, old, other, ty);
        body.store(sum.clone(), new, NOWHERE);
    });
    let value = body.load(sum, ty, NOWHERE);
    body.terminate(Terminator::Return(Some(value)));
    body
}
