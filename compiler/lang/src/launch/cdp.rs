//! Launches through CUDA's device runtime.
//!
//! A launch becomes what nvcc makes of `<<<…>>>`, but for the error, which nvcc drops:
//! ```text
//!   %0: *mut u8 = call extern @cudaGetParameterBufferV2(@kernel, grid, block, shared)
//!   %1: bool = eq %0, zero *mut u8
//!   branch %1, launch.null, launch.ok
//! launch.ok:                                      ; one store for each parameter, at its offset
//!   %2: *mut T = byte_offset %0, 16
//!   store %2, argument
//!   %3: i32 = call extern @cudaLaunchDeviceV2(%0, stream)
//!   store $launch_status, %3
//!   jump launch.end
//! launch.null:
//!   store $launch_status, 69i32
//!   jump launch.end
//! launch.end:                                     ; what `try launch` gives
//!   %4: i32 = load $launch_status
//! ```
//! and, unless the program asked for the status:
//! ```text
//!   %5: bool = ne %4, 0i32
//!   branch %5, launch.lost, launch.next
//! launch.lost:
//!   call @gridlet.record_lost_launch(%4, file, line)
//!   jump launch.next
//! launch.next:
//! ```
//! Where launches are counted, `launch.ok` also adds `%3 == 0` to the count, without a branch.
//!
//! A kernel without parameters gets a buffer too, as with nvcc.

use std::collections::{BTreeMap, BTreeSet};

use super::LaunchOptions;
use super::symbols::{
    ERROR_LAUNCH_PENDING_COUNT_EXCEEDED, FILL_KERNEL, LAUNCHES_MADE, LOST_LAUNCH_RECORD,
    NamedStream, RECORD_LOST_LAUNCH, RuntimeFunction,
};
use crate::builtins::{AtomicOp, Builtin, Scope};
use crate::error::Result;
use crate::ir::build::{BodyBuilder, Signature};
use crate::ir::{
    BinaryOp, Block, BlockId, Const, ExternId, Function, FunctionId, Global, GlobalId, Init, Inst,
    InstId, InstKind, KernelId, Launch, Module, Operand, Parameter, Role, Slot, SlotId, Space,
    Stream, Terminator, Unroll,
};
use crate::layout::Layouts;
use crate::source::{FileId, SourceMap, Span};
use crate::types::{Scalar, Type};

/// Lowers every launch of a module that has at least one.
pub(super) fn lower(module: &mut Module, layouts: &Layouts, options: &LaunchOptions) -> Result<()> {
    let mut export = |name: &str, ty| {
        let (space, init) = (Space::Device, Init::Zero);
        module.globals.push(Global { name: name.into(), space, ty, init, exported: true });
        GlobalId(module.globals.len() as u32 - 1)
    };
    let record = export(LOST_LAUNCH_RECORD, Type::Array(Box::new(Type::U32), 4));
    let made = options.count_launches.then(|| export(LAUNCHES_MADE, Type::U64));
    let fill = module.kernels.iter().position(|kernel| kernel.name == FILL_KERNEL);
    let mut declare = |function| {
        module.externs.push(options.symbols.declaration(function));
        ExternId(module.externs.len() as u32 - 1)
    };
    let get_parameter_buffer = declare(RuntimeFunction::GetParameterBuffer);
    let launch_device = declare(RuntimeFunction::LaunchDevice);
    let record_lost_launch = FunctionId(module.functions.len() as u32);

    let context = Context {
        layouts,
        sources: &module.sources,
        get_parameter_buffer,
        launch_device,
        record_lost_launch,
        made,
        fill: fill.map(|at| KernelId(at as u32)),
    };
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
        module.functions.push(build_record_lost_launch(record)?);
    }
    Ok(())
}

struct Context<'m> {
    layouts: &'m Layouts,
    sources: &'m SourceMap,
    get_parameter_buffer: ExternId,
    launch_device: ExternId,
    record_lost_launch: FunctionId,
    /// The count of launches, if they are counted.
    made: Option<GlobalId>,
    /// The kernel whose launches are none of the program's, and not counted.
    fill: Option<KernelId>,
}

/// Replaces the launches of one function. Instructions keep their ids: the one that was a launch becomes
/// the load of the status in `launch.end`, so that the uses of a `try launch` need no change.
struct Rewriter<'c, 'm, 'f> {
    context: &'c Context<'m>,
    function: &'f mut Function,
    blocks: Vec<Block>,
    /// The instructions of the block that is being written.
    open: Vec<InstId>,
    open_name: String,
    open_unroll: Option<Unroll>,
    names: BTreeSet<String>,
    numbers: BTreeMap<&'static str, u32>,
    status: Operand,
}

impl<'c, 'm, 'f> Rewriter<'c, 'm, 'f> {
    fn new(context: &'c Context<'m>, function: &'f mut Function) -> Self {
        let status = SlotId(function.slots.len() as u32);
        function.slots.push(Slot { name: "launch_status".into(), ty: Type::I32 });
        Rewriter {
            context,
            names: function.blocks.iter().map(|block| block.name.clone()).collect(),
            function,
            blocks: vec![],
            open: vec![],
            open_name: String::new(),
            open_unroll: None,
            numbers: BTreeMap::new(),
            status: Operand::Slot(status),
        }
    }

    fn rewrite(mut self) {
        let old = std::mem::take(&mut self.function.blocks);
        // Where each old block will start: a launch puts three or five blocks behind the one it is in.
        let mut starts = Vec::with_capacity(old.len());
        let mut next = 0;
        for block in &old {
            starts.push(BlockId(next));
            next += 1 + block.instructions.iter().map(|id| self.blocks_of(*id)).sum::<u32>();
        }
        for block in old {
            self.open_name = block.name;
            self.open_unroll = block.unroll;
            for id in block.instructions {
                match self.function.instructions[id.index()].kind.clone() {
                    InstKind::Launch(launch) => self.launch(id, &launch),
                    _ => self.open.push(id),
                }
            }
            let at = |id: BlockId| starts[id.index()];
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
            InstKind::Launch(launch) if launch.is_try => 3,
            InstKind::Launch(_) => 5,
            _ => 0,
        }
    }

    fn launch(&mut self, id: InstId, launch: &Launch) {
        let span = self.function.instructions[id.index()].span;
        let byte_pointer = Type::pointer_mut(Type::Scalar(Scalar::U8));

        let (grid, block) = (launch.grid.clone(), launch.block.clone());
        let arguments = vec![Operand::Kernel(launch.kernel), grid, block, launch.shared.clone()];
        let kind = InstKind::CallExtern { function: self.context.get_parameter_buffer, arguments };
        let param_buffer = self.emit(kind, byte_pointer.clone(), span);
        let null = Operand::Const(Const::Zero(byte_pointer));
        let kind = InstKind::Binary(BinaryOp::Eq, param_buffer.clone(), null);
        let is_null = self.emit(kind, Type::BOOL, span);
        let [ok, null, end, lost, next] = [1, 2, 3, 4, 5].map(|at| self.block_after(at));
        self.close(Terminator::Branch { condition: is_null, then: null, otherwise: ok });

        self.open("launch.ok");
        let layouts = self.context.layouts;
        let slots = &layouts.parameters(launch.kernel).slots;
        for (slot, argument) in slots.iter().zip(&launch.arguments) {
            let kind = InstKind::ByteOffset { base: param_buffer.clone(), bytes: slot.offset };
            let pointer = self.emit(kind, Type::pointer_mut(slot.ty.clone()), span);
            self.store(pointer, argument.clone(), span);
        }
        let stream = self.stream(&launch.stream, span);
        let arguments = vec![param_buffer, stream];
        let kind = InstKind::CallExtern { function: self.context.launch_device, arguments };
        let launched = self.emit(kind, Type::I32, span);
        self.store(self.status.clone(), launched.clone(), span);
        if let Some(made) = self.context.made
            && self.context.fill != Some(launch.kernel)
        {
            self.count(made, launched, span);
        }
        self.close(Terminator::Jump(end));

        self.open("launch.null");
        let error = i128::from(ERROR_LAUNCH_PENDING_COUNT_EXCEEDED);
        let error = Operand::Const(Const::Int(Scalar::I32, error));
        self.store(self.status.clone(), error, span);
        self.close(Terminator::Jump(end));

        self.open("launch.end");
        let load = InstKind::Load(self.status.clone());
        self.function.instructions[id.index()] = Inst { kind: load, ty: Type::I32, span };
        self.open.push(id);
        if launch.is_try {
            return;
        }
        let status = Operand::Inst(id);
        let success = Operand::Const(Const::Int(Scalar::I32, 0));
        let failed = InstKind::Binary(BinaryOp::Ne, status.clone(), success);
        let failed = self.emit(failed, Type::BOOL, span);
        self.close(Terminator::Branch { condition: failed, then: lost, otherwise: next });

        self.open("launch.lost");
        let number = |value: u32| Operand::Const(Const::Int(Scalar::U32, i128::from(value)));
        let line = self.context.sources.line(span);
        let kind = InstKind::Call {
            function: self.context.record_lost_launch,
            arguments: vec![status, number(span.file.0), number(line)],
        };
        self.emit(kind, Type::Unit, span);
        self.close(Terminator::Jump(next));
        self.open("launch.next");
    }

    fn count(&mut self, made: GlobalId, status: Operand, span: Span) {
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

    /// The handle of a stream. A stream is a pointer to the device runtime: the NULL stream is the null
    /// pointer, the other named ones are numbers.
    fn stream(&mut self, stream: &Stream, span: Span) -> Operand {
        let named = match stream {
            Stream::Value(stream) => return stream.clone(),
            Stream::Default => return Operand::Const(Const::Zero(Type::Stream)),
            Stream::Tail => NamedStream::TailLaunch,
            Stream::FireAndForget => NamedStream::FireAndForget,
        };
        let handle = Operand::Const(Const::Int(Scalar::U64, i128::from(named.handle())));
        self.emit(InstKind::Cast(handle), Type::Stream, span)
    }

    fn emit(&mut self, kind: InstKind, ty: Type, span: Span) -> Operand {
        let id = InstId(self.function.instructions.len() as u32);
        self.function.instructions.push(Inst { kind, ty, span });
        self.open.push(id);
        Operand::Inst(id)
    }

    fn store(&mut self, pointer: Operand, value: Operand, span: Span) {
        self.emit(InstKind::Store { pointer, value }, Type::Unit, span);
    }

    /// The block that comes `count` blocks after the one that is being written.
    fn block_after(&self, count: u32) -> BlockId {
        BlockId(self.blocks.len() as u32 + count)
    }

    fn close(&mut self, terminator: Terminator) {
        let name = std::mem::take(&mut self.open_name);
        let instructions = std::mem::take(&mut self.open);
        let unroll = self.open_unroll.take();
        self.blocks.push(Block { name, instructions, terminator, unroll });
    }

    /// Starts a block, with a number behind its name if the name is taken.
    fn open(&mut self, name: &'static str) {
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

/// `gridlet.record_lost_launch(error: i32, file: u32, line: u32)`: counts a lost launch, and keeps what is
/// known of the first.
fn build_record_lost_launch(record: GlobalId) -> Result<Function> {
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
