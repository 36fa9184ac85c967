//! Finds block-wide barriers that some threads of the block may not reach.
//!
//! A graph records what depends on the thread. Its nodes are the variables of a function and its *regions*:
//! the parts that run or not depending on a condition. An edge leads from a node that differs between threads
//! to one that may differ because of it. Parameters, and memory read at an address that all threads share,
//! count as equal for all threads: only certain divergence is reported.

use std::collections::BTreeMap;

use super::super::tree::{
    Block, Expr, ExprKind, Function, GeometryField, LocalId, Program, Statement, StatementKind,
};
use super::super::visit::{Child, row};
use super::graph::Calls;
use super::{Found, single_thread};
use crate::builtins::{Builtin, Varies, WaitsFor};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::types::{StructId, Type};

/// Reports every barrier that only some threads may reach.
pub(super) fn analyse(program: &Program, calls: &Calls, found: &mut Found) {
    // Whether a function's result differs between threads that call it with equal arguments.
    let mut differs = vec![false; program.functions.len()];
    let mut lists: Vec<Found> = program.functions.iter().map(|_| vec![]).collect();
    for at in calls.callees_first() {
        let function = &program.functions[at];
        if single_thread(function) {
            continue;
        }
        let mut walk = Walk::new(program, function, calls, &differs);
        let value = walk.block(&function.body);
        walk.give(&value, RESULT);
        let causes = walk.spread();
        lists[at] = walk.warnings(&causes);
        differs[at] = causes[RESULT].is_some();
    }
    lists.into_iter().for_each(|list| found.extend(list));
}

/// The cause of a difference between threads.
#[derive(Clone, Copy)]
struct Cause {
    /// The use of `thread_idx`.
    origin: Span,
    /// The condition that depends on it.
    condition: Option<Span>,
    /// The `return`, `break` or `continue` taken by only some threads.
    jump: Option<Span>,
}

/// The part of a cause that an edge adds.
#[derive(Clone, Copy)]
enum Step {
    Plain,
    Condition(Span),
    Jump(Span),
}

/// A dependency of a value.
#[derive(Clone, Copy)]
enum Source {
    Thread(Span),
    Node(usize),
}

/// The node of the function's result. The node of the whole body follows, then the variables.
const RESULT: usize = 0;
const BODY: usize = 1;
const LOCALS: usize = 2;

/// An open block.
#[derive(Default)]
struct OpenBlock {
    /// The region after a jump that leaves the block.
    rest: Option<usize>,
    /// The nodes of jumps that leave the block from its current statement, by target: see [`Walk::jump`].
    jumps: BTreeMap<Target, usize>,
}

/// The target of a jump: the number of blocks and of loops around it.
type Target = (usize, usize);

struct LoopFrame {
    region: usize,
    /// The number of blocks around its body.
    blocks: usize,
}

struct Barrier {
    span: Span,
    region: usize,
    /// The called function that contains it, if it is not in this function.
    callee: Option<usize>,
}

struct Walk<'t> {
    program: &'t Program,
    calls: &'t Calls,
    differs: &'t [bool],
    edges: Vec<Vec<(usize, Step)>>,
    roots: Vec<(usize, Cause)>,
    region: usize,
    blocks: Vec<OpenBlock>,
    loops: Vec<LoopFrame>,
    barriers: Vec<Barrier>,
}

impl<'t> Walk<'t> {
    fn new(
        program: &'t Program,
        function: &'t Function,
        calls: &'t Calls,
        differs: &'t [bool],
    ) -> Self {
        let edges = vec![vec![]; LOCALS + function.locals.len()];
        Walk {
            program,
            calls,
            differs,
            edges,
            roots: vec![],
            region: BODY,
            blocks: vec![],
            loops: vec![],
            barriers: vec![],
        }
    }

    fn edge(&mut self, from: usize, to: usize, step: Step) {
        if from != to {
            self.edges[from].push((to, step));
        }
    }

    fn new_node(&mut self) -> usize {
        self.edges.push(vec![]);
        self.edges.len() - 1
    }

    /// Adds a region inside the current one.
    fn new_region(&mut self) -> usize {
        let region = self.new_node();
        self.edge(self.region, region, Step::Plain);
        region
    }

    /// Records that a node differs if any of the sources does.
    fn add(&mut self, sources: &[Source], to: usize, condition: Option<Span>) {
        let step = condition.map_or(Step::Plain, Step::Condition);
        for source in sources {
            match source {
                Source::Thread(origin) => {
                    self.roots.push((to, Cause { origin: *origin, condition, jump: None }));
                }
                Source::Node(from) => self.edge(*from, to, step),
            }
        }
    }

    /// Assigns to a variable or the result: it differs if the value does, or if only some threads get here.
    fn give(&mut self, sources: &[Source], to: usize) {
        self.add(sources, to, None);
        self.edge(self.region, to, Step::Plain);
    }

    fn inside<T>(&mut self, region: usize, walk: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.region, region);
        let result = walk(self);
        self.region = around;
        result
    }

    fn block(&mut self, block: &'t Block) -> Vec<Source> {
        let around = self.region;
        self.blocks.push(OpenBlock::default());
        for statement in &block.statements {
            self.statement(statement);
            // Only the threads that did not jump continue from here.
            if let Some(rest) =
                self.blocks.last_mut().map(std::mem::take).and_then(|open| open.rest)
            {
                self.edge(self.region, rest, Step::Plain);
                self.region = rest;
            }
        }
        let value = block.value.as_deref().map_or_else(Vec::new, |value| self.expr(value));
        self.blocks.pop();
        self.region = around;
        value
    }

    fn statement(&mut self, statement: &'t Statement) {
        match &statement.kind {
            StatementKind::Let { local, value } => {
                if let Some(value) = value {
                    let sources = self.expr(value);
                    self.add(&sources, LOCALS + local.0 as usize, None);
                }
            }
            StatementKind::Assign { place, value, .. } => {
                self.expr(place);
                let sources = self.expr(value);
                if let Some(local) = assigned(place) {
                    self.give(&sources, LOCALS + local.0 as usize);
                }
            }
            StatementKind::Expr(value) => _ = self.expr(value),
            StatementKind::While { condition, body, .. } => {
                let region = self.new_region();
                self.inside(region, |walk| {
                    let sources = walk.expr(condition);
                    walk.add(&sources, region, Some(condition.span));
                    walk.loop_body(body);
                });
            }
            StatementKind::Loop { body, .. } => {
                let region = self.new_region();
                self.inside(region, |walk| walk.loop_body(body));
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let first = self.expr(start);
                let mut sources = self.expr(end);
                sources.extend(step.iter().flat_map(|step| self.expr(step)));
                self.add(&first, LOCALS + local.0 as usize, None);
                sources.extend(first);
                let region = self.new_region();
                self.add(&sources, region, Some(start.span.to(end.span)));
                self.inside(region, |walk| walk.loop_body(body));
            }
            StatementKind::Break { depth } => self.jump(Some((*depth, true)), statement.span),
            StatementKind::Continue { depth } => self.jump(Some((*depth, false)), statement.span),
            StatementKind::Return(value) => {
                if let Some(value) = value {
                    let sources = self.expr(value);
                    self.give(&sources, RESULT);
                }
                self.jump(None, statement.span);
            }
        }
    }

    fn loop_body(&mut self, body: &'t Block) {
        self.loops.push(LoopFrame { region: self.region, blocks: self.blocks.len() });
        self.block(body);
        self.loops.pop();
    }

    /// A jump leaves blocks and loops for some threads; the rest of these blocks, and further iterations of
    /// these loops, are for the other threads. `to` is a loop by depth and whether the jump ends it; `None`
    /// is a `return`.
    ///
    /// Each block on the way out has one node per jump target, so that only the first jump to a target has a
    /// cost.
    fn jump(&mut self, to: Option<(u32, bool)>, span: Span) {
        let (blocks, loops) = match to {
            None => (0, 0),
            Some((depth, ends)) => {
                let at = self.loops.len().saturating_sub(depth as usize + 1);
                let blocks = self.loops.get(at).map_or(0, |frame| frame.blocks);
                (blocks, if ends { at } else { at + 1 })
            }
        };
        let mut from = (self.region, Step::Jump(span));
        for at in (blocks..self.blocks.len()).rev() {
            if let Some(known) = self.blocks[at].jumps.get(&(blocks, loops)) {
                self.edge(from.0, *known, from.1);
                return;
            }
            let node = self.new_node();
            self.blocks[at].jumps.insert((blocks, loops), node);
            self.edge(from.0, node, from.1);
            let rest = match self.blocks[at].rest {
                Some(rest) => rest,
                None => {
                    let rest = self.new_node();
                    *self.blocks[at].rest.insert(rest)
                }
            };
            self.edge(node, rest, Step::Plain);
            let body_of = self.loops.partition_point(|frame| frame.blocks < at);
            if let Some(frame) = self.loops.get(body_of)
                && body_of >= loops
                && frame.blocks == at
            {
                self.edge(node, frame.region, Step::Plain);
            }
            from = (node, Step::Plain);
        }
    }

    fn all(&mut self, parts: impl IntoIterator<Item = &'t Expr>) -> Vec<Source> {
        let mut sources = vec![];
        for part in parts {
            sources.append(&mut self.expr(part));
        }
        sources
    }

    /// The dependencies of a value.
    fn expr(&mut self, expr: &'t Expr) -> Vec<Source> {
        match &expr.kind {
            ExprKind::Geometry(GeometryField::ThreadIdx) => vec![Source::Thread(expr.span)],
            ExprKind::Local(id) => vec![Source::Node(LOCALS + id.0 as usize)],
            ExprKind::AddressOf(_) | ExprKind::Launch(_) => {
                self.children(expr);
                vec![]
            }
            ExprKind::Binary(..) => {
                let (first, links) = row(expr);
                self.all(std::iter::once(first).chain(links.into_iter().map(|(_, right)| right)))
            }
            ExprKind::Logical { .. } => self.logical(expr),
            ExprKind::If { branches, otherwise } => {
                let around = self.region;
                let mut value = vec![];
                for (condition, then) in branches {
                    let sources = self.expr(condition);
                    let region = self.new_region();
                    self.add(&sources, region, Some(condition.span));
                    // Everything that follows depends on this condition and the ones before.
                    self.region = region;
                    value.append(&mut self.block(then));
                }
                if let Some(otherwise) = otherwise {
                    value.append(&mut self.block(otherwise));
                }
                if expr.ty != Type::Unit {
                    value.push(Source::Node(self.region));
                }
                self.region = around;
                value
            }
            ExprKind::Call { function, .. } => {
                let callee = function.0 as usize;
                let mut sources = self.children(expr);
                if self.calls.waits.get(callee).copied().unwrap_or(false) {
                    let (span, region) = (expr.span, self.region);
                    self.barriers.push(Barrier { span, region, callee: Some(callee) });
                }
                if self.differs.get(callee).copied().unwrap_or(false) {
                    sources.push(Source::Thread(expr.span));
                }
                sources
            }
            ExprKind::Builtin { builtin, .. } => {
                let sources = self.children(expr);
                self.builtin(*builtin, expr.span, sources)
            }
            ExprKind::Aggregate(_) => {
                let sources = self.children(expr);
                // Fields of a struct may differ independently, so nothing is claimed of the struct as a
                // whole.
                if matches!(expr.ty, Type::Struct(_)) { vec![] } else { sources }
            }
            // External functions are unknown; like the language's own, they are assumed to depend on their
            // arguments.
            _ => self.children(expr),
        }
    }

    /// The dependencies of the parts of an expression.
    fn children(&mut self, expr: &'t Expr) -> Vec<Source> {
        let mut sources = vec![];
        expr.for_each_child(|child| {
            sources.append(&mut match child {
                Child::Expr(part) => self.expr(part),
                Child::Block(block) => self.block(block),
            });
        });
        sources
    }

    /// `&&` and `||`: whether an operand is evaluated depends on all operands before it.
    fn logical(&mut self, expr: &'t Expr) -> Vec<Source> {
        let (first, links) = row(expr);
        let around = self.region;
        let mut sources = self.expr(first);
        let mut known = 0;
        let mut left = first.span;
        for (operator, right) in links {
            let region = self.new_region();
            self.add(&sources[known..], region, Some(left));
            left = operator.span;
            self.region = region;
            known = sources.len();
            sources.append(&mut self.expr(right));
        }
        self.region = around;
        sources
    }

    fn builtin(&mut self, builtin: Builtin, span: Span, mut sources: Vec<Source>) -> Vec<Source> {
        let properties = builtin.properties();
        if properties.waits == WaitsFor::Block {
            self.barriers.push(Barrier { span, region: self.region, callee: None });
        }
        match properties.varies {
            Varies::Never => vec![],
            Varies::WithArguments => sources,
            Varies::WithThread => {
                sources.push(Source::Thread(span));
                sources
            }
        }
    }

    /// For each node, why it differs between threads, if it does.
    fn spread(&self) -> Vec<Option<Cause>> {
        let mut causes: Vec<Option<Cause>> = vec![None; self.edges.len()];
        let mut open = std::collections::VecDeque::new();
        for (node, cause) in &self.roots {
            if causes[*node].is_none() {
                causes[*node] = Some(*cause);
                open.push_back((*node, *cause));
            }
        }
        while let Some((node, cause)) = open.pop_front() {
            for (to, step) in &self.edges[node] {
                if causes[*to].is_some() {
                    continue;
                }
                let cause = match *step {
                    Step::Plain => cause,
                    Step::Condition(span) => Cause { condition: Some(span), jump: None, ..cause },
                    Step::Jump(span) => Cause { jump: Some(span), ..cause },
                };
                causes[*to] = Some(cause);
                open.push_back((*to, cause));
            }
        }
        causes
    }

    fn warnings(&self, causes: &[Option<Cause>]) -> Found {
        let differing = self.barriers.iter().filter_map(|b| Some((b, causes[b.region]?)));
        differing.map(|(barrier, cause)| self.warning(barrier, cause)).collect()
    }

    fn warning(&self, barrier: &Barrier, cause: Cause) -> Diagnostic {
        let message = "some threads of the block may not reach this barrier";
        let mut warning = Diagnostic::warning(ids::DIVERGENT_BARRIER, barrier.span, message);
        warning = match barrier.callee {
            None => warning.at_caret("waits for all threads of the block"),
            Some(callee) => {
                let name = &self.program.functions[callee].name;
                warning.at_caret(format!("`{name}` waits for all threads of the block"))
            }
        };
        if let Some(condition) = cause.condition {
            warning = warning.label(condition, "not the same for all threads");
            let within = condition.file == cause.origin.file
                && (condition.start..condition.end).contains(&cause.origin.start);
            if !within {
                warning = warning.label(cause.origin, "because of this");
            }
        }
        if let Some(jump) = cause.jump {
            warning = warning.label(jump, "some threads leave here");
        }
        warning.hint("move the barrier out of the condition, and leave only the work inside")
    }
}

/// The variable that an assignment makes differ as a whole. An assigned field says nothing about the others.
fn assigned(place: &Expr) -> Option<LocalId> {
    match &place.kind {
        ExprKind::Local(id) => {
            let mixed = matches!(place.ty, Type::Struct(id) if id != StructId::DIM3);
            (!mixed).then_some(*id)
        }
        ExprKind::Index { base, .. } if matches!(base.ty, Type::Array(..)) => assigned(base),
        _ => None,
    }
}
