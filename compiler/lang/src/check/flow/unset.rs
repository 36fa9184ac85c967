//! Finds variables that are read before they are set, and assigned twice without being `mut`.
//!
//! A variable that is only assigned as a whole must be set on every path to a read, as in Rust. For a
//! variable that is also assigned in parts or through its address, a read is an error only if no path sets
//! any part of it: it is unknown which part a loop sets, for example.

use super::super::tree::{
    Block, Declared, Expr, ExprKind, Function, LocalId, Statement, StatementKind, UnaryOp,
};
use super::super::visit::{Child, Node, local_of_place, row, visit_block};
use super::Found;
use super::set::Set;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::types::Type;

/// The result of the analysis.
pub(super) struct Outcome {
    pub(super) errors: Found,
    /// For each local, whether it is assigned as a whole where it may already have a value.
    pub(super) changed: Vec<bool>,
}

pub(super) fn analyse(function: &Function) -> Outcome {
    let mut walk = Unset::of(function);
    walk.block(&function.body);
    Outcome { errors: walk.errors, changed: walk.changed }
}

/// The state at a point of the function.
#[derive(Clone, Default)]
struct State {
    /// Whether the point is reachable.
    alive: bool,
    /// The variables set on every path to here.
    set: Set,
    /// The variables set, at least in part, on some path to here.
    touched: Set,
}

impl State {
    /// Merges the states of two paths.
    fn join(&mut self, other: &State) {
        match (self.alive, other.alive) {
            (_, false) => {}
            (false, true) => self.clone_from(other),
            (true, true) => {
                self.set.intersect(&other.set);
                self.touched.unite(&other.touched);
            }
        }
    }
}

/// A tracked variable.
struct Variable {
    id: LocalId,
    mutable: bool,
    /// Whether it is assigned in part anywhere, or its address taken.
    by_parts: bool,
    /// Whether it is assigned as a whole anywhere.
    as_whole: bool,
    /// The number of loops around its declaration.
    loops: usize,
    /// Its last assignment so far.
    assigned: Option<Span>,
    /// Whether any part of it has been set so far, in source order.
    ever_touched: bool,
    reported: bool,
}

/// An enclosing loop.
struct Frame {
    /// The state after it.
    exit: State,
    /// The variables that may be set, at least in part, at its start or at the end of an iteration, and so
    /// when a later iteration exits the loop.
    touched_by_passes: Set,
    /// The variables touched by its iterations but not assigned as a whole so far.
    only_in_part: Vec<usize>,
    /// Reads of variables that are unset before the read, but perhaps set after it, in an earlier iteration.
    pending: Vec<(usize, Span)>,
}

struct Unset<'t> {
    function: &'t Function,
    /// The tracked variable of each local, if any.
    variable_of: Vec<Option<usize>>,
    variables: Vec<Variable>,
    state: State,
    loops: Vec<Frame>,
    errors: Found,
    changed: Vec<bool>,
}

impl<'t> Unset<'t> {
    fn of(function: &'t Function) -> Self {
        let mut variable_of: Vec<Option<usize>> = vec![None; function.locals.len()];
        let mut variables: Vec<Variable> = vec![];
        let mut by_parts = vec![false; function.locals.len()];
        let mut as_whole = vec![false; function.locals.len()];
        let mut changed = vec![false; function.locals.len()];
        let mut unset = vec![false; function.locals.len()];
        visit_block(&function.body, &mut |node| match node {
            Node::Expr(Expr { kind: ExprKind::AddressOf(place), .. }) => {
                if let Some(id) = local_of_place(place) {
                    by_parts[id.0 as usize] = true;
                }
            }
            Node::Statement(Statement { kind: StatementKind::Assign { place, .. }, .. }) => {
                let Some(id) = local_of_place(place) else { return };
                let is_part = !matches!(place.kind, ExprKind::Local(_));
                by_parts[id.0 as usize] |= is_part;
                as_whole[id.0 as usize] |= !is_part;
                changed[id.0 as usize] = true;
            }
            Node::Statement(Statement {
                kind: StatementKind::Let { local, value: None }, ..
            }) => unset[local.0 as usize] = true,
            _ => {}
        });
        for (at, local) in function.locals.iter().enumerate() {
            let Declared::Let { mutable } = local.declared else { continue };
            if !unset[at] {
                continue;
            }
            variable_of[at] = Some(variables.len());
            changed[at] = false;
            variables.push(Variable {
                id: LocalId(at as u32),
                mutable,
                by_parts: by_parts[at],
                as_whole: as_whole[at],
                loops: 0,
                assigned: None,
                ever_touched: false,
                reported: false,
            });
        }
        let empty = Set::below(variables.len());
        let state = State { alive: true, set: empty.clone(), touched: empty };
        Unset { function, variable_of, variables, state, loops: vec![], errors: vec![], changed }
    }

    fn variable(&self, id: LocalId) -> Option<usize> {
        self.variable_of.get(id.0 as usize).copied().flatten()
    }

    fn name(&self, at: usize) -> &'t str {
        &self.function.locals[self.variables[at].id.0 as usize].name
    }

    fn declared_at(&self, at: usize) -> Span {
        self.function.locals[self.variables[at].id.0 as usize].span
    }

    fn block(&mut self, block: &'t Block) {
        for statement in &block.statements {
            self.statement(statement);
        }
        block.value.iter().for_each(|value| self.expr(value));
    }

    fn statement(&mut self, statement: &'t Statement) {
        match &statement.kind {
            StatementKind::Let { local, value } => {
                value.iter().for_each(|value| self.expr(value));
                if let Some(at) = self.variable(*local) {
                    self.variables[at].loops = self.loops.len();
                }
            }
            StatementKind::Assign { place, op, value } => {
                self.place(place);
                if let (Some(_), Some(id)) = (op, local_of_place(place)) {
                    self.read(id, place.span);
                }
                self.expr(value);
                self.assign(place, statement.span);
            }
            StatementKind::Expr(value) => self.expr(value),
            StatementKind::While { condition, body, .. } => {
                self.begin_loop();
                let otherwise = self.condition(condition);
                self.may_leave(&otherwise);
                self.block(body);
                self.end_loop();
            }
            StatementKind::Loop { body, .. } => {
                self.begin_loop();
                self.block(body);
                self.end_loop();
            }
            StatementKind::For { start, end, step, body, .. } => {
                self.expr(start);
                self.expr(end);
                step.iter().for_each(|step| self.expr(step));
                self.begin_loop();
                let before = self.state.clone();
                self.may_leave(&before);
                self.block(body);
                self.end_loop();
            }
            StatementKind::Break { depth } => {
                let at = self.loops.len().checked_sub(*depth as usize + 1);
                if let Some(frame) = at.and_then(|at| self.loops.get_mut(at)) {
                    frame.exit.join(&self.state);
                }
                self.state.alive = false;
            }
            StatementKind::Continue { depth } => {
                if let Some(at) = self.loops.len().checked_sub(*depth as usize + 1) {
                    self.next_pass(at);
                }
                self.state.alive = false;
            }
            StatementKind::Return(value) => {
                value.iter().for_each(|value| self.expr(value));
                self.state.alive = false;
            }
        }
    }

    fn begin_loop(&mut self) {
        let touched_by_passes = self.state.touched.clone();
        let exit = State::default();
        self.loops.push(Frame { exit, touched_by_passes, only_in_part: vec![], pending: vec![] });
    }

    /// The loop may exit with `state`.
    fn may_leave(&mut self, state: &State) {
        if let Some(frame) = self.loops.last_mut() {
            frame.exit.join(state);
        }
    }

    fn end_loop(&mut self) {
        self.next_pass(self.loops.len().saturating_sub(1));
        let Some(frame) = self.loops.pop() else { return };
        self.state = frame.exit;
        self.state.touched.unite(&frame.touched_by_passes);
        for (at, span) in frame.pending {
            if !self.variables[at].ever_touched {
                self.report_unset(at, span);
            }
        }
    }

    /// A further iteration of the loop with this number starts from here and repeats its assignments.
    fn next_pass(&mut self, at: usize) {
        let Some(frame) = self.loops.get_mut(at).filter(|_| self.state.alive) else { return };
        // The variables touched by an earlier iteration were checked then, unless not yet assigned as a
        // whole.
        let touched = self.state.touched.without(&frame.touched_by_passes);
        frame.touched_by_passes.unite(&self.state.touched);
        let open = std::mem::take(&mut frame.only_in_part);
        let mut only_in_part = vec![];
        for variable in open.into_iter().chain(touched) {
            let Variable { loops, assigned, as_whole, .. } = self.variables[variable];
            match assigned {
                _ if loops > at || !as_whole => {}
                Some(span) => {
                    self.assigned_again(
                        variable,
                        span,
                        "assigned again in each iteration of the loop",
                    );
                }
                None => only_in_part.push(variable),
            }
        }
        if let Some(frame) = self.loops.get_mut(at) {
            frame.only_in_part = only_in_part;
        }
    }

    /// Reports a whole assignment of a variable that may already have a value.
    fn assigned_again(&mut self, at: usize, span: Span, how: &str) {
        let variable = &mut self.variables[at];
        self.changed[variable.id.0 as usize] = true;
        if variable.mutable || std::mem::replace(&mut variable.reported, true) {
            return;
        }
        let first = variable.assigned.filter(|first| *first != span);
        let name = self.name(at);
        let message = format!("`{name}` is assigned twice, and is not `mut`");
        let mut error = Diagnostic::error(ids::IMMUTABLE_ASSIGN, span, message).at_caret(how);
        error = error.label(self.declared_at(at), "declared here");
        if let Some(first) = first {
            error = error.label(first, "first assigned here");
        }
        self.errors.push(error.hint(format!("declare it `let mut {name}`")));
    }

    fn assign(&mut self, place: &'t Expr, span: Span) {
        let Some(at) = local_of_place(place).and_then(|id| self.variable(id)) else { return };
        if !self.state.alive {
            return;
        }
        if matches!(place.kind, ExprKind::Local(_)) {
            if self.state.touched.has(at) {
                self.assigned_again(at, span, "assigned again");
            }
            self.state.set.insert(at);
            self.variables[at].assigned = Some(span);
        }
        self.touch(at);
    }

    fn touch(&mut self, at: usize) {
        self.state.touched.insert(at);
        self.variables[at].ever_touched = true;
    }

    fn read(&mut self, id: LocalId, span: Span) {
        let Some(at) = self.variable(id) else { return };
        let variable = &self.variables[at];
        if !self.state.alive || variable.reported {
            return;
        }
        if !variable.by_parts {
            if !self.state.set.has(at) {
                self.report_unset(at, span);
            }
        } else if !self.state.touched.has(at) {
            // The outermost loop inside the variable's scope.
            match self.loops.get_mut(variable.loops) {
                Some(frame) => frame.pending.push((at, span)),
                None => self.report_unset(at, span),
            }
        }
    }

    fn report_unset(&mut self, at: usize, span: Span) {
        if std::mem::replace(&mut self.variables[at].reported, true) {
            return;
        }
        let name = self.name(at);
        let has_parts = matches!(
            self.function.locals[self.variables[at].id.0 as usize].ty,
            Type::Struct(_) | Type::Array(..) | Type::Vector(..)
        );
        let by_parts = has_parts && self.variables[at].by_parts;
        let message = match (by_parts, self.state.touched.has(at)) {
            (false, true) => format!("`{name}` is read here, but not every path to here sets it"),
            (false, false) => format!("`{name}` is read before it is set"),
            (true, _) => format!("`{name}` is read before any part of it is set"),
        };
        let error = Diagnostic::error(ids::UNSET_VARIABLE, span, message);
        let error = error.at_caret("read here").label(self.declared_at(at), "without a value here");
        self.errors.push(
            error.hint("initialise it where it is declared, or assign it on every path to here"),
        );
    }

    /// Evaluates the operands of a place without reading the place.
    fn place(&mut self, place: &'t Expr) {
        match &place.kind {
            ExprKind::Local(_) | ExprKind::Shared(_) | ExprKind::Static(_) => {}
            ExprKind::Field { base, .. } => self.place(base),
            ExprKind::Index { base, index } => {
                if base.ty.is_pointer() {
                    self.expr(base)
                } else {
                    self.place(base)
                }
                self.expr(index);
            }
            ExprKind::Deref(pointer) => self.expr(pointer),
            _ => self.expr(place),
        }
    }

    /// A condition. Leaves the state where it is true; returns the state where it is false.
    fn condition(&mut self, expr: &'t Expr) -> State {
        let (first, links) = match &expr.kind {
            ExprKind::Logical { .. } => row(expr),
            _ => (expr, vec![]),
        };
        let mut otherwise = match &first.kind {
            ExprKind::Unary(UnaryOp::Not, operand) => {
                let otherwise = self.condition(operand);
                std::mem::replace(&mut self.state, otherwise)
            }
            _ => {
                self.expr(first);
                self.state.clone()
            }
        };
        for (operator, right) in links {
            if matches!(operator.kind, ExprKind::Logical { is_and: true, .. }) {
                let right_false = self.condition(right);
                otherwise.join(&right_false);
            } else {
                let left_true = std::mem::replace(&mut self.state, otherwise);
                otherwise = self.condition(right);
                self.state.join(&left_true);
            }
        }
        otherwise
    }

    fn all(&mut self, parts: impl IntoIterator<Item = &'t Expr>) {
        parts.into_iter().for_each(|part| self.expr(part));
    }

    fn expr(&mut self, expr: &'t Expr) {
        match &expr.kind {
            ExprKind::Local(id) => self.read(*id, expr.span),
            ExprKind::AddressOf(place) => {
                self.place(place);
                // The variable may be set through its address.
                if let Some(at) = local_of_place(place).and_then(|id| self.variable(id))
                    && self.state.alive
                {
                    self.touch(at);
                }
            }
            ExprKind::Binary(..) => {
                let (first, links) = row(expr);
                self.expr(first);
                self.all(links.into_iter().map(|(_, right)| right));
            }
            ExprKind::Logical { .. } => {
                let otherwise = self.condition(expr);
                self.state.join(&otherwise);
            }
            ExprKind::If { branches, otherwise } => {
                let mut after = State::default();
                for (condition, then) in branches {
                    let before_else = self.condition(condition);
                    self.block(then);
                    after.join(&self.state);
                    self.state = before_else;
                }
                otherwise.iter().for_each(|block| self.block(block));
                self.state.join(&after);
            }
            ExprKind::Builtin { builtin, .. } => {
                self.children(expr);
                self.state.alive &= !builtin.ends();
            }
            _ => self.children(expr),
        }
    }

    fn children(&mut self, expr: &'t Expr) {
        expr.for_each_child(|child| match child {
            Child::Expr(part) => self.expr(part),
            Child::Block(block) => self.block(block),
        });
    }
}
