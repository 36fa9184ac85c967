//! The limits of `shared` memory on GPUs, which the assembler reports without a line, or the driver only at a launch.

use super::{LaunchOptions, Lowering, cdp, resident};
use crate::diagnostics::{Diagnostic, ids};
use crate::error::{Error, Result};
use crate::extents::MAX_SHARED_BYTES;
use crate::ir::{Kernel, Module, Space};
use crate::layout::{static_shared_bytes, type_layout};

/// The most bytes of static shared memory of a kernel, on every GPU (CUDA Programming Guide, "Technical Specifications per Compute
/// Capability": more needs dynamic memory).
pub const MAX_STATIC_SHARED_BYTES: u64 = 48 * 1024;

/// Refuses kernels with more `shared` memory than a GPU can give them. `module` has symbolic launches, `lowered` is what
/// [`super::lower`] made of it.
///
/// # Errors
/// [`Error::Program`] with `shared-too-large` at each such kernel.
pub fn check_shared(module: &Module, lowered: &Module, options: &LaunchOptions) -> Result<()> {
    let shared = lowered.globals.iter().chain(&module.globals);
    let shared = shared.filter(|global| global.space == Space::Shared);
    let bytes = |module: &Module| -> u64 {
        let all = shared.clone().map(|global| type_layout(&global.ty, &module.structs).size);
        all.fold(0, u64::saturating_add)
    };
    if options.lowering == Lowering::Cdp(cdp::Options::CPU)
        || bytes(lowered) <= MAX_STATIC_SHARED_BYTES
    {
        return Ok(());
    }
    let mut errors = vec![];
    // The resident kernel has them in dynamic memory.
    if options.lowering == Lowering::Resident {
        for (kernel, bytes) in module.kernels.iter().zip(resident::shared_bytes(module)) {
            if let Some(bytes) = bytes.filter(|bytes| i128::from(*bytes) > MAX_SHARED_BYTES) {
                let limit = format!("a block has at most {MAX_SHARED_BYTES} bytes on any GPU");
                let hint = "use less, or device memory";
                errors.push(too_large(kernel, bytes.into(), &limit).hint(hint));
            }
        }
    }
    for (kernel, bytes) in lowered.kernels.iter().zip(static_shared_bytes(lowered)) {
        if bytes > MAX_STATIC_SHARED_BYTES {
            let limit = format!("a kernel has at most {MAX_STATIC_SHARED_BYTES} bytes of them");
            let hint =
                "declare the large part as `dynamic shared`, and give its size in the launch";
            errors.push(too_large(kernel, bytes, &limit).hint(hint));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Error::Program(errors)) }
}

fn too_large(kernel: &Kernel, bytes: u64, limit: &str) -> Diagnostic {
    let message =
        format!("the `shared` variables of kernel `{}` take {bytes} bytes; {limit}", kernel.name);
    Diagnostic::error(ids::SHARED_TOO_LARGE, kernel.span, message)
        .at_caret("with those of the functions that it calls")
}
