//! `memset_async` on GPUs: a kernel replaces the device runtime's `cudaMemsetAsync`, which ignores its value
//! and writes zeros (seen on an H200 with driver 580.159.04, also with code compiled by nvcc 13.0).
//!
//! The pass runs before launches are lowered. `fill.grid` holds the kernel and the function that launches it into
//! the stream, so that a fill keeps its place in the stream:
//! ```text
//! kernel __gridlet_fill(to, value, bytes)
//! gridlet.fill_async(to, value, bytes, stream) -> i32      ; replaces each `memset_async`
//! ```
//! The kernel does not belong to the program: manifests, `gridlet layout` and statistics leave it out.

use std::sync::Arc;

use super::symbols::{FILL_ASYNC, FILL_KERNEL};
use crate::builtins::Builtin;
use crate::check::parse_and_check;
use crate::error::{Error, Result};
use crate::ir::build::build_ir;
use crate::ir::{FunctionId, InstKind, KernelId, Module, Role};
use crate::source::{FileId, SourceMap, Span};
use crate::types::Structs;

const SOURCE: &str = include_str!("fill.grid");

/// Whether a module whose launches are symbolic fills memory in a stream.
pub(in crate::launch) fn fills(module: &Module) -> bool {
    let mut instructions = module.functions.iter().flat_map(|function| &function.instructions);
    instructions.any(|inst| is_fill(&inst.kind))
}

fn is_fill(kind: &InstKind) -> bool {
    matches!(kind, InstKind::Builtin { builtin: Builtin::MemsetAsync, .. })
}

/// Turns the fills of a module that has at least one into launches of a kernel.
pub(super) fn fill_by_kernel(module: &mut Module) -> Result<()> {
    let own = module.functions.len();
    let fill_async = add(module)?;
    let own = module.functions.iter_mut().take(own);
    for inst in own.flat_map(|function| &mut function.instructions) {
        if is_fill(&inst.kind)
            && let InstKind::Builtin { arguments, .. } = &mut inst.kind
        {
            let arguments = std::mem::take(arguments);
            inst.kind = InstKind::Call { function: fill_async, arguments };
        }
    }
    Ok(())
}

/// Adds the contents of `fill.grid` to a module, and returns the function to call.
fn add(module: &mut Module) -> Result<FunctionId> {
    let mut sources = SourceMap::default();
    sources.add("fill.grid", SOURCE);
    let (program, _) = parse_and_check(&sources);
    let program = program.ok_or_else(|| Error::internal("launch", "fill.grid has errors"))?;
    let added = build_ir(&program, Arc::new(sources))?;
    // The code below moves only functions and kernels.
    let structs = added.structs.len() - Structs::new().len();
    if structs + added.globals.len() + added.externs.len() > 0 {
        return Err(Error::internal("launch", "fill.grid has more than functions"));
    }

    let moved = |id: FunctionId| FunctionId(id.0 + module.functions.len() as u32);
    let moved_kernel = |id: KernelId| KernelId(id.0 + module.kernels.len() as u32);
    let nowhere = Span::new(FileId(0), 0..0);
    let mut functions = added.functions;
    let mut kernels = added.kernels;
    let mut fill_async = None;
    for (at, function) in (0..).zip(&mut functions) {
        function.span = nowhere;
        function.role = match function.role {
            Role::Body(id) => Role::Body(moved_kernel(id)),
            Role::Entry(id) => Role::Entry(moved_kernel(id)),
            Role::Device => {
                function.name = FILL_ASYNC.into();
                fill_async = Some(moved(FunctionId(at)));
                Role::Device
            }
        };
        for inst in &mut function.instructions {
            inst.span = nowhere;
            match &mut inst.kind {
                InstKind::Call { function, .. } => *function = moved(*function),
                InstKind::Launch(launch) => launch.kernel = moved_kernel(launch.kernel),
                _ => {}
            }
        }
    }
    for kernel in &mut kernels {
        kernel.span = nowhere;
        kernel.name = FILL_KERNEL.into();
        functions[kernel.body.index()].name = format!("{FILL_KERNEL}.body");
        functions[kernel.entry.index()].name = FILL_KERNEL.into();
        (kernel.body, kernel.entry) = (moved(kernel.body), moved(kernel.entry));
    }
    module.functions.extend(functions);
    module.kernels.extend(kernels);
    fill_async.ok_or_else(|| Error::internal("launch", "fill.grid has no function"))
}
