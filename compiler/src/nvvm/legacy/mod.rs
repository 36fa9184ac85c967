//! The legacy dialect writer: LLVM 7 text with typed pointers, from an LLVM 22 module.
//!
//! Below `compute_100`, libNVVM reads only LLVM 7's language, which LLVM 22 cannot write because
//! its pointers are opaque. This writer handles every module that inkwell can build, not only
//! Gridlet's own. It does not change the module, and equal modules give equal text.
//!
//! ```no_run
//! # fn f(module: &inkwell::module::Module<'_>) -> gridlet::Result<()> {
//! use gridlet::nvvm::legacy::{self, LegacyOptions};
//! let text = legacy::write(module, &LegacyOptions::default())?;
//! # Ok(()) }
//! ```
//!
//! # Accepted modules
//!
//! A module that LLVM's verifier accepts, for `nvptx64` or without a target, with a data layout
//! that agrees with libNVVM's or without one. It may contain functions, variables in global, shared
//! and constant memory, every type except those below, all instructions except those for exceptions
//! and variable arguments, assembly, the intrinsics listed below, `!nvvm.annotations`,
//! `!llvm.module.flags`, unrolling hints in `!llvm.loop`, and `!range` and `!invariant.load` on
//! loads.
//!
//! The writer refuses constructs that it cannot express, with an error that names the function,
//! shows the instruction, gives the reason and suggests a replacement. It also refuses constructs
//! that libNVVM accepts but miscompiles. It writes constructs that libNVVM refuses with a clear
//! message of its own (an integer of 33 bits, a variable initialised with a difference of
//! addresses).
//!
//! # Translation
//!
//! | LLVM 22 | Text |
//! |---|---|
//! | `ptr`, `ptr addrspace(3)` | `i8*`, `i8 addrspace(3)*`; `alloca`, `getelementptr` and `byval` give pointers to their own type |
//! | a use that needs another pointee | `%p.cast = bitcast i8* %p to float*` before it; for a constant, a `bitcast` expression in place |
//! | a typed pointer used as a value | `%p.i8 = bitcast float* %p to i8*` after its definition |
//! | an unnamed value or block | `%v7`, `%p0`, `%b3`: a letter and the number that LLVM 22 prints |
//! | `ptr byval(T) align A %p` | `T* byval align A %p` |
//! | a parameter or result in [`LegacyOptions::pointees`] | a pointer to an opaque structure |
//! | `ptx_kernel` | a plain function, and `!"kernel", i32 1` in `!nvvm.annotations` |
//! | `"nvvm.maxntid"="x,y,z"`, `reqntid`, `minctasm`, `maxnreg`, `cluster_dim`, `maxclusterrank`; `"nvvm.grid_constant"` of a parameter | the annotations `maxntidx` …, `reqntidx` …, `minctasm`, `maxnreg`, `cluster_dim_x` …, `cluster_max_blocks`, `grid_constant` |
//! | `fneg x` | `fsub -0.0, x` |
//! | an `i1` for a predicate of assembly (`b`) | an `i32` (`r`), of which the assembly makes a predicate |
//! | `freeze x` | a `mov` in assembly, opaque to optimisers; `freeze undef` is zero |
//! | `poison` | `undef` |
//! | `insertelement <2 x half>` | the same on `<2 x i16>`, between bit casts |
//! | `memory(…)` of a declaration | `readnone`, `readonly`, `argmemonly`, … where they promise no more than it does |
//! | `load atomic`, `store atomic` | `load volatile`, `store volatile`, with fences for their ordering |
//! | `atomicrmw`, `cmpxchg` | the same, or `llvm.nvvm.atomic.*` for `block` and system scope, with fences for their ordering (see `atomics`) |
//! | `fence` | `llvm.nvvm.membar.{cta,gl,sys}` |
//! | `llvm.memcpy.p0.p3.i64` | `llvm.memcpy.p0i8.p3i8.i64` |
//! | `smax`, `umin`, `abs`, `scmp`, `*.sat`, `fpto*i.sat`, `round`, `rint`, `trunc`, `fabs`, `ptrmask`, … | instructions and `llvm.nvvm.*` with the same results (see `rewrites`) |
//! | `llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)` | `llvm.nvvm.barrier0()` |
//! | `llvm.nvvm.activemask`, `redux.sync.*`, `nanosleep`, clusters, … | the PTX instruction in assembly (see `ptx`) |
//! | local symbols that PTX cannot spell | renamed |
//! | debug information | refused, left out with [`LegacyOptions::drop_debug_info`], or its lines kept with [`LegacyOptions::debug_lines`], its variables with [`LegacyOptions::debug_variables`] |
//!
//! Dropped, because they only inform an optimiser: `nuw` and `nusw` of `getelementptr`, `nneg`,
//! `disjoint`, `samesign`, flags of `trunc`, fast-math flags of `select` and `phi`, aliasing
//! metadata, `llvm.lifetime.*`, `tail`, visibility, comdats, and attributes like `willreturn` and
//! `noundef`. String attributes other than those above are dropped too: rounding and flushing are
//! options of libNVVM (`-ftz=1`), not properties of a function.
//!
//! # Refused constructs
//!
//! `bfloat` and every other type that LLVM 7 for NVPTX lacks; address spaces other than 0, 1, 3, 4
//! and 5; stack slots outside address space 0; `frem` (libNVVM rounds the quotient down); atomic
//! operations on 8, 16 and 128 bits and those that PTX lacks; exceptions, `indirectbr`,
//! `blockaddress`, `va_arg` and variable arguments; `musttail`; calls of kernels; operand bundles
//! other than `llvm.assume`'s; `byref`, `inalloca` and other attributes that change how a function
//! is called; initial values of shared memory; `thread_local`, sections, constructors, `ifunc`,
//! aliases, `module asm`; names of external symbols that PTX cannot spell; unlisted intrinsics.
//! libNVVM calls an unknown intrinsic as if it were a function, so every name is checked.

use inkwell::module::Module;

use crate::error::{Error, Result};
use gridlet_lang::launch::struct_pointers;

mod atomics;
mod attributes;
mod body;
mod calls;
mod constants;
mod debug_text;
mod freeze;
mod functions;
mod globals;
mod instructions;
mod intrinsics;
mod lines;
pub(crate) mod llvm;
mod memory;
mod metadata;
mod names;
mod ptx;
mod refusal;
mod rewrites;
mod types;
mod writer;

pub(crate) use atomics::atomic_ptx;
pub(crate) use calls::{PREDICATE, PREDICATE_END};
pub(crate) use functions::is_known_convention;
pub(crate) use refusal::TOOL;
pub(crate) use writer::foreign_layout;

/// Options for the legacy writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LegacyOptions {
    /// Parameters and results that the text declares as pointers to opaque structures.
    pub pointees: Vec<PointeeHint>,
    /// Whether to drop debug information. Otherwise a module that has some is refused.
    pub drop_debug_info: bool,
    /// Whether to keep the source lines of a module that has debug information, and drop the rest of it.
    pub debug_lines: bool,
    /// With [`LegacyOptions::debug_lines`]: whether to keep variables too, unless a function or variable has debug information
    /// that LLVM 7 does not know. libNVVM then needs its option `-g`, which excludes optimisation.
    pub debug_variables: bool,
}

impl LegacyOptions {
    /// The options for a module that may launch kernels: the device runtime's functions are
    /// declared as in CUDA's header, with stream handles as pointers to `%struct.CUstream_st`.
    pub fn device_runtime() -> Self {
        let hint = |(function, parameter, structure): (String, u32, &str)| {
            PointeeHint::new(function, HintPlace::Parameter(parameter), structure)
        };
        let pointees = struct_pointers().into_iter().map(hint).collect();
        LegacyOptions { pointees, ..LegacyOptions::default() }
    }

    gridlet_artifact::setters! {
        with_pointees: pointees: Vec<PointeeHint>,
        with_drop_debug_info: drop_debug_info: bool,
        with_debug_lines: debug_lines: bool,
        with_debug_variables: debug_variables: bool,
    }
}

/// Makes the text declare a pointer in a function's type as a pointer to an opaque structure, as a
/// C header does: `declare i32 @cudaLaunchDeviceV2(i8*, %struct.CUstream_st*)`. Calls cast their
/// arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointeeHint {
    /// The function's name.
    pub function: String,
    /// The pointer's position.
    pub place: HintPlace,
    /// The structure's name, without `%`: `struct.CUstream_st`. The text declares it as opaque, unless the
    /// module has a structure of that name.
    pub structure: String,
}

impl PointeeHint {
    /// The pointer at `place` in the type of `function` points to `structure`.
    pub fn new(
        function: impl Into<String>,
        place: HintPlace,
        structure: impl Into<String>,
    ) -> Self {
        PointeeHint { function: function.into(), place, structure: structure.into() }
    }
}

/// A position in a function's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintPlace {
    /// A parameter, counted from 0.
    Parameter(u32),
    /// The result.
    Result,
}

/// Writes a module in libNVVM's legacy dialect, as described in the documentation of this module.
///
/// # Errors
///
/// [`Error::Invalid`] if LLVM's verifier rejects the module, or if it has debug information that
/// the options do not drop; [`Error::Tool`] if the dialect cannot express part of it.
pub fn write(module: &Module<'_>, options: &LegacyOptions) -> Result<String> {
    // The writer shows the call of an unknown intrinsic.
    crate::nvvm::verify(module, |_| true)?;
    writer::Writer::new(llvm::Module::new(module), options).write()
}

/// The error for a module that LLVM's verifier rejects.
pub(super) fn invalid(log: &str) -> Error {
    Error::Invalid(format!("the module is not valid LLVM IR:\n{}", log.trim_end()))
}
