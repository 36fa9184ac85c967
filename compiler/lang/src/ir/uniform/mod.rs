//! Finds the values that all threads of a block, or of a warp, have in common.
//!
//! A value is *uniform* if every thread that computes it gets the same result. Everything else *varies*, and so does
//! everything that is not shown to be uniform:
//!
//! - What [`InstKind`] computes from uniform operands is uniform. The thread's index, the lane, the results of atomic
//!   operations, clocks, allocations and calls of external functions vary. The parameters of kernels are uniform; those of
//!   other functions are if they are in every call. The result of a call is uniform if the function gives each thread the same
//!   for the arguments of this call, whatever those of others are.
//! - A branch on a varying condition makes its *region* partial: the blocks between the branch and the block where all
//!   paths meet again. Only some threads run them, or each thread runs them a different number of times. All values that
//!   they compute, and all slots that they store to, vary. Branches inside a region add nothing, because their regions lie
//!   within.
//! - A slot is uniform if its address does not escape and everything stored to it is uniform. One that holds several values in turn
//!   is analysed as several slots: see `webs.rs`.
//! - A load from other memory is uniform if its address is, and if no operation that orders the accesses of *some* threads
//!   can precede it without a barrier between: see `loads.rs`. This relies on the absence of data races.
//!
//! Why this is right: all threads run the same sequence of blocks outside regions, and between two blocks of this sequence
//! no uniform slot changes.

mod lanes;
mod loads;
mod regions;
mod results;
mod returns;
#[cfg(test)]
mod tests;
mod webs;

use std::collections::HashMap;

pub use returns::{EarlyReturns, returns_before};

use super::graph::CallGraph;
use super::guards::THREAD_IDX;
use super::loops::reverse_post_order;
use super::{
    BlockId, Const, Function, FunctionId, InstId, InstKind, Module, Operand, SlotId, Terminator,
};
use crate::builtins::{Builtin, ShuffleMode, Varies};
use crate::types::{Scalar, Type};
use lanes::Lanes;
use regions::Regions;
use results::FunctionResult;
use webs::Webs;

/// The threads that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of a block.
    Block,
    /// Those of a warp.
    Warp,
    /// Those of a warp of a block in which the index of the first thread of each warp is a multiple of 32 in `x`, and all its
    /// threads have the same `y` and `z`. So it is if `block_dim.x` is a multiple of 32, or the block has one dimension.
    AlignedWarp,
}

/// The uniform values and the regions of a module.
pub struct Uniformity {
    /// By function.
    nodes: Vec<Nodes>,
    /// By node, whether it varies.
    varies: Vec<bool>,
    /// By function.
    regions: Vec<Regions>,
}

impl Uniformity {
    /// Analyses a module. `loads_vary` tells of which functions no load from memory is uniform.
    pub fn of(module: &Module, scope: Scope, loads_vary: impl Fn(FunctionId) -> bool) -> Self {
        let mut graph = Graph::of(module, scope);
        let unordered = loads::unordered(module);
        let calls = CallGraph::of(module);
        let recursive = calls.recursive();
        for at in calls.callees_first() {
            let (id, function) = (FunctionId(at as u32), &module.functions[at]);
            let before = (graph.seeds.len(), graph.open_calls.len());
            graph.add(id, function, &|inst| loads_vary(id) || unordered[at][inst.index()]);
            if !recursive[at] && function.result != Type::Unit {
                let seeds = [&graph.seeds[before.0..], &graph.open_calls[before.1..]].concat();
                graph.results[at] = Some(FunctionResult::of(&graph, id, &seeds));
            }
        }
        graph.solve()
    }

    /// Whether a branch may go different ways in different threads that reach it together.
    pub fn branch_varies(&self, module: &Module, function: FunctionId, block: BlockId) -> bool {
        let nodes = &self.nodes[function.index()];
        match &module.function(function).blocks[block.index()].terminator {
            Terminator::Branch { condition: Operand::Inst(id), .. } => self.varies[nodes.inst(*id)],
            Terminator::Branch { condition: Operand::Parameter(at), .. } => {
                self.varies[nodes.parameter(*at)]
            }
            _ => false,
        }
    }

    /// Whether a block lies in the region of a branch that varies.
    pub fn is_partial(&self, function: FunctionId, block: BlockId) -> bool {
        self.regions[function.index()].has(block)
    }
}

/// The numbers of a function's nodes: one for each parameter, instruction, slot and web of a slot, and one for the result.
struct Nodes {
    parameters: usize,
    instructions: usize,
    slots: usize,
    first_web: usize,
    webs: Webs,
    result: usize,
}

impl Nodes {
    fn parameter(&self, at: u32) -> usize {
        self.parameters + at as usize
    }

    fn inst(&self, id: InstId) -> usize {
        self.instructions + id.index()
    }

    fn slot(&self, id: SlotId) -> usize {
        self.slots + id.index()
    }

    /// The node of what a load reads of a slot, or a store writes to it.
    fn accessed(&self, access: InstId, slot: SlotId) -> usize {
        match self.webs.web(access) {
            Some(web) => self.first_web + web,
            None => self.slot(slot),
        }
    }
}

/// The cause of a variation.
#[derive(Clone, Copy)]
enum Source {
    /// None: the value is uniform.
    None,
    /// The value varies if this node does.
    Node(usize),
    /// The value varies.
    Varies,
}

/// What a node that varies causes.
enum Effect {
    /// Another node varies.
    Node(usize),
    /// A branch varies.
    Branch(FunctionId, BlockId),
}

/// The dependencies between the nodes of a module.
struct Graph<'m> {
    module: &'m Module,
    scope: Scope,
    nodes: Vec<Nodes>,
    /// By node.
    effects: Vec<Vec<Effect>>,
    /// The nodes that vary in any case.
    seeds: Vec<usize>,
    /// Arguments, with the nodes of the parameters that get them.
    arguments: Vec<(Source, usize)>,
    /// Calls of functions whose results are not known yet.
    open_calls: Vec<usize>,
    /// By function, if known.
    results: Vec<Option<FunctionResult>>,
    regions: Vec<Regions>,
    /// By function and block, the nodes that vary if the block is partial.
    inside: Vec<Vec<Vec<usize>>>,
}

impl<'m> Graph<'m> {
    fn of(module: &'m Module, scope: Scope) -> Self {
        let mut count = 0;
        let mut take = |n: usize| {
            count += n;
            count - n
        };
        let nodes = module.functions.iter().map(|function| {
            let webs = Webs::of(function);
            Nodes {
                parameters: take(function.parameters.len()),
                instructions: take(function.instructions.len()),
                slots: take(function.slots.len()),
                first_web: take(webs.count()),
                webs,
                result: take(1),
            }
        });
        let nodes = nodes.collect();
        Graph {
            module,
            scope,
            nodes,
            effects: std::iter::repeat_with(Vec::new).take(count).collect(),
            seeds: Vec::new(),
            arguments: Vec::new(),
            open_calls: Vec::new(),
            results: module.functions.iter().map(|_| None).collect(),
            regions: module.functions.iter().map(Regions::of).collect(),
            inside: vec![Vec::new(); module.functions.len()],
        }
    }

    fn flow(&mut self, from: Source, to: usize) {
        match from {
            Source::None => {}
            Source::Node(from) => self.effects[from].push(Effect::Node(to)),
            Source::Varies => self.seeds.push(to),
        }
    }

    fn add(
        &mut self,
        id: FunctionId,
        function: &'m Function,
        load_varies: &dyn Fn(InstId) -> bool,
    ) {
        let order = reverse_post_order(function);
        let lanes = Lanes::of(function, self.scope);
        let mut wiring = Wiring { id, function, lanes, roots: HashMap::new() };
        let mut inside = vec![Vec::new(); function.blocks.len()];
        for block in order {
            let known = &function.blocks[block.index()];
            for &inst in &known.instructions {
                wiring.inst(self, inst, load_varies);
                inside[block.index()].push(self.nodes[id.index()].inst(inst));
                if let InstKind::Store { pointer, .. } = &function.instructions[inst.index()].kind
                    && let Some(slot) = wiring.root(pointer)
                {
                    inside[block.index()].push(self.nodes[id.index()].accessed(inst, slot));
                }
            }
            match &known.terminator {
                Terminator::Branch { condition, .. } => match wiring.source(self, condition) {
                    Source::Node(from) => self.effects[from].push(Effect::Branch(id, block)),
                    Source::None | Source::Varies => {}
                },
                Terminator::Return(Some(value)) => {
                    let source = wiring.source(self, value);
                    let result = self.nodes[id.index()].result;
                    self.flow(source, result);
                    inside[block.index()].push(result);
                }
                _ => {}
            }
        }
        self.inside[id.index()] = inside;
    }

    fn solve(mut self) -> Uniformity {
        for (argument, parameter) in std::mem::take(&mut self.arguments) {
            self.flow(argument, parameter);
        }
        let mut varies = vec![false; self.effects.len()];
        let mut regions = std::mem::take(&mut self.regions);
        let seeds = std::mem::take(&mut self.seeds);
        self.spread(seeds, (0, &mut varies), (0, &mut regions));
        Uniformity { nodes: self.nodes, varies, regions }
    }

    /// Marks the nodes that vary if those in `open` do. `varies` has the marks from a node on, and `regions` those of the functions
    /// from one on.
    fn spread(
        &self,
        mut open: Vec<usize>,
        (first_node, varies): (usize, &mut [bool]),
        (first_function, regions): (usize, &mut [Regions]),
    ) {
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut varies[node - first_node], true) {
                continue;
            }
            for effect in &self.effects[node] {
                match effect {
                    Effect::Node(to) => open.push(*to),
                    Effect::Branch(id, block) => {
                        let function = self.module.function(*id);
                        for new in regions[id.index() - first_function].add(function, *block) {
                            open.extend(&self.inside[id.index()][new.index()]);
                        }
                    }
                }
            }
        }
    }
}

/// Adds the dependencies of a function.
struct Wiring<'m> {
    id: FunctionId,
    function: &'m Function,
    lanes: Lanes<'m>,
    /// The slot that an address lies in, for addresses of parts of slots.
    roots: HashMap<InstId, SlotId>,
}

impl Wiring<'_> {
    /// The slot that a pointer surely points into.
    fn root(&self, pointer: &Operand) -> Option<SlotId> {
        match pointer {
            Operand::Slot(slot) => Some(*slot),
            Operand::Inst(id) => self.roots.get(id).copied(),
            _ => None,
        }
    }

    fn is_geometry(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Parameter(0) => self.function.takes_geometry,
            Operand::Inst(id) => {
                self.function.instructions[id.index()].kind == InstKind::HardwareGeometry
            }
            _ => false,
        }
    }

    /// The node of an operand, regardless of what it points to.
    fn node(&self, graph: &Graph<'_>, operand: &Operand) -> Source {
        let nodes = &graph.nodes[self.id.index()];
        match operand {
            Operand::Inst(id) => Source::Node(nodes.inst(*id)),
            Operand::Parameter(at) => Source::Node(nodes.parameter(*at)),
            Operand::Slot(_) | Operand::Global(_) | Operand::Kernel(_) | Operand::Const(_) => {
                Source::None
            }
        }
    }

    /// Why an operand that is used as a value varies. An address of a slot escapes: it is another one in each thread, and
    /// anything may be stored there.
    fn source(&self, graph: &mut Graph<'_>, operand: &Operand) -> Source {
        if let Some(slot) = self.root(operand) {
            let slot = graph.nodes[self.id.index()].slot(slot);
            graph.seeds.push(slot);
            return Source::Varies;
        }
        if self.is_geometry(operand) { Source::Varies } else { self.node(graph, operand) }
    }

    fn flow_all(&self, graph: &mut Graph<'_>, kind: &InstKind, to: usize) {
        kind.for_each_operand(|operand| {
            let source = self.source(graph, operand);
            graph.flow(source, to);
        });
    }

    fn inst(&mut self, graph: &mut Graph<'_>, id: InstId, load_varies: &dyn Fn(InstId) -> bool) {
        let kind = &self.function.instructions[id.index()].kind;
        let to = graph.nodes[self.id.index()].inst(id);
        match kind {
            InstKind::Load(pointer) => {
                let address = match self.root(pointer) {
                    Some(slot) => {
                        let slot = graph.nodes[self.id.index()].accessed(id, slot);
                        graph.flow(Source::Node(slot), to);
                        self.node(graph, pointer)
                    }
                    None if load_varies(id) => Source::Varies,
                    None => self.source(graph, pointer),
                };
                graph.flow(address, to);
            }
            InstKind::Store { pointer, value } => {
                let value = self.source(graph, value);
                if let Some(slot) = self.root(pointer) {
                    let slot = graph.nodes[self.id.index()].accessed(id, slot);
                    graph.flow(value, slot);
                    let address = self.node(graph, pointer);
                    graph.flow(address, slot);
                }
            }
            InstKind::FieldAddress { base, .. }
            | InstKind::ElementAddress { base, .. }
            | InstKind::ByteOffset { base, .. } => {
                let Some(slot) = self.root(base) else {
                    return self.flow_all(graph, kind, to);
                };
                self.roots.insert(id, slot);
                let base = self.node(graph, base);
                graph.flow(base, to);
                if let InstKind::ElementAddress { index, .. } = kind {
                    let index = self.source(graph, index);
                    graph.flow(index, to);
                }
            }
            InstKind::Extract { base, index } if self.is_geometry(base) => {
                let base = self.node(graph, base);
                graph.flow(if *index == THREAD_IDX { Source::Varies } else { base }, to);
            }
            InstKind::HardwareGeometry => {}
            _ if self.lanes.is_common(kind) => {}
            InstKind::Call { function, arguments } => self.call(graph, *function, arguments, to),
            InstKind::Builtin { builtin, arguments, .. } => {
                self.flow_result(graph, *builtin, arguments, to);
            }
            InstKind::CallExtern { .. } | InstKind::Launch(_) => {
                self.flow_all(graph, kind, to);
                graph.seeds.push(to);
            }
            InstKind::Unary(..)
            | InstKind::Binary(..)
            | InstKind::Advance(..)
            | InstKind::Cast(_)
            | InstKind::Select(..)
            | InstKind::PointerDifference(..)
            | InstKind::Extract { .. }
            | InstKind::Aggregate(_) => self.flow_all(graph, kind, to),
        }
    }

    /// The parameters of the callee vary with the arguments.
    fn call(&self, graph: &mut Graph<'_>, callee: FunctionId, arguments: &[Operand], to: usize) {
        let takes_geometry = graph.module.function(callee).takes_geometry;
        let mut sources = Vec::with_capacity(arguments.len());
        for (at, argument) in (0..).zip(arguments) {
            let source = if at == 0 && takes_geometry && self.is_geometry(argument) {
                self.node(graph, argument)
            } else {
                self.source(graph, argument)
            };
            graph.arguments.push((source, graph.nodes[callee.index()].parameter(at)));
            sources.push(source);
        }
        graph.call(callee, &sources, to);
    }

    fn flow_result(
        &self,
        graph: &mut Graph<'_>,
        builtin: Builtin,
        arguments: &[Operand],
        to: usize,
    ) {
        let properties = builtin.properties();
        let names_all_lanes = arguments.first() == Some(&ALL_LANES);
        let of_warp = graph.scope != Scope::Block && names_all_lanes;
        let sources: Vec<Source> =
            arguments.iter().map(|argument| self.source(graph, argument)).collect();
        match builtin {
            _ if properties.varies == Varies::Never => {}
            _ if properties.is_function() => {
                sources.into_iter().for_each(|source| graph.flow(source, to));
            }
            Builtin::Vote(_) | Builtin::Reduce(_) if of_warp => {}
            Builtin::Shuffle(ShuffleMode::Index) if of_warp => {
                sources.into_iter().skip(2).for_each(|source| graph.flow(source, to));
            }
            _ => graph.seeds.push(to),
        }
    }
}

/// The mask of all lanes of a warp.
pub(crate) const ALL_LANES: Operand = Operand::Const(Const::Int(Scalar::U32, 0xffff_ffff));
