//! The call graph.

use super::super::tree::{ExprKind, FunctionId, Program};
use super::super::visit::{Node, visit_block};
use super::may_be_unused;
use crate::builtins::WaitsFor;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::FileId;

/// The calls of a program.
pub(super) struct Calls {
    /// For each function, its callees.
    callees: Vec<Vec<usize>>,
    /// For each function, whether it, or a function that it calls, contains a block-wide barrier.
    pub(super) waits: Vec<bool>,
}

impl Calls {
    pub(super) fn of(program: &Program) -> Calls {
        let count = program.functions.len();
        let mut calls = Calls { callees: vec![vec![]; count], waits: vec![false; count] };
        let mut callers = vec![vec![]; count];
        for (caller, function) in program.functions.iter().enumerate() {
            visit_block(&function.body, &mut |node| match node {
                Node::Expr(expr) => match &expr.kind {
                    ExprKind::Call { function: FunctionId(callee), .. } => {
                        let callee = *callee as usize;
                        if let Some(callers) = callers.get_mut(callee) {
                            callers.push(caller);
                            calls.callees[caller].push(callee);
                        }
                    }
                    ExprKind::Builtin { builtin, .. } => {
                        calls.waits[caller] |= builtin.properties().waits == WaitsFor::Block;
                    }
                    _ => {}
                },
                Node::Statement(_) => {}
            });
        }
        let mut open: Vec<usize> = (0..count).filter(|at| calls.waits[*at]).collect();
        while let Some(callee) = open.pop() {
            for caller in &callers[callee] {
                if !std::mem::replace(&mut calls.waits[*caller], true) {
                    open.push(*caller);
                }
            }
        }
        calls
    }

    /// All functions, each after its callees, apart from cycles.
    pub(super) fn callees_first(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.callees.len());
        let mut seen = vec![false; self.callees.len()];
        for root in 0..self.callees.len() {
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            // An explicit stack replaces recursion.
            let mut open = vec![(root, 0)];
            while let Some((at, next)) = open.last_mut() {
                match self.callees[*at].get(*next) {
                    Some(callee) => {
                        *next += 1;
                        if !std::mem::replace(&mut seen[*callee], true) {
                            open.push((*callee, 0));
                        }
                    }
                    None => {
                        order.push(*at);
                        open.pop();
                    }
                }
            }
        }
        order
    }

    /// The functions of a file that no kernel calls. Those of other files may be used by other programs.
    pub(super) fn unused_functions(&self, program: &Program, file: FileId) -> Vec<Diagnostic> {
        let functions = &program.functions;
        let mut used: Vec<bool> = functions.iter().map(|f| f.kernel.is_some()).collect();
        let mut open: Vec<usize> = (0..used.len()).filter(|at| used[*at]).collect();
        while let Some(caller) = open.pop() {
            for callee in &self.callees[caller] {
                if !std::mem::replace(&mut used[*callee], true) {
                    open.push(*callee);
                }
            }
        }
        let unused = functions.iter().zip(used).filter(|(function, used)| {
            !used && function.span.file == file && !may_be_unused(&function.name)
        });
        unused
            .map(|(function, _)| {
                let name = &function.name;
                let message = format!("no kernel calls the function `{name}`");
                Diagnostic::warning(ids::UNUSED_FUNCTION, function.span, message)
                    .hint(format!("remove it, or call it `_{name}`"))
            })
            .collect()
    }
}
