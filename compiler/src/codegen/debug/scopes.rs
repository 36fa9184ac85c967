//! The scopes of a function: where in its text its variables are known.
//!
//! The variables of a block share a scope, which begins after the first declaration. A variable whose name the block has
//! already declared begins a scope within it, so that a debugger shows the one that the position means.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use inkwell::debug_info::{AsDIScope, DIScope};

use super::Debug;
use crate::codegen::function::FunctionEmitter;
use gridlet_lang::ir::Variable;
use gridlet_lang::source::Span;

/// Maximum depth of scopes: LLVM walks them recursively. Deeper ones share the last.
const MAX_DEPTH: usize = 200;

/// The scopes of one function.
pub(in crate::codegen) struct Scopes<'ctx> {
    /// The position of the function.
    home: Span,
    /// The first is the function.
    scopes: Vec<DIScope<'ctx>>,
    /// The bytes at which the innermost scope changes, in order, and the scope from there on.
    changes: Vec<(u32, usize)>,
    /// By scope and name of a file, scopes for text that `#line` says is from another file than the function.
    others: RefCell<BTreeMap<(usize, String), DIScope<'ctx>>>,
}

impl<'ctx> Scopes<'ctx> {
    /// The scope in which a variable is known.
    pub(super) fn of(&self, variable: &Variable) -> DIScope<'ctx> {
        match variable.scope {
            Some(scope) if variable.parameter.is_none() => self.scopes[self.index(scope)],
            _ => self.scopes[0],
        }
    }

    /// A position of the source: what the launch stage has added is at its function.
    pub(super) fn known(&self, span: Span) -> Span {
        if span == Span::NOWHERE { self.home } else { span }
    }

    /// The innermost scope at the start of a span.
    fn index(&self, span: Span) -> usize {
        if span.file != self.home.file {
            return 0;
        }
        let after = self.changes.partition_point(|(at, _)| *at <= span.start);
        after.checked_sub(1).map_or(0, |at| self.changes[at].1)
    }
}

/// A scope that is open at the current place.
struct Open<'v> {
    end: u32,
    index: usize,
    names: BTreeSet<&'v str>,
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// The scopes of this function, within that of its subprogram.
    pub(super) fn scopes_of(
        &self,
        debug: &Debug<'ctx>,
        function: DIScope<'ctx>,
        home: Span,
    ) -> Scopes<'ctx> {
        let (mut scopes, mut changes) = (vec![function], vec![]);
        let all = self.function.slots.iter().filter_map(|slot| slot.variable.as_ref());
        let mut known: Vec<(Span, &Variable)> = all
            .filter(|_| debug.has_variables())
            .filter_map(|variable| Some((variable.scope?, variable)))
            .filter(|(scope, _)| scope.file == home.file && scope.start < scope.end)
            .collect();
        known.sort_by_key(|(scope, _)| (scope.start, Reverse(scope.end)));
        let mut open: Vec<Open<'_>> = vec![];
        let close = |open: &mut Vec<Open<'_>>, changes: &mut Vec<_>, before: u32| {
            while let Some(last) = open.pop_if(|last| last.end <= before) {
                changes.push((last.end, open.last().map_or(0, |outer| outer.index)));
            }
        };
        for (scope, variable) in known {
            close(&mut open, &mut changes, scope.start);
            let is_full = open.len() >= MAX_DEPTH;
            if let Some(last) = open.last_mut()
                && last.end == scope.end
                && (last.names.insert(&variable.name) || is_full)
            {
                continue;
            }
            if is_full {
                continue;
            }
            let outer = open.last().map_or(0, |outer| outer.index);
            // The scope of parameters is the function.
            let index = if variable.parameter.is_some() { outer } else { scopes.len() };
            if index == scopes.len() {
                let at = self.cx.ir.sources.position(scope);
                let of = debug.file(self.cx, scope);
                let parent = scopes[outer];
                let block = debug.builder.create_lexical_block(parent, of, at.line, at.column);
                scopes.push(block.as_debug_info_scope());
                changes.push((scope.start, index));
            }
            let names = BTreeSet::from([variable.name.as_str()]);
            open.push(Open { end: scope.end, index, names });
        }
        close(&mut open, &mut changes, u32::MAX);
        Scopes { home, scopes, changes, others: RefCell::default() }
    }

    /// The innermost scope at the start of a span, in the file that the text is from.
    pub(super) fn scope_at(
        &self,
        debug: &Debug<'ctx>,
        scopes: &Scopes<'ctx>,
        span: Span,
    ) -> DIScope<'ctx> {
        let sources = &self.cx.ir.sources;
        let (index, name) = (scopes.index(span), sources.name(span));
        if name == sources.name(scopes.home) {
            return scopes.scopes[index];
        }
        let key = (index, name.to_owned());
        *scopes.others.borrow_mut().entry(key).or_insert_with(|| {
            let (file, at) = (debug.file(self.cx, span), sources.position(span));
            let parent = scopes.scopes[index];
            let block = debug.builder.create_lexical_block(parent, file, at.line, at.column);
            block.as_debug_info_scope()
        })
    }
}
