//! The functions that run the blocks of one kernel, in which its parameters are read once for all of them.

use super::dispatch::load_parameters;
use super::plan::{Blocks, DEFAULTS, Plan};
use crate::error::Result;
use crate::ir::build::{BodyBuilder, Signature};
use crate::ir::{
    BinaryOp, BlockId, Const, Function, FunctionId, InstKind, KernelId, Module, Operand, Parameter,
    Role, Terminator,
};
use crate::launch::merge::{Added, NOWHERE};
use crate::layout::Layouts;
use crate::types::Type;

/// The functions of the scheduler that runners call.
pub(super) struct Called {
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

impl Called {
    /// Looks them up in the scheduler that was added to the program.
    pub(super) fn find(plan: &Plan, scheduler: &Added) -> Result<Self> {
        Ok(Called {
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
            clear_error: plan
                .keeps_errors
                .then(|| scheduler.function("clear_error"))
                .transpose()?,
            warp_is_whole: [
                scheduler.function("warp_is_whole")?,
                scheduler.function("warp_is_whole_and_aligned")?,
            ],
            worker_is_whole: [
                scheduler.function("worker_is_whole")?,
                scheduler.function("worker_is_whole_and_aligned")?,
            ],
        })
    }
}

/// The blocks of a grid that a warp runs, and what a runner calls for each.
struct Share<'a> {
    called: &'a Called,
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
            let call = InstKind::Call { function: self.called.next_index, arguments };
            let of_next = body.emit(call, Type::DIM3, NOWHERE);
            body.store(index, of_next, NOWHERE);
        }
        body.jump(next);
    }

    /// Whether there is a block with this number.
    fn is_before_end(&self, body: &mut BodyBuilder, number: Operand) -> Operand {
        let arguments = vec![number, self.end.clone()];
        let call = InstKind::Call { function: self.called.is_before, arguments };
        body.emit(call, Type::BOOL, NOWHERE)
    }

    /// Runs a block in a kernel's body or in a copy of it.
    fn run(&self, body: &mut BodyBuilder, function: FunctionId) {
        if let Some(function) = self.called.clear_error {
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
        let call = InstKind::Call { function: self.called.block_index, arguments };
        body.emit(call, Type::DIM3, NOWHERE)
    }
}

/// The function that runs blocks of one kernel: the parameters of `run` without the kernel.
pub(super) fn runner(
    module: &Module,
    layouts: &Layouts,
    plan: &Plan,
    called: &Called,
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
        called,
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
    let closes = Operand::Const(Const::Bool(plan.flags[id.index()] & DEFAULTS != 0));
    let end_block = |body: &mut BodyBuilder, is_worker: bool| {
        let (function, arguments) = match (is_worker, plan.apart[id.index()]) {
            (true, _) => (called.end_block_of_worker, vec![closes.clone()]),
            (false, true) => (called.end_block_apart, vec![]),
            (false, false) => (called.end_block, vec![closes.clone()]),
        };
        body.emit(InstKind::Call { function, arguments }, Type::Unit, NOWHERE);
    };
    // Asked once for all blocks, and each answer has its own loop.
    if let Some(copy) = kernel.whole {
        let fills_worker = plan.fills_worker[id.index()];
        let [any, aligned] =
            if fills_worker { called.worker_is_whole } else { called.warp_is_whole };
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
        Blocks::Unaligned => Some(called.unaligned_lanes),
        Blocks::All => Some(called.lanes),
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
