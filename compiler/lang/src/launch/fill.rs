//! `memset_async` and `memcpy_async` as launches of kernels.
//!
//! On GPUs a kernel replaces the device runtime's `cudaMemsetAsync`, which ignores its value and writes zeros (seen on an
//! H200 with driver 580.159.04, also with code compiled by nvcc 13.0). Where there is no device runtime, another replaces
//! `cudaMemcpyAsync`.
//!
//! The pass runs before launches are lowered. `fill.grid` and `copy.grid` hold the kernels and the functions that launch
//! them into the stream, so that fills and copies keep their place in the stream:
//! ```text
//! kernel __gridlet_fill(to, value, bytes)
//! gridlet.fill_async(to, value, bytes, stream) -> i32      ; replaces each `memset_async`
//! kernel __gridlet_copy(to, from, bytes)
//! gridlet.copy_async(to, from, bytes, stream) -> i32       ; replaces each `memcpy_async`
//! ```
//! The kernels do not belong to the program: manifests, `gridlet layout` and statistics leave them out.

use super::{merge, uses};
use crate::builtins::Builtin;
use crate::error::Result;
use crate::ir::{FunctionId, InstKind, Module};

/// The kernel that `memset_async` launches on GPUs. Only images of programs that fill have it.
pub const FILL_KERNEL: &str = "__gridlet_fill";

/// The kernel that `memcpy_async` launches where there is no device runtime.
pub const COPY_KERNEL: &str = "__gridlet_copy";

/// Whether a module whose launches are symbolic fills memory in a stream.
pub(super) fn fills(module: &Module) -> bool {
    uses(module, is_fill)
}

/// Whether a module whose launches are symbolic copies memory in a stream.
pub(super) fn copies(module: &Module) -> bool {
    uses(module, is_copy)
}

/// Whether an instruction fills memory in a stream.
pub(super) fn is_fill(kind: &InstKind) -> bool {
    matches!(kind, InstKind::Builtin { builtin: Builtin::MemsetAsync, .. })
}

/// Whether an instruction copies memory in a stream.
pub(super) fn is_copy(kind: &InstKind) -> bool {
    matches!(kind, InstKind::Builtin { builtin: Builtin::MemcpyAsync, .. })
}

/// Whether a kernel fills or copies.
pub(super) fn is_helper(kernel: &str) -> bool {
    kernel == FILL_KERNEL || kernel == COPY_KERNEL
}

/// Turns the fills of a module and, with `copies`, its copies into launches of kernels.
pub(super) fn by_kernels(module: &mut Module, copies: bool) -> Result<()> {
    let own = module.functions.len();
    if fills(module) {
        let source = include_str!("fill.grid");
        let added = merge::add(module, "fill.grid", source, |name| rename(name, FILL_KERNEL))?;
        replace(module, own, is_fill, added.function("fill_async")?);
    }
    if copies && self::copies(module) {
        let source = include_str!("copy.grid");
        let added = merge::add(module, "copy.grid", source, |name| rename(name, COPY_KERNEL))?;
        replace(module, own, is_copy, added.function("copy_async")?);
    }
    Ok(())
}

/// The name of a function or kernel of these files. Names in the language never contain a dot.
fn rename(name: &str, kernel: &str) -> String {
    match name.split_once('.') {
        _ if name.ends_with("_async") => format!("gridlet.{name}"),
        Some((_, part)) => format!("{kernel}.{part}"),
        None => kernel.into(),
    }
}

/// Replaces built-ins in the first `own` functions by calls with the same arguments.
fn replace(module: &mut Module, own: usize, is: fn(&InstKind) -> bool, function: FunctionId) {
    let own = module.functions.iter_mut().take(own);
    for inst in own.flat_map(|function| &mut function.instructions) {
        if is(&inst.kind)
            && let InstKind::Builtin { arguments, .. } = &mut inst.kind
        {
            let arguments = std::mem::take(arguments);
            inst.kind = InstKind::Call { function, arguments };
        }
    }
}
