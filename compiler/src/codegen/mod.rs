//! Codegen: lowers an IR module to one LLVM module, through inkwell.
//!
//! # The module
//! - It is modern LLVM (opaque pointers) for `nvptx64-nvidia-cuda`, unoptimised, and avoids
//!   everything that [`nvvm::legacy`](crate::nvvm) cannot express in LLVM 7 or that either dialect
//!   of libNVVM refuses: it uses only intrinsics that all three consumers know
//!   (`llvm.nvvm.barrier0` has another name in LLVM 22, which renames it on reading), and no
//!   `freeze`, `poison`, `bfloat` or saturating conversion.
//! - **Symbols** ([`symbol`](gridlet_lang::ir::symbol)) are the IR's names for kernels and `extern
//!   fn`s; all others have a prefix, so that they never meet a C library's, a linker's or LLVM's. In
//!   symbols visible to the host or to another module, `$` replaces `.`: PTX allows it and no name
//!   of the language contains it. LLVM and libNVVM rename internal symbols (`own.fill.body`).
//! - **Memory.** LLVM never lays out a struct: variables and `byval` parameters of aggregate types
//!   are byte arrays with the alignment from [`layout`](gridlet_lang::layout), and an aggregate is
//!   loaded and stored leaf by leaf at `layout`'s offsets. In registers, a struct is an LLVM struct
//!   that merely carries its fields.
//! - **Wide values**, with more than `types::MAX_LEAVES` leaves, are carried as a pointer to an
//!   immutable copy; see `memory.rs`.
//! - **`bool`** is `i1` in registers and a byte, 0 or 1, in memory and as a kernel's parameter.
//! - **`bf16`**, and on the CPU **`f16`**, is carried as its bits in an `i16` and computed in
//!   `f32`; see `narrow.rs`.
//! - Kernels' entries have the `ptx_kernel` calling convention and, for launch bounds, the
//!   attributes `nvvm.maxntid` and `nvvm.minctasm`. Bodies are internal and `alwaysinline`. An
//!   `extern kernel` is the declaration of an entry.

mod atomic;
mod atomic_ptx;
mod builtin;
mod c_abi;
mod cast;
mod context;
mod copies;
mod cpu;
mod debug;
mod division;
mod external;
mod fast;
mod flags;
mod function;
mod geometry;
mod globals;
mod heap;
mod instruction;
mod instructions;
mod joined_branches;
mod linked;
mod math;
mod memory;
mod narrow;
mod narrow_division;
mod operator;
mod packed;
mod pairs;
mod places;
mod printf;
mod spaces;
mod tables;
mod types;
mod unroll;
mod values;
mod warp;

pub(crate) use builtin::TRAP;
pub(crate) use cpu::MAX_STATIC_BYTES as MAX_CPU_STATIC_BYTES;
pub use cpu::{CpuModuleOptions, build_cpu_module};
pub(crate) use debug::directives_only;
pub(crate) use fast::fast_functions;
pub(crate) use flags::MEETING;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::BasicValue;
pub(crate) use linked::link_inputs;
pub(crate) use unroll::{hint, loop_node};

use crate::error::{Error, Result};
use debug::Debug;
use gridlet_lang::arch::CudaArch;
use gridlet_lang::ir;

/// The target triple of every module.
pub const TRIPLE: &str = "nvptx64-nvidia-cuda";

/// The data layout that libNVVM requires (NVVM IR Specification 2.0, "Data Layout", 64-bit).
pub const DATA_LAYOUT: &str = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
    f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64";

/// The layout of modules that come from Gridlet alone: pointers to shared memory have 32 bits, as in nvcc's modules, so that
/// addresses there need half the registers and instructions. The specification allows both. Modules of other compilers
/// may store such pointers in memory with 64 bits.
pub const OWN_DATA_LAYOUT: &str = "e-p:64:64:64-p3:32:32:32-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
    f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64";

/// LLVM's number for the `ptx_kernel` calling convention (`llvm/IR/CallingConv.h`).
pub const PTX_KERNEL: u32 = 71;

/// What a module for GPUs may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuModuleOptions {
    /// The architecture whose instructions it may use.
    pub arch: CudaArch,
    /// Whether functions of `f32` are the approximate ones that nvcc's `-use_fast_math` takes.
    pub fast_math: bool,
    /// Whether the code of kernels with `#[fast_math]` stays in functions of its own.
    pub fast_apart: bool,
    /// Whether the module records the source line of each instruction, for debuggers and profilers, and, unless it will be
    /// optimised, the variables.
    pub debug_lines: bool,
    /// Whether the module will be optimised, as recorded in the debug information.
    pub optimize: bool,
    /// Whether flags that end loops are bytes, as libNVVM needs them (`flags.rs`); LLVM's own back end makes of bytes what libNVVM makes of
    /// bits.
    pub byte_flags: bool,
    /// Whether the module states the version of NVVM IR. One that is linked into another leaves that to the other.
    pub version: bool,
}

impl Default for GpuModuleOptions {
    /// For every supported architecture.
    fn default() -> Self {
        GpuModuleOptions {
            arch: CudaArch::SUPPORTED[0],
            fast_math: false,
            fast_apart: false,
            debug_lines: false,
            optimize: true,
            byte_flags: true,
            version: true,
        }
    }
}

/// Emits `module`, as lowered by the `launch` stage, into `context`, for every architecture.
///
/// # Errors
/// As [`build_module_for`].
pub fn build_module<'ctx>(context: &'ctx Context, module: &ir::Module) -> Result<Module<'ctx>> {
    build_module_for(context, module, GpuModuleOptions::default())
}

/// Emits `module`, as lowered by the `launch` stage, into `context`.
///
/// # Errors
/// [`Error::Internal`] if the IR breaks its rules or LLVM's verifier rejects the module;
/// [`Error::Invalid`] if the program gives an item the name of a CUDA function, or has a
/// variable of 4 GiB or more.
pub fn build_module_for<'ctx>(
    context: &'ctx Context,
    module: &ir::Module,
    options: GpuModuleOptions,
) -> Result<Module<'ctx>> {
    let mut cx = context::ModuleContext::new(context, module, options)?;
    let variables = !options.optimize;
    cx.debug = options.debug_lines.then(|| Debug::new(&cx, variables, options.optimize));
    fill(&mut cx)?;
    let module = cx.finish()?;
    if variables {
        return Ok(module);
    }
    Ok(directives_only(&module, false)?.unwrap_or(module))
}

/// Emits the globals and functions of the IR.
fn fill(cx: &mut context::ModuleContext<'_, '_>) -> Result<()> {
    if !cx.ir.lowered {
        return Err(bug("the module still has launches to lower"));
    }
    cx.add_globals()?;
    cx.declare_functions()?;
    for (function, (at, value)) in cx.ir.functions.iter().zip(cx.functions.iter().enumerate()) {
        if let ir::Role::Entry(kernel) = function.role
            && cx.ir.kernel(kernel).is_extern()
        {
            continue;
        }
        function::define(cx, ir::FunctionId(at as u32), *value)?;
    }
    // A declaration that nothing mentions would still need a definition.
    for kernel in cx.ir.extern_kernels() {
        let entry = cx.functions[kernel.entry.index()];
        if entry.as_global_value().as_pointer_value().get_first_use().is_none() {
            // SAFETY: nothing in the module refers to it, and `cx` does not use it again.
            unsafe { entry.delete() };
        }
    }
    Ok(())
}

/// Whether the module calls libdevice, and so must be linked with it.
pub fn uses_libdevice(module: &Module<'_>) -> bool {
    module.get_functions().any(|function| {
        function.count_basic_blocks() == 0 && function.get_name().to_bytes().starts_with(b"__nv_")
    })
}

/// A bug in this stage or an earlier one.
fn bug(message: impl Into<String>) -> Error {
    Error::internal("codegen", message)
}
