//! Makes the functions of a program that the scheduler calls: `scheduler/state.grid` declares them with empty bodies.

use super::ENTRY;
use super::plan::Plan;
use super::runner::{Called, runner};
use crate::error::{Error, Result};
use crate::ir::build::{BodyBuilder, Signature};
use crate::ir::{
    BinaryOp, Const, Function, FunctionId, Global, GlobalId, Init, Inst, InstId, InstKind,
    KernelId, LaunchBounds, Module, Operand, Parameter, Space, Terminator,
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
    let called = Called::find(plan, scheduler)?;
    let signature = module.functions[id.index()].parameters.clone();
    let mut body = BodyBuilder::new();
    let arguments: Vec<Operand> = (1..signature.len() as u32).map(Operand::Parameter).collect();
    let kernels = (0..layouts.kernels.len() as u32).map(KernelId).filter(|id| plan.runs(*id));
    for kernel in kernels {
        let function = FunctionId(module.functions.len() as u32);
        let runner = runner(module, layouts, plan, &called, kernel, &signature[1..])?;
        module.functions.push(runner);
        let call = InstKind::Call { function, arguments: arguments.clone() };
        for_kernel(&mut body, kernel, |body| {
            body.emit(call, Type::Unit, NOWHERE);
        });
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
    let mut body = BodyBuilder::new();
    let number = body.slot("part", Type::U32);
    let parts = Parts { has_thread, thread_of, end_block, clear_error, number };
    for &kernel in kernels {
        let function = module.kernel(kernel).body;
        for_kernel(&mut body, kernel, |body| {
            let parameters = load_parameters(body, layouts, kernel, &Operand::Parameter(1));
            parts.run(body, function, parameters);
        });
    }
    body.terminate(Terminator::Return(None));
    replace(module, id, body)
}

/// What `run_parts` calls, and the address of the part's number.
struct Parts {
    has_thread: FunctionId,
    thread_of: FunctionId,
    end_block: FunctionId,
    /// In programs that ask for a thread's last error.
    clear_error: Option<FunctionId>,
    number: Operand,
}

impl Parts {
    /// Runs the parts of a block in a kernel's body. The parameters are those of `run_parts`.
    fn run(&self, body: &mut BodyBuilder, function: FunctionId, parameters: Vec<Operand>) {
        let [index, size, grid, parts] = [2, 3, 4, 5].map(Operand::Parameter);
        let [part, work, gone, end] = body.blocks("parts", ["part", "work", "gone", "end"]);
        body.store(self.number.clone(), word(0), NOWHERE);
        body.jump(part);
        body.place(part);
        let at = body.load(self.number.clone(), &Type::U32, NOWHERE);
        let arguments = vec![at, size.clone()];
        let kind = InstKind::Call { function: self.has_thread, arguments: arguments.clone() };
        let is_active = body.emit(kind, Type::BOOL, NOWHERE);
        body.branch(is_active, work, gone);
        body.place(work);
        if let Some(function) = self.clear_error {
            body.emit(InstKind::Call { function, arguments: vec![] }, Type::Unit, NOWHERE);
        }
        let kind = InstKind::Call { function: self.thread_of, arguments };
        let thread = body.emit(kind, Type::DIM3, NOWHERE);
        // The kernel has no dynamic shared memory.
        let geometry = vec![thread, index, size, grid, no_memory()];
        let mut arguments = vec![body.emit(InstKind::Aggregate(geometry), Type::GEOMETRY, NOWHERE)];
        arguments.extend(parameters);
        body.emit(InstKind::Call { function, arguments }, Type::Unit, NOWHERE);
        body.jump(gone);
        body.place(gone);
        let kind = InstKind::Call { function: self.end_block, arguments: vec![] };
        body.emit(kind, Type::Unit, NOWHERE);
        let at = body.load(self.number.clone(), &Type::U32, NOWHERE);
        let at = body.emit(InstKind::Binary(BinaryOp::Add, at, word(1)), Type::U32, NOWHERE);
        body.store(self.number.clone(), at.clone(), NOWHERE);
        let more = body.emit(InstKind::Binary(BinaryOp::Lt, at, parts), Type::BOOL, NOWHERE);
        body.branch(more, part, end);
        body.place(end);
    }
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
        let id = KernelId(at as u32);
        for_kernel(&mut body, id, |body| {
            let zero = body.emit(dim3(0), Type::DIM3, NOWHERE);
            let one = body.emit(dim3(1), Type::DIM3, NOWHERE);
            let geometry = vec![zero.clone(), zero, one.clone(), one, no_memory()];
            let geometry = body.emit(InstKind::Aggregate(geometry), Type::GEOMETRY, NOWHERE);
            let mut arguments = vec![geometry];
            arguments.extend(load_parameters(body, layouts, id, &Operand::Parameter(1)));
            let call = InstKind::Call { function: kernel.body, arguments };
            body.emit(call, Type::Unit, NOWHERE);
        });
    }
    body.terminate(Terminator::Return(None));
    replace(module, id, body)
}

/// The address of a block's dynamic shared memory if it has none.
fn no_memory() -> Operand {
    Operand::Const(Const::Zero(Type::pointer_mut(Type::Scalar(Scalar::U8))))
}

/// Emits what a function does if its first parameter is the number of this kernel, and goes on with what it does otherwise.
fn for_kernel(body: &mut BodyBuilder, kernel: KernelId, run: impl FnOnce(&mut BodyBuilder)) {
    let is = InstKind::Binary(BinaryOp::Eq, Operand::Parameter(0), word(kernel.0));
    let is = body.emit(is, Type::BOOL, NOWHERE);
    let [this, next] = body.blocks("kernel", ["this", "next"]);
    body.branch(is, this, next);
    body.place(this);
    run(body);
    body.terminate(Terminator::Return(None));
    body.place(next);
}

/// Reads a kernel's parameters from its buffer.
pub(super) fn load_parameters(
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
