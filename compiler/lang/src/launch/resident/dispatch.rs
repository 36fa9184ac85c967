//! Makes the functions of a program that the scheduler calls: `scheduler/state.grid` declares them with empty bodies.

use super::ENTRY;
use super::plan::{Blocks, Plan};
use crate::error::{Error, Result};
use crate::ir::build::{BodyBuilder, Signature};
use crate::ir::{
    BinaryOp, BlockId, Const, Function, FunctionId, Global, GlobalId, Init, Inst, InstId, InstKind,
    KernelId, LaunchBounds, Module, Operand, Parameter, Role, Space, Terminator,
};
use crate::launch::merge::{Added, NOWHERE};
use crate::layout::Layouts;
use crate::types::{Scalar, Type};

/// Above this number of kernels, their properties are in a table in memory instead of in the code.
const MAX_SELECTS: usize = 8;

/// Generates the functions, and adds the root's parameters to the entry.
pub(super) fn generate(
    module: &mut Module,
    layouts: &Layouts,
    plan: &Plan,
    scheduler: &Added,
) -> Result<()> {
    let properties = [
        ("kernel_flags", &plan.flags),
        ("kernel_shared", &plan.shared),
        ("kernel_threads", &plan.threads),
    ];
    for (name, values) in properties {
        let id = scheduler.function(name)?;
        let body = table(module, name, values);
        replace(module, id, body)?;
    }
    let kernels = (0..layouts.kernels.len() as u32).map(KernelId);
    let parted: Vec<KernelId> = kernels.filter(|kernel| plan.runs_in_parts(*kernel)).collect();
    let constants = [
        ("record_bytes", word(plan.record_bytes)),
        ("has_scopes", Operand::Const(Const::Bool(plan.has_scopes))),
        ("has_parts", Operand::Const(Const::Bool(!parted.is_empty()))),
    ];
    for (name, value) in constants {
        let mut body = BodyBuilder::new();
        body.terminate(Terminator::Return(Some(value)));
        replace(module, scheduler.function(name)?, body)?;
    }
    let root = add_root(module, plan);
    let mut body = BodyBuilder::new();
    let bytes = Type::pointer_mut(Type::Scalar(Scalar::U8));
    let address = body.emit(InstKind::Cast(Operand::Global(root)), bytes, NOWHERE);
    body.terminate(Terminator::Return(Some(address)));
    replace(module, scheduler.function("root_parameters")?, body)?;
    add_run(module, layouts, plan, scheduler)?;
    add_run_parts(module, layouts, plan, scheduler, &parted)?;
    add_run_packed(module, layouts, plan, scheduler)?;
    complete_entry(module, plan, scheduler.kernel("enter")?, root)
}

fn word(value: u32) -> Operand {
    Operand::Const(Const::Int(Scalar::U32, i128::from(value)))
}

fn long(value: u64) -> Operand {
    Operand::Const(Const::Int(Scalar::U64, i128::from(value)))
}

/// Gives a function another body.
fn replace(module: &mut Module, id: FunctionId, body: BodyBuilder) -> Result<()> {
    let old = &module.functions[id.index()];
    let signature = Signature {
        name: old.name.clone(),
        role: old.role,
        takes_geometry: old.takes_geometry,
        parameters: old.parameters.clone(),
        result: old.result.clone(),
        span: old.span,
    };
    module.functions[id.index()] = body.finish(signature)?;
    Ok(())
}

/// The body of a function from a kernel's number to a value.
fn table(module: &mut Module, name: &str, values: &[u32]) -> BodyBuilder {
    let mut body = BodyBuilder::new();
    let which = Operand::Parameter(0);
    let last = values.last().copied().unwrap_or(0);
    let mut value = word(last);
    if values.iter().all(|value| *value == last) {
        // One for all.
    } else if values.len() <= MAX_SELECTS {
        for (kernel, own) in (0..).zip(values).filter(|(_, own)| **own != last) {
            let is = InstKind::Binary(BinaryOp::Eq, which.clone(), word(kernel));
            let is = body.emit(is, Type::BOOL, NOWHERE);
            value = body.emit(InstKind::Select(is, word(*own), value), Type::U32, NOWHERE);
        }
    } else {
        let ty = Type::Array(Box::new(Type::U32), values.len() as u64);
        let init = Init::Bytes(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        let name = format!("gridlet.{name}.table");
        module.globals.push(Global {
            name,
            space: Space::Constant,
            ty,
            init,
            exported: false,
            variable: None,
        });
        let table = Operand::Global(GlobalId(module.globals.len() as u32 - 1));
        let kind = InstKind::ElementAddress { base: table, index: which };
        let address = body.emit(kind, Type::pointer_mut(Type::U32), NOWHERE);
        value = body.load(address, &Type::U32, NOWHERE);
    }
    body.terminate(Terminator::Return(Some(value)));
    body
}

/// The variable in which a worker keeps the root's parameters.
fn add_root(module: &mut Module, plan: &Plan) -> GlobalId {
    module.globals.push(Global {
        name: "gridlet.root".into(),
        space: Space::Shared,
        ty: Type::Array(Box::new(Type::U64), u64::from(plan.parameter_words.max(1))),
        init: Init::Unset,
        exported: false,
        variable: None,
    });
    GlobalId(module.globals.len() as u32 - 1)
}

/// `run`: calls the kernel's own function, in which its parameters are read once for all its blocks.
fn add_run(module: &mut Module, layouts: &Layouts, plan: &Plan, scheduler: &Added) -> Result<()> {
    let id = scheduler.function("run")?;
    let parts = Parts {
        is_before: scheduler.function("is_before")?,
        block_index: scheduler.function("block_index")?,
        next_index: scheduler.function("next_index")?,
        end_block: scheduler.function("end_block")?,
        end_block_of_worker: scheduler.function("end_block_of_worker")?,
        end_block_apart: scheduler.function("end_block_apart")?,
        lanes: [scheduler.function("enter_lanes")?, scheduler.function("leave_lanes")?],
        unaligned_lanes: [
            scheduler.function("enter_unaligned_lanes")?,
            scheduler.function("leave_unaligned_lanes")?,
        ],
        clear_error: plan.keeps_errors.then(|| scheduler.function("clear_error")).transpose()?,
        warp_is_whole: [
            scheduler.function("warp_is_whole")?,
            scheduler.function("warp_is_whole_and_aligned")?,
        ],
        worker_is_whole: [
            scheduler.function("worker_is_whole")?,
            scheduler.function("worker_is_whole_and_aligned")?,
        ],
    };
    let signature = module.functions[id.index()].parameters.clone();
    let mut body = BodyBuilder::new();
    let arguments: Vec<Operand> = (1..signature.len() as u32).map(Operand::Parameter).collect();
    let kernels = (0..layouts.kernels.len() as u32).map(KernelId).filter(|id| plan.runs(*id));
    for kernel in kernels {
        let function = FunctionId(module.functions.len() as u32);
        let runner = runner(module, layouts, plan, &parts, kernel, &signature[1..])?;
        module.functions.push(runner);
        let is = InstKind::Binary(BinaryOp::Eq, Operand::Parameter(0), word(kernel.0));
        let is = body.emit(is, Type::BOOL, NOWHERE);
        let [this, next] = body.blocks("kernel", ["this", "next"]);
        body.branch(is, this, next);
        body.place(this);
        let kind = InstKind::Call { function, arguments: arguments.clone() };
        body.emit(kind, Type::Unit, NOWHERE);
        body.terminate(Terminator::Return(None));
        body.place(next);
    }
    body.terminate(Terminator::Return(None));
    replace(module, id, body)
}

/// `run_parts`: runs a block of one of the `kernels`, 32 threads at a time.
fn add_run_parts(
    module: &mut Module,
    layouts: &Layouts,
    plan: &Plan,
    scheduler: &Added,
    kernels: &[KernelId],
) -> Result<()> {
    let id = scheduler.function("run_parts")?;
    let [has_thread, thread_of, end_block] =
        ["has_thread", "thread_of", "end_block_apart"].map(|name| scheduler.function(name));
    let (has_thread, thread_of, end_block) = (has_thread?, thread_of?, end_block?);
    let clear_error = plan.keeps_errors.then(|| scheduler.function("clear_error")).transpose()?;
    let [which, buffer, index, size, grid, parts] = [0, 1, 2, 3, 4, 5].map(Operand::Parameter);
    let mut body = BodyBuilder::new();
    let number = body.slot("part", Type::U32);
    for &kernel in kernels {
        let is = InstKind::Binary(BinaryOp::Eq, which.clone(), word(kernel.0));
        let is = body.emit(is, Type::BOOL, NOWHERE);
        let [this, next] = body.blocks("kernel", ["this", "next"]);
        let [part, work, gone, end] = body.blocks("parts", ["part", "work", "gone", "end"]);
        body.branch(is, this, next);
        body.place(this);
        let parameters = load_parameters(&mut body, layouts, kernel, &buffer);
        body.store(number.clone(), word(0), NOWHERE);
        body.jump(part);
        body.place(part);
        let at = body.load(number.clone(), &Type::U32, NOWHERE);
        let arguments = vec![at.clone(), size.clone()];
        let kind = InstKind::Call { function: has_thread, arguments: arguments.clone() };
        let is_active = body.emit(kind, Type::BOOL, NOWHERE);
        body.branch(is_active, work, gone);
        body.place(work);
        if let Some(function) = clear_error {
            body.emit(InstKind::Call { function, arguments: vec![] }, Type::Unit, NOWHERE);
        }
        let kind = InstKind::Call { function: thread_of, arguments };
        let thread = body.emit(kind, Type::DIM3, NOWHERE);
        // The kernel has no dynamic shared memory.
        let no_memory = Operand::Const(Const::Zero(Type::pointer_mut(Type::Scalar(Scalar::U8))));
        let geometry = vec![thread, index.clone(), size.clone(), grid.clone(), no_memory];
        let mut arguments = vec![body.emit(InstKind::Aggregate(geometry), Type::GEOMETRY, NOWHERE)];
        arguments.extend(parameters);
        let function = module.kernel(kernel).body;
        body.emit(InstKind::Call { function, arguments }, Type::Unit, NOWHERE);
        body.jump(gone);
        body.place(gone);
        let kind = InstKind::Call { function: end_block, arguments: vec![] };
        body.emit(kind, Type::Unit, NOWHERE);
        let at = body.load(number.clone(), &Type::U32, NOWHERE);
        let at = body.emit(InstKind::Binary(BinaryOp::Add, at, word(1)), Type::U32, NOWHERE);
        body.store(number.clone(), at.clone(), NOWHERE);
        let kind = InstKind::Binary(BinaryOp::Lt, at, parts.clone());
        let more = body.emit(kind, Type::BOOL, NOWHERE);
        body.branch(more, part, end);
        body.place(end);
        body.terminate(Terminator::Return(None));
        body.place(next);
    }
    body.terminate(Terminator::Return(None));
    replace(module, id, body)
}

/// `run_packed`: runs the only thread of a kernel's only block.
fn add_run_packed(
    module: &mut Module,
    layouts: &Layouts,
    plan: &Plan,
    scheduler: &Added,
) -> Result<()> {
    let id = scheduler.function("run_packed")?;
    let mut body = BodyBuilder::new();
    let dim3 = |x: u32| InstKind::Aggregate([x, x, x].map(word).to_vec());
    for (at, kernel) in module.kernels.iter().enumerate().take(layouts.kernels.len()) {
        if !plan.nests[at] || plan.flags[at] & super::plan::CAN_PACK == 0 {
            continue;
        }
        let is = InstKind::Binary(BinaryOp::Eq, Operand::Parameter(0), word(at as u32));
        let is = body.emit(is, Type::BOOL, NOWHERE);
        let [this, next] = body.blocks("kernel", ["this", "next"]);
        body.branch(is, this, next);
        body.place(this);
        let zero = body.emit(dim3(0), Type::DIM3, NOWHERE);
        let one = body.emit(dim3(1), Type::DIM3, NOWHERE);
        let no_memory = Operand::Const(Const::Zero(Type::pointer_mut(Type::Scalar(Scalar::U8))));
        let geometry = InstKind::Aggregate(vec![zero.clone(), zero, one.clone(), one, no_memory]);
        let mut arguments = vec![body.emit(geometry, Type::GEOMETRY, NOWHERE)];
        arguments.extend(load_parameters(
            &mut body,
            layouts,
            KernelId(at as u32),
            &Operand::Parameter(1),
        ));
        body.emit(InstKind::Call { function: kernel.body, arguments }, Type::Unit, NOWHERE);
        body.terminate(Terminator::Return(None));
        body.place(next);
    }
    body.terminate(Terminator::Return(None));
    replace(module, id, body)
}

/// Reads a kernel's parameters from its buffer.
fn load_parameters(
    body: &mut BodyBuilder,
    layouts: &Layouts,
    id: KernelId,
    buffer: &Operand,
) -> Vec<Operand> {
    let slots = &layouts.parameters(id).slots;
    let load = |slot: &crate::layout::ParamSlot| {
        let kind = InstKind::ByteOffset { base: buffer.clone(), bytes: slot.offset };
        let address = body.emit(kind, Type::pointer_mut(slot.ty.clone()), NOWHERE);
        body.load(address, &slot.ty, NOWHERE)
    };
    slots.iter().map(load).collect()
}

struct Parts {
    /// Whether a block comes before another, by their numbers.
    is_before: FunctionId,
    /// The index of a block, and that of the next one from it.
    block_index: FunctionId,
    next_index: FunctionId,
    end_block: FunctionId,
    /// For copies that keep barriers.
    end_block_of_worker: FunctionId,
    /// For kernels whose warps need not wait for each other.
    end_block_apart: FunctionId,
    /// What comes before and after blocks with warp operations that meet.
    lanes: [FunctionId; 2],
    /// The same where only unaligned warps meet.
    unaligned_lanes: [FunctionId; 2],
    /// In programs that ask for a thread's last error.
    clear_error: Option<FunctionId>,
    /// Whether a warp may run [`Kernel::whole`](crate::ir::Kernel::whole), and the same where only unaligned warps meet.
    warp_is_whole: [FunctionId; 2],
    /// The same for copies that keep barriers.
    worker_is_whole: [FunctionId; 2],
}

/// The blocks of a grid that a warp runs, and what a runner calls for each.
struct Share<'a> {
    parts: &'a Parts,
    /// The lower halves of the first block's number and of the one behind the last, and the distance of two.
    first: Operand,
    end: Operand,
    step: Operand,
    /// The address of the block's number, and of its index if that is kept from block to block.
    number: Operand,
    index: Option<Operand>,
    /// The thread, and what is the same for all blocks: their size, the grid, the dynamic shared memory.
    thread: Operand,
    of_grid: [Operand; 3],
    parameters: Vec<Operand>,
    /// Where to go on after the last.
    leave: BlockId,
}

impl Share<'_> {
    /// Runs the blocks: `run` emits one, and calls what comes after it.
    fn each(&self, body: &mut BodyBuilder, run: impl FnOnce(&mut BodyBuilder)) {
        let [begin, next, step_on] = body.blocks("blocks", ["begin", "next", "step"]);
        let has_one = self.is_before_end(body, self.first.clone());
        body.branch(has_one, begin, self.leave);
        body.place(begin);
        body.store(self.number.clone(), self.first.clone(), NOWHERE);
        if let Some(index) = self.index.clone() {
            let of_first = self.computed_index(body);
            body.store(index, of_first, NOWHERE);
        }
        body.jump(next);
        body.place(next);
        run(body);
        let number = body.load(self.number.clone(), &Type::U32, NOWHERE);
        let number = InstKind::Binary(BinaryOp::Add, number, self.step.clone());
        let number = body.emit(number, Type::U32, NOWHERE);
        body.store(self.number.clone(), number.clone(), NOWHERE);
        let more = self.is_before_end(body, number);
        body.branch(more, step_on, self.leave);
        body.place(step_on);
        if let Some(index) = self.index.clone() {
            let before = body.load(index.clone(), &Type::DIM3, NOWHERE);
            let arguments = vec![before, self.of_grid[1].clone(), self.step.clone()];
            let call = InstKind::Call { function: self.parts.next_index, arguments };
            let of_next = body.emit(call, Type::DIM3, NOWHERE);
            body.store(index, of_next, NOWHERE);
        }
        body.jump(next);
    }

    /// Whether there is a block with this number.
    fn is_before_end(&self, body: &mut BodyBuilder, number: Operand) -> Operand {
        let arguments = vec![number, self.end.clone()];
        let call = InstKind::Call { function: self.parts.is_before, arguments };
        body.emit(call, Type::BOOL, NOWHERE)
    }

    /// Runs a block in a kernel's body or in a copy of it.
    fn run(&self, body: &mut BodyBuilder, function: FunctionId) {
        if let Some(function) = self.parts.clear_error {
            body.emit(InstKind::Call { function, arguments: vec![] }, Type::Unit, NOWHERE);
        }
        let [size, grid, extra] = self.of_grid.clone();
        let index = match self.index.clone() {
            Some(index) => body.load(index, &Type::DIM3, NOWHERE),
            None => self.computed_index(body),
        };
        let geometry = InstKind::Aggregate(vec![self.thread.clone(), index, size, grid, extra]);
        let mut arguments = vec![body.emit(geometry, Type::GEOMETRY, NOWHERE)];
        arguments.extend(self.parameters.iter().cloned());
        body.emit(InstKind::Call { function, arguments }, Type::Unit, NOWHERE);
    }

    /// The block's index, from its number.
    fn computed_index(&self, body: &mut BodyBuilder) -> Operand {
        let number = body.load(self.number.clone(), &Type::U32, NOWHERE);
        let arguments = vec![number, self.of_grid[1].clone()];
        let call = InstKind::Call { function: self.parts.block_index, arguments };
        body.emit(call, Type::DIM3, NOWHERE)
    }
}

/// The function that runs blocks of one kernel: the parameters of `run` without the kernel.
fn runner(
    module: &Module,
    layouts: &Layouts,
    plan: &Plan,
    parts: &Parts,
    id: KernelId,
    parameters: &[Parameter],
) -> Result<Function> {
    let [buffer, thread, size, grid, extra, first, end, step, active] =
        [0, 1, 2, 3, 4, 5, 6, 7, 8].map(Operand::Parameter);
    let kernel = module.kernel(id);
    let mut body = BodyBuilder::new();
    let call = |body: &mut BodyBuilder, function: FunctionId, ty: Type| {
        body.emit(InstKind::Call { function, arguments: vec![] }, ty, NOWHERE)
    };
    let parameters_of_kernel = load_parameters(&mut body, layouts, id, &buffer);
    let [leave] = body.blocks("grid", ["leave"]);
    let share = Share {
        parts,
        first,
        end,
        step,
        number: body.slot("number", Type::U32),
        index: plan.keeps_index[id.index()].then(|| body.slot("index", Type::DIM3)),
        thread,
        of_grid: [size, grid, extra],
        parameters: parameters_of_kernel,
        leave,
    };
    let closes = Operand::Const(Const::Bool(plan.flags[id.index()] & super::plan::DEFAULTS != 0));
    let end_block = |body: &mut BodyBuilder, is_worker: bool| {
        let (function, arguments) = match (is_worker, plan.apart[id.index()]) {
            (true, _) => (parts.end_block_of_worker, vec![closes.clone()]),
            (false, true) => (parts.end_block_apart, vec![]),
            (false, false) => (parts.end_block, vec![closes.clone()]),
        };
        body.emit(InstKind::Call { function, arguments }, Type::Unit, NOWHERE);
    };
    // Asked once for all blocks, and each answer has its own loop.
    if let Some(copy) = kernel.whole {
        let fills_worker = plan.fills_worker[id.index()];
        let [any, aligned] = if fills_worker { parts.worker_is_whole } else { parts.warp_is_whole };
        let is_whole = if plan.meets[id.index()] == Blocks::None { any } else { aligned };
        let is_whole = call(&mut body, is_whole, Type::BOOL);
        let [whole, part] = body.blocks("warp", ["whole", "part"]);
        body.branch(is_whole, whole, part);
        body.place(whole);
        share.each(&mut body, |body| {
            share.run(body, copy);
            end_block(body, fills_worker);
        });
        body.place(part);
    }
    let around = match plan.meets[id.index()] {
        Blocks::None => None,
        Blocks::Unaligned => Some(parts.unaligned_lanes),
        Blocks::All => Some(parts.lanes),
    };
    share.each(&mut body, |body| {
        let [work, gone] = body.blocks("threads", ["work", "gone"]);
        if let Some([function, _]) = around {
            call(body, function, Type::Unit);
        }
        body.branch(active, work, gone);
        body.place(work);
        share.run(body, kernel.body);
        body.jump(gone);
        body.place(gone);
        if let Some([_, function]) = around {
            call(body, function, Type::Unit);
        }
        end_block(body, false);
    });
    body.place(leave);
    body.terminate(Terminator::Return(None));
    body.finish(Signature {
        name: format!("gridlet.run.{}", kernel.name),
        role: Role::Device,
        takes_geometry: false,
        parameters: parameters.to_vec(),
        result: Type::Unit,
        span: NOWHERE,
    })
}

/// Adds the root's parameters to the entry, whose body stores them for the worker.
fn complete_entry(module: &mut Module, plan: &Plan, id: KernelId, root: GlobalId) -> Result<()> {
    let names = (0..plan.parameter_words).map(|at| format!("root_{at}"));
    let added: Vec<Parameter> = names.map(|name| Parameter { name, ty: Type::U64 }).collect();
    let kernel = &mut module.kernels[id.index()];
    if kernel.name != ENTRY {
        return Err(Error::internal("launch", "the resident kernel has another name"));
    }
    let own = kernel.parameters.len() as u32;
    kernel.parameters.extend(added.iter().cloned());
    kernel.launch_bounds =
        plan.thread_bound().map(|max_threads| LaunchBounds { max_threads, min_blocks: None });
    let (body, entry) = (kernel.body, kernel.entry);
    let entry = &mut module.functions[entry.index()];
    entry.parameters.extend(added.iter().cloned());
    for inst in &mut entry.instructions {
        if let InstKind::Call { arguments, .. } = &mut inst.kind {
            arguments.extend((own..own + plan.parameter_words).map(Operand::Parameter));
        }
    }
    let body = &mut module.functions[body.index()];
    body.parameters.extend(added);
    let mut stores = vec![];
    let mut add = |body: &mut Function, kind, ty| {
        body.instructions.push(Inst { kind, ty, span: NOWHERE });
        stores.push(InstId(body.instructions.len() as u32 - 1));
        Operand::Inst(InstId(body.instructions.len() as u32 - 1))
    };
    for at in 0..plan.parameter_words {
        let base = Operand::Global(root);
        let kind = InstKind::ElementAddress { base, index: long(at.into()) };
        let pointer = add(body, kind, Type::pointer_mut(Type::U64));
        // After the geometry.
        let value = Operand::Parameter(1 + own + at);
        add(body, InstKind::Store { pointer, value }, Type::Unit);
    }
    body.blocks[0].instructions.splice(0..0, stores);
    Ok(())
}
