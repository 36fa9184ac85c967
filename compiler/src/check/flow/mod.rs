//! What can be seen of a right program's flow: variables that are read before they are set, and all that is
//! written for nothing or cannot work.
//!
//! Each analysis walks the typed tree once, in time that grows with its size. Its recursion follows the tree,
//! whose height the parser bounds.

mod barriers;
mod graph;
mod reach;
mod results;
mod unset;
mod usage;

use super::tree::{Function, Program};
use crate::diagnostics::{Collector, Diagnostic};
use crate::source::FileId;

/// Looks at a program without errors. Functions may stand in it several times, for several values of their
/// const parameters: what is found in each is reported once.
pub(super) fn analyse(program: &Program, errors: &mut Collector, warnings: &mut Collector) {
    let calls = graph::Calls::of(program);
    let mut found = vec![];
    for function in &program.functions {
        let set = unset::analyse(function);
        found.extend(set.errors);
        usage::analyse(function, &set.changed, &mut found);
        reach::analyse(function, &mut found);
        results::analyse(function, &mut found);
    }
    barriers::analyse(program, &calls, &mut found);
    found.extend(calls.unused_functions(program, FileId(0)));
    let mut seen = std::collections::HashSet::new();
    for diagnostic in found {
        let at = diagnostic.labels.first().map(|label| label.span);
        if seen.insert((diagnostic.id, at)) {
            let list = match diagnostic.severity {
                crate::diagnostics::Severity::Error => &mut *errors,
                crate::diagnostics::Severity::Warning => &mut *warnings,
            };
            list.push(diagnostic);
        }
    }
}

/// Whether a name says that its variable or item may be unused.
fn may_be_unused(name: &str) -> bool {
    name.starts_with('_')
}

/// What the analyses of one function tell.
type Found = Vec<Diagnostic>;

/// Whether a block has but one thread, so that threads cannot differ.
fn single_thread(function: &Function) -> bool {
    let bounds = function.kernel.and_then(|kernel| kernel.launch_bounds);
    bounds.is_some_and(|bounds| bounds.max_threads == 1)
}
