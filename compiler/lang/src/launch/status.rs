//! The part of lowering launches that all strategies share: the handling of a launch's status.
//!
//! A strategy emits the instructions that attempt a launch; this module adds the rest:
//! ```text
//!   …                                             ; the attempt, which stores the status
//! launch.end:                                     ; the value of `try launch`
//!   %4: i32 = load $launch_status
//! ```
//! and, unless the program asked for the status:
//! ```text
//!   %5: bool = ne %4, 0i32
//!   branch %5, launch.lost, launch.next
//! launch.lost:                                    ; an attempt that knows that it failed comes here directly
//!   %6: i32 = load $launch_status
//!   call @gridlet.record_lost_launch(%6, file, line)
//!   jump launch.next
//! launch.next:
//! ```
//! The call stays a call ([`stays_out_of_line`]): inlined, it would be a third of a launch's machine code.
//!
//! Where launches are counted, the attempt also adds `status == 0` to the count, without a branch.

use std::collections::{BTreeMap, BTreeSet};

use gridlet_artifact::manifest::LINKED_SOURCE;

use crate::builtins::{AtomicOp, Builtin, Scope};
use crate::error::Result;
use crate::ir::build::{BodyBuilder, Signature};
use crate::ir::graph::control_flow;
use crate::ir::{
    BinaryOp, Block, BlockId, Const, Function, FunctionId, Global, GlobalId, Init, Inst, InstId,
    InstKind, Launch, Module, Operand, Parameter, Role, Slot, SlotId, Space, Terminator, Unroll,
    reach,
};
use crate::source::{FileId, SourceMap, Span};
use crate::types::{Scalar, Type};

/// The device global of four 32-bit words that records plain launches that fail: see
/// `gridlet_artifact::manifest::LostLaunchRecord`. Every image of a program that launches or fills has it.
pub const LOST_LAUNCH_RECORD: &str = "__gridlet_lost_launches";

/// The device global, a `u64`, where the host puts the address of a 32-bit word in its own memory, or 0. The first launch that is
/// recorded sets the word to 1, so a host need not copy [`LOST_LAUNCH_RECORD`] to learn that it is empty. Only images with
/// [`super::LaunchOptions::notice`] have it.
pub const LOST_LAUNCH_NOTICE: &str = "__gridlet_lost_launch_notice";

/// The device global, a `u64`, that counts the launches that succeeded. Only images that count launches have it: see
/// [`super::LaunchOptions::count_launches`].
pub const LAUNCHES_MADE: &str = "__gridlet_launches_made";

/// The function that writes to [`LOST_LAUNCH_RECORD`]. Names in the language never contain a dot.
pub const RECORD_LOST_LAUNCH: &str = "gridlet.record_lost_launch";

/// Whether a function that this module adds must not be inlined.
pub(super) fn stays_out_of_line(function: &str) -> bool {
    function == RECORD_LOST_LAUNCH
}

/// What the host learns of launches, besides the record of lost ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reports {
    /// Whether launches that succeed are counted, in [`LAUNCHES_MADE`].
    pub(super) count_launches: bool,
    /// Whether a lost launch is noted in host memory, through [`LOST_LAUNCH_NOTICE`].
    pub(super) notice: bool,
}

/// How a strategy attempts one launch.
pub(super) trait Attempt: Sized {
    /// How many blocks an attempt adds.
    const BLOCKS: u32;

    /// Emits an attempt, starting in the open block: sets the status on every path, counts a success, and jumps to `end`,
    /// the first block after those that it adds. A path whose status is an error may jump to [`Rewriter::failed`] instead.
    /// Closes every block.
    fn attempt(&self, to: &mut Rewriter<'_, '_, Self>, launch: &Launch, span: Span, end: BlockId);
}

/// Replaces every launch of a module. Adds the record of lost launches and what `reports` asks for.
pub(super) fn replace_launches(
    module: &mut Module,
    reports: Reports,
    attempt: &impl Attempt,
) -> Result<()> {
    let mut export = |name: &str, ty| {
        let (space, init) = (Space::Device, Init::Zero);
        module.globals.push(Global {
            name: name.into(),
            space,
            ty,
            init,
            exported: true,
            variable: None,
        });
        GlobalId(module.globals.len() as u32 - 1)
    };
    let record = export(LOST_LAUNCH_RECORD, Type::Array(Box::new(Type::U32), 4));
    let notice = reports.notice.then(|| export(LOST_LAUNCH_NOTICE, Type::U64));
    let made = reports.count_launches.then(|| export(LAUNCHES_MADE, Type::U64));
    let record_lost_launch = FunctionId(module.functions.len() as u32);
    let context = Context { attempt, sources: &module.sources, record_lost_launch, made };
    let mut any_plain = false;
    for function in &mut module.functions {
        let launches = function.instructions.iter().filter_map(|inst| match &inst.kind {
            InstKind::Launch(launch) => Some(launch.is_try),
            _ => None,
        });
        let launches: Vec<bool> = launches.collect();
        if !launches.is_empty() {
            any_plain |= launches.contains(&false);
            Rewriter::new(&context, function).rewrite();
        }
    }
    if any_plain {
        module.functions.push(build_record_lost_launch(record, notice)?);
    }
    Ok(())
}

struct Context<'c, A> {
    attempt: &'c A,
    sources: &'c SourceMap,
    record_lost_launch: FunctionId,
    /// The count of launches, if they are counted.
    made: Option<GlobalId>,
}

/// Replaces the launches of one function. Instructions keep their ids: a launch becomes the load of its status in
/// `launch.end`, so uses of a `try launch` stay valid.
pub(super) struct Rewriter<'c, 'f, A> {
    context: &'c Context<'c, A>,
    function: &'f mut Function,
    blocks: Vec<Block>,
    /// The instructions of the open block.
    open: Vec<InstId>,
    open_name: String,
    open_unroll: Option<Unroll>,
    /// The position of the end of the old block that the open block ends with.
    open_end: Option<Span>,
    names: BTreeSet<String>,
    numbers: BTreeMap<&'static str, u32>,
    status: Operand,
    /// By old block, whether the kernel ends soon after it.
    before_end: Vec<bool>,
    /// Whether it does so after the open block.
    ends_soon: bool,
    /// See [`Rewriter::failed`].
    failed: BlockId,
}

impl<'c, 'f, A: Attempt> Rewriter<'c, 'f, A> {
    fn new(context: &'c Context<'c, A>, function: &'f mut Function) -> Self {
        let status = SlotId(function.slots.len() as u32);
        function.slots.push(Slot {
            name: "launch_status".into(),
            ty: Type::I32,
            unset: false,
            variable: None,
        });
        Rewriter {
            context,
            names: function.blocks.iter().map(|block| block.name.clone()).collect(),
            before_end: before_end(function),
            ends_soon: false,
            failed: BlockId(0),
            function,
            blocks: vec![],
            open: vec![],
            open_name: String::new(),
            open_unroll: None,
            open_end: None,
            numbers: BTreeMap::new(),
            status: Operand::Slot(status),
        }
    }

    fn rewrite(mut self) {
        let old = std::mem::take(&mut self.function.blocks);
        // The new index of each old block: a launch adds blocks after its own.
        let mut starts = Vec::with_capacity(old.len());
        let mut next = 0;
        for block in &old {
            starts.push(BlockId(next));
            next += 1 + block.instructions.iter().map(|id| self.blocks_of(*id)).sum::<u32>();
        }
        for (at, block) in old.into_iter().enumerate() {
            self.ends_soon = self.before_end[at];
            self.open_name = block.name;
            self.open_unroll = block.unroll;
            for id in block.instructions {
                match self.function.instructions[id.index()].kind.clone() {
                    InstKind::Launch(launch) => self.launch(id, &launch),
                    _ => self.open.push(id),
                }
            }
            let at = |id: BlockId| starts[id.index()];
            self.open_end = block.end;
            self.close(match block.terminator {
                Terminator::Jump(target) => Terminator::Jump(at(target)),
                Terminator::Branch { condition, then, otherwise } => {
                    Terminator::Branch { condition, then: at(then), otherwise: at(otherwise) }
                }
                other => other,
            });
        }
        self.function.blocks = self.blocks;
    }

    fn blocks_of(&self, id: InstId) -> u32 {
        match &self.function.instructions[id.index()].kind {
            InstKind::Launch(launch) if launch.is_try => A::BLOCKS + 1,
            InstKind::Launch(_) => A::BLOCKS + 3,
            _ => 0,
        }
    }

    /// Replaces one launch.
    fn launch(&mut self, id: InstId, launch: &Launch) {
        let span = self.function.instructions[id.index()].span;
        let [end, lost, next] = [1, 2, 3].map(|at| self.block_after(A::BLOCKS + at));
        self.failed = if launch.is_try { end } else { lost };
        let attempt = self.context.attempt;
        attempt.attempt(self, launch, span, end);

        self.open("launch.end");
        let load = InstKind::Load(self.status.clone());
        self.function.instructions[id.index()] = Inst { kind: load, ty: Type::I32, span };
        self.open.push(id);
        if launch.is_try {
            return;
        }
        let status = Operand::Inst(id);
        let success = Operand::Const(Const::Int(Scalar::I32, 0));
        let failed = InstKind::Binary(BinaryOp::Ne, status, success);
        let failed = self.emit(failed, Type::BOOL, span);
        self.close(Terminator::Branch { condition: failed, then: lost, otherwise: next });

        self.open("launch.lost");
        let number = |value: u32| Operand::Const(Const::Int(Scalar::U32, i128::from(value)));
        let line = self.context.sources.line(span);
        let status = self.emit(InstKind::Load(self.status.clone()), Type::I32, span);
        let kind = InstKind::Call {
            function: self.context.record_lost_launch,
            arguments: vec![status, number(span.file.0), number(line)],
        };
        self.emit(kind, Type::Unit, span);
        self.close(Terminator::Jump(next));
        self.open("launch.next");
    }

    /// Whether the kernel ends soon after the open launch: no loop follows in this function, which is a kernel's body.
    pub(super) fn ends_soon(&self) -> bool {
        self.ends_soon
    }

    /// Where the open launch's attempt continues once its status is an error.
    pub(super) fn failed(&self) -> BlockId {
        self.failed
    }

    /// Stores the status of the launch.
    pub(super) fn set_status(&mut self, status: Operand, span: Span) {
        self.store(self.status.clone(), status, span);
    }

    /// Adds 1 to the count of launches if `status` is 0; emits nothing in builds that do not count them.
    pub(super) fn count(&mut self, status: Operand, span: Span) {
        let Some(made) = self.context.made else { return };
        let success = Operand::Const(Const::Int(Scalar::I32, 0));
        let succeeded = InstKind::Binary(BinaryOp::Eq, status, success);
        let succeeded = self.emit(succeeded, Type::BOOL, span);
        let one_or_zero = self.emit(InstKind::Cast(succeeded), Type::U64, span);
        let add = InstKind::Builtin {
            builtin: Builtin::Atomic(AtomicOp::Add, Scope::Device),
            arguments: vec![Operand::Global(made), one_or_zero],
            format: None,
        };
        self.emit(add, Type::U64, span);
    }

    /// Appends an instruction to the open block.
    pub(super) fn emit(&mut self, kind: InstKind, ty: Type, span: Span) -> Operand {
        let id = InstId(self.function.instructions.len() as u32);
        self.function.instructions.push(Inst { kind, ty, span });
        self.open.push(id);
        Operand::Inst(id)
    }

    pub(super) fn store(&mut self, pointer: Operand, value: Operand, span: Span) {
        self.emit(InstKind::Store { pointer, value }, Type::Unit, span);
    }

    /// The block `count` positions after the open one.
    pub(super) fn block_after(&self, count: u32) -> BlockId {
        BlockId(self.blocks.len() as u32 + count)
    }

    /// Ends the open block.
    pub(super) fn close(&mut self, terminator: Terminator) {
        let name = std::mem::take(&mut self.open_name);
        let instructions = std::mem::take(&mut self.open);
        let (end, unroll) = (self.open_end.take(), self.open_unroll.take());
        self.blocks.push(Block { name, instructions, terminator, end, unroll });
    }

    /// Starts a block, with a number after its name if the name is taken.
    pub(super) fn open(&mut self, name: &'static str) {
        let number = self.numbers.entry(name).or_default();
        loop {
            *number += 1;
            let unique = if *number == 1 { name.into() } else { format!("{name}.{number}") };
            if self.names.insert(unique.clone()) {
                self.open_name = unique;
                return;
            }
        }
    }
}

/// By block of a kernel's body, whether no loop contains or follows it; false in other functions.
fn before_end(function: &Function) -> Vec<bool> {
    let next = control_flow(function);
    if !matches!(function.role, Role::Body(_)) {
        return vec![false; next.len()];
    }
    let in_loop = reach::on_cycles(&next);
    let edges = next.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |&to| (from, to)));
    let loops = (0..next.len()).filter(|&at| in_loop[at]);
    reach::leading_to(next.len(), edges, loops).into_iter().map(|leads| !leads).collect()
}

/// Marks the files in the records of lost launches of a lowered module as those of an object that will be linked with other
/// programs: see [`LINKED_SOURCE`].
pub fn mark_linked(module: &mut Module) {
    let record = module.functions.iter().position(|function| function.name == RECORD_LOST_LAUNCH);
    let Some(record) = record else { return };
    for inst in module.functions.iter_mut().flat_map(|function| &mut function.instructions) {
        if let InstKind::Call { function, arguments } = &mut inst.kind
            && function.index() == record
            && let Some(Operand::Const(Const::Int(_, file))) = arguments.get_mut(1)
        {
            *file |= i128::from(LINKED_SOURCE);
        }
    }
}

/// `gridlet.record_lost_launch(error: i32, file: u32, line: u32)`: counts a lost launch, records error and position of the
/// first, and notes it in host memory.
fn build_record_lost_launch(record: GlobalId, notice: Option<GlobalId>) -> Result<Function> {
    let span = Span::new(FileId(0), 0..0);
    let number = |value: i128| Operand::Const(Const::Int(Scalar::U32, value));
    let mut body = BodyBuilder::new();
    let word = |body: &mut BodyBuilder, index: i128| {
        let kind = InstKind::ElementAddress { base: Operand::Global(record), index: number(index) };
        body.emit(kind, Type::pointer_mut(Type::U32), span)
    };
    let count = word(&mut body, 0);
    let kind = InstKind::Builtin {
        builtin: Builtin::Atomic(AtomicOp::Add, Scope::Device),
        arguments: vec![count, number(1)],
        format: None,
    };
    let earlier = body.emit(kind, Type::U32, span);
    let is_first = InstKind::Binary(BinaryOp::Eq, earlier, number(0));
    let is_first = body.emit(is_first, Type::BOOL, span);
    let [first, end] = body.blocks("record", ["first", "end"]);
    body.branch(is_first, first, end);
    body.place(first);
    let error = body.emit(InstKind::Cast(Operand::Parameter(0)), Type::U32, span);
    for (at, value) in [(1, error), (2, Operand::Parameter(1)), (3, Operand::Parameter(2))] {
        let target = word(&mut body, at);
        body.store(target, value, span);
    }
    if let Some(notice) = notice {
        let address = body.emit(InstKind::Load(Operand::Global(notice)), Type::U64, span);
        let none = Operand::Const(Const::Int(Scalar::U64, 0));
        let is_wanted = InstKind::Binary(BinaryOp::Ne, address.clone(), none);
        let is_wanted = body.emit(is_wanted, Type::BOOL, span);
        let [note] = body.blocks("record", ["note"]);
        body.branch(is_wanted, note, end);
        body.place(note);
        let word = body.emit(InstKind::Cast(address), Type::pointer_mut(Type::U32), span);
        body.store(word, number(1), span);
    }
    body.jump(end);
    body.place(end);
    body.terminate(Terminator::Return(None));
    let parameters = [("error", Type::I32), ("file", Type::U32), ("line", Type::U32)];
    body.finish(Signature {
        name: RECORD_LOST_LAUNCH.into(),
        role: Role::Device,
        takes_geometry: false,
        parameters: parameters.map(|(name, ty)| Parameter { name: name.into(), ty }).to_vec(),
        result: Type::Unit,
        span,
    })
}
