//! Launches through CUDA's device runtime.
//!
//! A launch becomes the same calls as nvcc's code for `<<<…>>>`, and keeps the error, which nvcc drops:
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
//!   jump launch.lost                              ; in a `try launch`: launch.end
//! ```
//! `launch/status.rs` adds the code from `launch.end` on.
//!
//! As with nvcc, a kernel without parameters gets a buffer too.

use super::symbols::{
    DeviceRuntimeAbi, ERROR_LAUNCH_PENDING_COUNT_EXCEEDED, NamedStream, RuntimeFunction,
};
use crate::error::Result;
use crate::ir::{
    BinaryOp, BlockId, Const, ExternId, InstKind, KernelId, Launch, Module, Operand, Stream,
    Terminator,
};
use crate::launch::fill::FILL_KERNEL;
use crate::launch::status::{Attempt, Reports, Rewriter, replace_launches};
use crate::layout::Layouts;
use crate::source::Span;
use crate::types::{Scalar, Type};

/// Lowers every launch of a module that launches or fills.
pub(super) fn lower(
    module: &mut Module,
    layouts: &Layouts,
    abi: DeviceRuntimeAbi,
    reports: Reports,
) -> Result<()> {
    let fill = module.kernels.iter().position(|kernel| kernel.name == FILL_KERNEL);
    let mut declare = |function| {
        module.externs.push(abi.declaration(function));
        ExternId(module.externs.len() as u32 - 1)
    };
    let attempt = DeviceRuntimeLaunch {
        layouts,
        get_parameter_buffer: declare(RuntimeFunction::GetParameterBuffer),
        launch_device: declare(RuntimeFunction::LaunchDevice),
        fill: fill.map(|at| KernelId(at as u32)),
    };
    replace_launches(module, reports, &attempt)
}

struct DeviceRuntimeLaunch<'m> {
    layouts: &'m Layouts,
    get_parameter_buffer: ExternId,
    launch_device: ExternId,
    /// The kernel that fills. Its launches are not counted: they are not the program's.
    fill: Option<KernelId>,
}

impl Attempt for DeviceRuntimeLaunch<'_> {
    const BLOCKS: u32 = 2;

    fn attempt(&self, to: &mut Rewriter<'_, '_, Self>, launch: &Launch, span: Span, end: BlockId) {
        let byte_pointer = Type::pointer_mut(Type::Scalar(Scalar::U8));
        let (grid, block) = (launch.grid.clone(), launch.block.clone());
        let arguments = vec![Operand::Kernel(launch.kernel), grid, block, launch.shared.clone()];
        let kind = InstKind::CallExtern { function: self.get_parameter_buffer, arguments };
        let param_buffer = to.emit(kind, byte_pointer.clone(), span);
        let null = Operand::Const(Const::Zero(byte_pointer));
        let kind = InstKind::Binary(BinaryOp::Eq, param_buffer.clone(), null);
        let is_null = to.emit(kind, Type::BOOL, span);
        let [ok, null] = [1, 2].map(|at| to.block_after(at));
        to.close(Terminator::Branch { condition: is_null, then: null, otherwise: ok });

        to.open("launch.ok");
        let slots = &self.layouts.parameters(launch.kernel).slots;
        for (slot, argument) in slots.iter().zip(&launch.arguments) {
            let kind = InstKind::ByteOffset { base: param_buffer.clone(), bytes: slot.offset };
            let pointer = to.emit(kind, Type::pointer_mut(slot.ty.clone()), span);
            to.store(pointer, argument.clone(), span);
        }
        let stream = stream_handle(to, &launch.stream, span);
        let arguments = vec![param_buffer, stream];
        let kind = InstKind::CallExtern { function: self.launch_device, arguments };
        let launched = to.emit(kind, Type::I32, span);
        to.set_status(launched.clone(), span);
        if self.fill != Some(launch.kernel) {
            to.count(launched, span);
        }
        to.close(Terminator::Jump(end));

        to.open("launch.null");
        let error = i128::from(ERROR_LAUNCH_PENDING_COUNT_EXCEEDED);
        to.set_status(Operand::Const(Const::Int(Scalar::I32, error)), span);
        to.close(Terminator::Jump(to.failed()));
    }
}

/// The handle of a stream. To the device runtime a stream is a pointer: null for the default stream, a small number for
/// the other named streams.
fn stream_handle<A: Attempt>(to: &mut Rewriter<'_, '_, A>, stream: &Stream, span: Span) -> Operand {
    let named = match stream {
        Stream::Value(stream) => return stream.clone(),
        Stream::Default => return Operand::Const(Const::Zero(Type::Stream)),
        Stream::Tail => NamedStream::TailLaunch,
        Stream::FireAndForget => NamedStream::FireAndForget,
    };
    let handle = Operand::Const(Const::Int(Scalar::U64, i128::from(named.handle())));
    to.emit(InstKind::Cast(handle), Type::Stream, span)
}
