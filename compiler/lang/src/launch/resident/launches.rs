//! Lowers launches to calls of the scheduler.
//!
//! ```text
//!   %0: u32 = call @gridlet.begin(kernel, grid, block, shared)      ; a record, or a status
//!   %1: bool = ge %0, 0xffff0000u32
//!   branch %1, launch.failed, launch.ok
//! launch.ok:                                      ; one store for each parameter, at its offset
//!   %2: *mut u8 = call @gridlet.parameters(%0)
//!   %3: *mut T = byte_offset %2, 16
//!   store %3, argument
//!   call @gridlet.submit(%0, kernel, grid, block, shared, stream, soon)
//!   store $launch_status, 0i32
//!   jump launch.end
//! launch.failed:
//!   %4: u32 = and %0, 65535u32
//!   %5: i32 = cast %4
//!   store $launch_status, %5
//!   jump launch.end
//! ```
//! `launch/status.rs` adds the code from `launch.end` on.

use super::plan::Plan;
use crate::error::Result;
use crate::ir::{
    BinaryOp, BlockId, Const, FunctionId, InstKind, KernelId, Launch, Module, Operand, Stream,
    Terminator,
};
use crate::launch::cdp::symbols::NamedStream;
use crate::launch::fill;
use crate::launch::merge::Added;
use crate::launch::status::{Attempt, Reports, Rewriter, replace_launches};
use crate::layout::Layouts;
use crate::source::Span;
use crate::types::{Scalar, Type};

/// Numbers of records from here on are statuses; `FAILED` in `scheduler/state.grid`.
const FAILED: u32 = 0xffff_0000;

/// Lowers every launch of a module.
pub(super) fn lower(
    module: &mut Module,
    layouts: &Layouts,
    plan: &Plan,
    scheduler: &Added,
    reports: Reports,
) -> Result<()> {
    let helpers = module.kernels.iter().map(|kernel| fill::is_helper(&kernel.name)).collect();
    let attempt = ResidentLaunch {
        layouts,
        begin: scheduler.function("begin")?,
        parameters: scheduler.function("parameters")?,
        submit: scheduler.function("submit")?,
        note_error: plan.keeps_errors.then(|| scheduler.function("note_error")).transpose()?,
        helpers,
    };
    replace_launches(module, reports, &attempt)
}

struct ResidentLaunch<'m> {
    layouts: &'m Layouts,
    begin: FunctionId,
    parameters: FunctionId,
    submit: FunctionId,
    /// The function that keeps a thread's last error, in programs that ask for it.
    note_error: Option<FunctionId>,
    /// By kernel, whether it fills or copies. Its launches are not counted: they are not the program's.
    helpers: Vec<bool>,
}

fn number(value: u32) -> Operand {
    Operand::Const(Const::Int(Scalar::U32, i128::from(value)))
}

impl ResidentLaunch<'_> {
    fn is_helper(&self, kernel: KernelId) -> bool {
        self.helpers.get(kernel.index()).copied().unwrap_or(false)
    }
}

impl Attempt for ResidentLaunch<'_> {
    const BLOCKS: u32 = 2;

    fn attempt(&self, to: &mut Rewriter<'_, '_, Self>, launch: &Launch, span: Span, end: BlockId) {
        let kernel = number(launch.kernel.0);
        let (grid, block) = (launch.grid.clone(), launch.block.clone());
        let sizes = vec![kernel, grid, block, launch.shared.clone()];
        let kind = InstKind::Call { function: self.begin, arguments: sizes.clone() };
        let record = to.emit(kind, Type::U32, span);
        let kind = InstKind::Binary(BinaryOp::Ge, record.clone(), number(FAILED));
        let is_status = to.emit(kind, Type::BOOL, span);
        let [ok, failed] = [1, 2].map(|at| to.block_after(at));
        to.close(Terminator::Branch { condition: is_status, then: failed, otherwise: ok });

        to.open("launch.ok");
        let slots = &self.layouts.parameters(launch.kernel).slots;
        if !slots.is_empty() {
            let kind =
                InstKind::Call { function: self.parameters, arguments: vec![record.clone()] };
            let buffer = to.emit(kind, Type::pointer_mut(Type::Scalar(Scalar::U8)), span);
            for (slot, argument) in slots.iter().zip(&launch.arguments) {
                let kind = InstKind::ByteOffset { base: buffer.clone(), bytes: slot.offset };
                let pointer = to.emit(kind, Type::pointer_mut(slot.ty.clone()), span);
                to.store(pointer, argument.clone(), span);
            }
        }
        let stream = stream_handle(to, &launch.stream, span);
        let soon = Operand::Const(Const::Bool(to.ends_soon()));
        let mut arguments = vec![record.clone()];
        arguments.extend(sizes);
        arguments.extend([stream, soon]);
        to.emit(InstKind::Call { function: self.submit, arguments }, Type::Unit, span);
        let success = Operand::Const(Const::Int(Scalar::I32, 0));
        to.set_status(success.clone(), span);
        if !self.is_helper(launch.kernel) {
            to.count(success, span);
        }
        to.close(Terminator::Jump(end));

        to.open("launch.failed");
        let kind = InstKind::Binary(BinaryOp::And, record, number(!FAILED));
        let status = to.emit(kind, Type::U32, span);
        let status = to.emit(InstKind::Cast(status), Type::I32, span);
        to.set_status(status.clone(), span);
        if let Some(function) = self.note_error {
            let kind = InstKind::Call { function, arguments: vec![status] };
            to.emit(kind, Type::Unit, span);
        }
        to.close(Terminator::Jump(end));
    }
}

/// The handle of a stream: the numbers of CUDA's named streams, or that of a created stream.
fn stream_handle<A: Attempt>(to: &mut Rewriter<'_, '_, A>, stream: &Stream, span: Span) -> Operand {
    let named = match stream {
        Stream::Value(stream) => {
            return to.emit(InstKind::Cast(stream.clone()), Type::U64, span);
        }
        Stream::Default => NamedStream::Default,
        Stream::Tail => NamedStream::TailLaunch,
        Stream::FireAndForget => NamedStream::FireAndForget,
    };
    Operand::Const(Const::Int(Scalar::U64, i128::from(named.handle())))
}
