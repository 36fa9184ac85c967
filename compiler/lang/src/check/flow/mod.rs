//! Flow analysis of programs without errors: variables read before they are set, useless code, and code that
//! cannot work.
//!
//! Each analysis walks the typed tree once, in linear time. Its recursion follows the tree, whose height the
//! parser bounds.

mod barriers;
mod graph;
mod reach;
mod results;
mod set;
mod unset;
mod usage;

use std::collections::{HashMap, HashSet};

use super::tree::{Function, LaunchBounds, Program};
use crate::diagnostics::{Collector, Diagnostic, Severity};
use crate::source::{FileId, Span};

/// Analyses a program without errors. It may contain several instances of a function with const parameters:
/// useless code must be useless in each of them, and is reported once.
pub(super) fn analyse(program: &Program, errors: &mut Collector, warnings: &mut Collector) {
    let calls = graph::Calls::of(program);
    let mut copies: HashMap<Span, usize> = HashMap::new();
    let mut found = vec![];
    for function in &program.functions {
        *copies.entry(function.span).or_default() += 1;
        let mut list = vec![];
        let set = unset::analyse(function);
        list.extend(set.errors);
        usage::analyse(function, &set.changed, &mut list);
        reach::analyse(function, &mut list);
        results::analyse(function, &mut list);
        found.extend(list.into_iter().map(|diagnostic| (function.span, diagnostic)));
    }
    let mut times: HashMap<_, usize> = HashMap::new();
    for (_, diagnostic) in &found {
        *times.entry(key(diagnostic)).or_default() += 1;
    }
    found.retain(|(function, diagnostic)| {
        diagnostic.severity == Severity::Error || times[&key(diagnostic)] == copies[function]
    });
    let mut found: Found = found.into_iter().map(|(_, diagnostic)| diagnostic).collect();
    barriers::analyse(program, &calls, &mut found);
    found.extend(calls.unused_functions(program, FileId(0)));
    let mut seen = HashSet::new();
    for diagnostic in found {
        if seen.insert(key(&diagnostic)) {
            let list = match diagnostic.severity {
                Severity::Error => &mut *errors,
                Severity::Warning => &mut *warnings,
            };
            list.push(diagnostic);
        }
    }
}

/// The key that identifies a message.
fn key(diagnostic: &Diagnostic) -> (&'static str, Option<Span>) {
    (diagnostic.id, diagnostic.labels.first().map(|label| label.span))
}

/// Whether a variable or item may be unused according to its name.
fn may_be_unused(name: &str) -> bool {
    name.starts_with('_')
}

/// The messages about one function.
type Found = Vec<Diagnostic>;

/// Whether a block has only one thread, so that threads cannot diverge.
fn single_thread(function: &Function) -> bool {
    LaunchBounds::is_one_thread(function.kernel.and_then(|kernel| kernel.launch_bounds))
}
