//! Images for the CPU device: LLVM's host target writes an object file, a linker in this process a
//! shared object.
//!
//! [`codegen::cpu`](crate::codegen) and `gridlet_artifact::cpu::abi` describe the contents of such
//! an image.

mod in_process;
mod linker;
mod machine;

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};

pub use linker::link;

use crate::child::{self, End, Limits};
use crate::codegen::{CpuModuleOptions, build_cpu_module, link_inputs};
use crate::error::{Error, Result};
use crate::fatal;
use crate::inputs::{InputKind, LinkInput};
use crate::messages::Messages;
use crate::modules::check_linked_for_cpu;
use gridlet_lang::ir;

/// Build options for the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuOptions {
    /// Whether to optimise (`-O 3`) or not (`-O 0`).
    pub optimize: bool,
    /// Whether to optimise only as far as it takes little time (`-O 1`): LLVM's -O1, without vectorising and unrolling
    /// loops. For programs that are compiled just before they run once. Without `optimize`, it has no effect.
    pub quick: bool,
    /// Whether the image has line tables and variables for debuggers (`-g`).
    pub debug_lines: bool,
    /// Whether the image reports every access and loop iteration to the device (`--check`).
    pub check: bool,
    /// Whether kernels record statistics of their run (`--stats`).
    pub statistics: bool,
    /// Whether the image may use every feature of this machine's processor, and so needs a
    /// processor with the same features. Otherwise it runs on every processor of the architecture.
    pub native: bool,
}

impl Default for CpuOptions {
    /// Options for running on this machine at once.
    fn default() -> Self {
        CpuOptions {
            optimize: true,
            quick: false,
            debug_lines: false,
            check: false,
            statistics: false,
            native: true,
        }
    }
}

impl CpuOptions {
    /// Options for an image to keep: it runs on every processor of the architecture.
    pub fn portable() -> Self {
        CpuOptions { native: false, ..CpuOptions::default() }
    }

    gridlet_artifact::setters! {
        with_optimize: optimize: bool,
        with_quick: quick: bool,
        with_debug_lines: debug_lines: bool,
        with_check: check: bool,
        with_statistics: statistics: bool,
        with_native: native: bool,
    }

    fn module_options(&self) -> CpuModuleOptions {
        CpuModuleOptions {
            check: self.check,
            debug_lines: self.debug_lines,
            optimize: self.optimize,
            // Checked images run thread by thread.
            has_v3: cfg!(target_arch = "x86_64") && self.optimize && !self.native && !self.check,
        }
    }
}

/// An image for the CPU device: a shared object.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedObject(pub Vec<u8>);

impl std::fmt::Debug for SharedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedObject({} bytes)", self.0.len())
    }
}

/// The LLVM module of a lowered program as unoptimised text.
///
/// # Errors
/// [`Error::Invalid`] if the program uses a feature that the CPU device lacks; [`Error::Tool`] if
/// LLVM has no target for this machine.
pub fn llvm_text(module: &ir::Module, options: &CpuOptions) -> Result<String> {
    let machine = machine::host(options)?;
    let context = Context::create();
    let module = build_cpu_module(&context, module, &machine, &options.module_options())?;
    Ok(module.print_to_string().to_string())
}

/// The object file of a lowered program, linked with the inputs that are LLVM IR for this machine.
///
/// # Errors
/// As [`llvm_text`], and [`Error::Tool`] if LLVM refuses the module; [`Error::Invalid`] or
/// [`Error::Program`] if an input cannot be linked.
pub fn object(module: &ir::Module, options: &CpuOptions, inputs: &[LinkInput]) -> Result<Vec<u8>> {
    let machine = machine::host(options)?;
    let context = Context::create();
    let messages = Messages::of(&context);
    let ir = module;
    let module = build_cpu_module(&context, ir, &machine, &options.module_options())?;
    link_inputs(&module, ir, inputs, |linked, input| {
        check_linked_for_cpu(&input.name, linked, &input.bytes)
    })?;
    if !inputs.iter().any(|input| input.kind == InputKind::Ir) {
        return write(&module, &machine, options, &messages);
    }
    // Another compiler's module may use what LLVM's target lacks, over which LLVM ends the process.
    fatal::install();
    let bitcode = module.write_bitcode_to_memory().as_slice().to_vec();
    let written = || {
        let context = Context::create();
        let messages = Messages::of(&context);
        let buffer = MemoryBuffer::create_from_memory_range_copy(&bitcode, "module");
        let module = Module::parse_bitcode_from_buffer(&buffer, &context)
            .map_err(|message| refused("copying the module", message.to_string()))?;
        write(&module, &machine::host(options)?, options, &messages)
    };
    let work = || {
        written().map_err(|error| match error {
            Error::Tool { log, .. } => log,
            other => other.to_string(),
        })
    };
    match child::run(WRITING, Limits::Working, || {}, work)? {
        End::Done(made) => made.map_err(|log| refused(WRITING, log)),
        End::Died { how, said } => {
            let log = format!("LLVM ends over a module that is linked in ({how})\n{said}");
            Err(refused(WRITING, log))
        }
    }
}

const WRITING: &str = "writing an object file";

/// Optimises a module and compiles it to an object file.
fn write(
    module: &Module<'_>,
    machine: &TargetMachine,
    options: &CpuOptions,
    messages: &Messages<'_>,
) -> Result<Vec<u8>> {
    module.verify().map_err(|log| refused("verifying", log.to_string()))?;
    let pass_options = PassBuilderOptions::create();
    // clang enables this at -O3, but the C interface does not.
    pass_options.set_loop_slp_vectorization(!options.quick);
    pass_options.set_loop_vectorization(!options.quick);
    pass_options.set_loop_unrolling(!options.quick);
    let passes = match (options.optimize, options.quick) {
        (true, false) => "default<O3>",
        (true, true) => "default<O1>",
        (false, _) => "default<O0>",
    };
    module
        .run_passes(passes, machine, pass_options)
        .map_err(|message| refused("optimising", message.to_string()))?;
    let plain = match options.check && has_huge_block(module) {
        true => Some(machine::host(&CpuOptions { optimize: false, ..*options })?),
        false => None,
    };
    let object = plain
        .as_ref()
        .unwrap_or(machine)
        .write_to_memory_buffer(module, FileType::Object)
        .map_err(|message| refused(WRITING, message.to_string()))?;
    let errors = messages.take_errors();
    if !errors.is_empty() {
        return Err(refused(WRITING, errors.join("\n")));
    }
    Ok(object.as_slice().to_vec())
}

/// Whether a block is so long that LLVM's optimising code generator takes minutes for it: its register allocator goes through all
/// calls of a block for each value, and in checked images every access is a call. Beside these, better code would save little.
fn has_huge_block(module: &Module<'_>) -> bool {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    blocks.into_iter().any(|block| block.get_instructions().nth(HUGE_BLOCK).is_some())
}

/// The instructions of a huge block: about 2,000 accesses. For 5,000, LLVM 22 took three seconds.
const HUGE_BLOCK: usize = 10_000;

fn refused(operation: &str, log: String) -> Error {
    Error::Tool { tool: "LLVM", operation: operation.into(), log: log.trim().into() }
}
