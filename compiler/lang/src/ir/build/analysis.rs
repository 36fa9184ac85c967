//! Analyses of functions needed before building them.

use crate::check::tree::{Expr, ExprKind, Function, Program, Statement, StatementKind, UnaryOp};
pub(super) use crate::check::visit::local_of_place;
use crate::check::visit::{Node, visit_block};
use crate::ir::conditions::{LOGICAL, OPERATOR, SPECULATION_LIMIT};
use crate::types::Type;

/// For each function, whether it takes the geometry: kernels do; a device function does if it, or a function
/// that it calls, reads the geometry or the base of dynamic shared memory.
pub(super) fn takes_geometry(program: &Program) -> Vec<bool> {
    let mut takes = Vec::with_capacity(program.functions.len());
    let mut callers = vec![vec![]; program.functions.len()];
    for (caller, function) in program.functions.iter().enumerate() {
        let mut reads = function.kernel.is_some();
        visit_block(&function.body, &mut |node| {
            if let Node::Expr(expr) = node {
                match &expr.kind {
                    ExprKind::Geometry(_) | ExprKind::DynamicShared => reads = true,
                    ExprKind::Call { function: callee, .. } => {
                        if let Some(callers) = callers.get_mut(callee.0 as usize) {
                            callers.push(caller);
                        }
                    }
                    _ => {}
                }
            }
        });
        takes.push(reads);
    }
    let mut open: Vec<usize> = (0..takes.len()).filter(|at| takes[*at]).collect();
    while let Some(callee) = open.pop() {
        for caller in &callers[callee] {
            if !std::mem::replace(&mut takes[*caller], true) {
                open.push(*caller);
            }
        }
    }
    takes
}

/// For each local of a function, whether it lives in memory. Variables do; a parameter does if it is written,
/// if its address is taken, or if it is a struct or an array, whose parts are accessed by address.
pub(super) fn in_memory(function: &Function) -> Vec<bool> {
    let mut memory: Vec<bool> = function
        .locals
        .iter()
        .enumerate()
        .map(|(at, local)| {
            at >= function.parameter_count || matches!(local.ty, Type::Struct(_) | Type::Array(..))
        })
        .collect();
    visit_block(&function.body, &mut |node| {
        let place = match node {
            Node::Expr(Expr { kind: ExprKind::AddressOf(place), .. }) => Some(&**place),
            Node::Statement(Statement { kind: StatementKind::Assign { place, .. }, .. }) => {
                Some(place)
            }
            _ => None,
        };
        let local = match node {
            Node::Statement(Statement { kind: StatementKind::Let { local, .. }, .. })
            | Node::Statement(Statement { kind: StatementKind::For { local, .. }, .. }) => {
                Some(*local)
            }
            _ => place.and_then(local_of_place),
        };
        if let Some(memory) = local.and_then(|local| memory.get_mut(local.0 as usize)) {
            *memory = true;
        }
    });
    memory
}

/// Whether an expression is a place: see [`crate::check::tree`].
pub(super) fn is_place(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Local(_) | ExprKind::Shared(_) | ExprKind::Static(_) | ExprKind::Deref(_) => true,
        ExprKind::Field { base, .. } => is_place(base),
        ExprKind::Index { base, .. } => base.ty.is_pointer() || is_place(base),
        _ => false,
    }
}

/// Whether two expressions read the same variable, or the same field of one.
pub(super) fn is_same_variable(left: &Expr, right: &Expr) -> bool {
    match (&left.kind, &right.kind) {
        (ExprKind::Local(left), ExprKind::Local(right)) => left == right,
        (ExprKind::Field { base: left, index }, ExprKind::Field { base: right, index: other }) => {
            index == other && is_same_variable(left, right)
        }
        _ => false,
    }
}

/// Whether an expression may be evaluated speculatively: it is cheap, has no side effects, cannot trap, and
/// reads only scalar locals and parameters. A field of a local may be unset, which `--check` reports if it is read.
pub(super) fn is_worth_speculation(expr: &Expr) -> bool {
    speculation_cost(expr, SPECULATION_LIMIT).is_some()
}

/// Its cost; `None` if it must not be speculated or costs more than `most`.
fn speculation_cost(expr: &Expr, most: u32) -> Option<u32> {
    use crate::check::tree::BinaryOp::{Div, Rem};
    let mut left_over = most;
    let mut expr = expr;
    loop {
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => break,
            ExprKind::Local(_)
                if !matches!(expr.ty, Type::Struct(_) | Type::Array(..) | Type::Unit) =>
            {
                break;
            }
            ExprKind::Field { base, .. } if matches!(base.kind, ExprKind::Geometry(_)) => break,
            ExprKind::Unary(_, operand) | ExprKind::Cast(operand) => {
                left_over = left_over.checked_sub(OPERATOR)?;
                expr = operand;
            }
            ExprKind::Binary(op, left, right) => {
                if matches!(op, Div | Rem) && !is_float(&left.ty) {
                    return None;
                }
                left_over = left_over.checked_sub(OPERATOR)?;
                left_over -= speculation_cost(right, left_over)?;
                expr = left;
            }
            ExprKind::Logical { left, right, .. } => {
                left_over = left_over.checked_sub(LOGICAL)?;
                left_over -= speculation_cost(right, left_over)?;
                expr = left;
            }
            _ => return None,
        }
    }
    Some(most - left_over)
}

fn is_float(ty: &Type) -> bool {
    ty.as_scalar().is_some_and(|scalar| scalar.is_float())
}

/// The most `&&` and `||` that [`mixes_operators`] looks at.
const MOST_LOGICAL: usize = 8;

/// Whether a condition has both `&&` and `||`, and not many.
pub(super) fn mixes_operators(expr: &Expr) -> bool {
    let (mut ands, mut ors) = (0, 0);
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match &expr.kind {
            ExprKind::Logical { is_and, left, right } => {
                *(if *is_and { &mut ands } else { &mut ors }) += 1;
                if ands + ors > MOST_LOGICAL {
                    return false;
                }
                open.extend([&**left, &**right]);
            }
            ExprKind::Unary(UnaryOp::Not, operand) => open.push(operand),
            _ => {}
        }
    }
    ands > 0 && ors > 0
}
