//! Why the result of a call varies.
//!
//! A function that is called with an index of the thread here may be called with a parameter of the kernel there. So a call's result
//! does not depend on the arguments of other calls: once a function's own dependencies are known, each of its parameters is
//! followed through it. Functions that may call themselves are not: their results vary together.

use super::{Graph, Source};
use crate::ir::FunctionId;

/// Why the result of a function varies.
pub(super) struct FunctionResult {
    /// It varies even if no parameter does.
    varies: bool,
    /// By parameter, whether it may vary if that does.
    parameters: Vec<bool>,
}

impl FunctionResult {
    /// Of a function whose dependencies have been added last, after those of the functions that it calls. `seeds` are the nodes of
    /// the function that vary in any case.
    pub(super) fn of(graph: &Graph<'_>, id: FunctionId, seeds: &[usize]) -> FunctionResult {
        let count = graph.module.function(id).parameters.len() as u32;
        let nodes = &graph.nodes[id.index()];
        let varies = result_varies(graph, id, seeds);
        let parameter = |at| varies || result_varies(graph, id, &[nodes.parameter(at)]);
        FunctionResult { varies, parameters: (0..count).map(parameter).collect() }
    }
}

/// Whether a function's result varies if these of its nodes do.
fn result_varies(graph: &Graph<'_>, id: FunctionId, seeds: &[usize]) -> bool {
    let nodes = &graph.nodes[id.index()];
    let first = nodes.parameters;
    let mut varies = vec![false; nodes.result + 1 - first];
    let mut regions = [graph.regions[id.index()].clone()];
    graph.spread(seeds.to_vec(), (first, &mut varies), (id.index(), &mut regions));
    varies[nodes.result - first]
}

impl Graph<'_> {
    /// Adds why the result of a call varies. `sources` are those of the arguments.
    pub(super) fn call(&mut self, callee: FunctionId, sources: &[Source], to: usize) {
        match &self.results[callee.index()] {
            Some(result) if result.varies => self.seeds.push(to),
            Some(result) => {
                let causes: Vec<Source> = result
                    .parameters
                    .iter()
                    .zip(sources)
                    .filter(|(varies_with, _)| **varies_with)
                    .map(|(_, source)| *source)
                    .collect();
                causes.into_iter().for_each(|source| self.flow(source, to));
            }
            None => {
                let result = self.nodes[callee.index()].result;
                self.open_calls.push(to);
                self.flow(Source::Node(result), to);
            }
        }
    }
}
