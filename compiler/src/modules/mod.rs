//! LLVM modules of other compilers: NVVM IR as text or bitcode, or a module built through inkwell.
//!
//! [`Own`] reads a module, checks what no tool checks, and describes its kernels, so that
//! [`crate::artifact::build_own`] packs it into a bundle as if it were a program of the language. Where the module uses
//! only what the language knows too, it also becomes an image for the CPU device.
//!
//! ```no_run
//! use gridlet::artifact;
//! use gridlet::arch::CudaArch;
//! use gridlet::compile::{BuildOptions, CpuOptions, Session};
//! use gridlet::inkwell::context::Context;
//! use gridlet::modules::Own;
//!
//! # fn main() -> gridlet::Result<()> {
//! let context = Context::create();
//! let own = Own::read(&context, "k.ll", b"define ptx_kernel void @k(ptr %p) { ret void }")?;
//! let targets = [CudaArch::DEFAULT.into()];
//! let (cuda, cpu) = (BuildOptions::default(), CpuOptions::default());
//! let bundle = artifact::build_own(&Session::new(), &own, &targets, &cuda, &cpu)?.to_bytes();
//! # Ok(()) }
//! ```

mod bounds;
mod buffers;
mod check;
mod complete;
mod constructs;
mod declare;
mod depth;
mod effects;
mod empty;
mod files;
mod held;
mod ignored;
mod import;
mod indirect;
mod initials;
mod intrinsics;
mod kernels;
mod known;
mod launch;
mod layout;
mod library;
mod lines;
mod local;
mod logs;
mod lost;
mod null_checks;
mod pointees;
mod positions;
mod reads;
mod record;
mod runtime;
mod shared;
mod sizes;
mod turns;
mod uses;
mod variables;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use gridlet_lang::arch::CudaArch;
use gridlet_lang::diagnostics::{Diagnostic, ids};
use gridlet_lang::ir;
use gridlet_lang::launch::cdp::symbols;
use gridlet_lang::layout::{Layouts, ParamLayout, ParamSlot, buffer_layout};
use gridlet_lang::program::Checked;
use gridlet_lang::source::{FileId, Known, SourceMap, Span};
use inkwell::context::Context;
use inkwell::module::Module;

use crate::disk;
use crate::error::{Error, Mistake, Place, Result};
use crate::inputs::cycles;
pub use crate::inputs::read;
use crate::nvvm::legacy::llvm;
use crate::nvvm::{self, short_pointers};
pub use declare::{NewKernel, new_kernel, thread_index};
pub use launch::{Launch, LaunchStream, Launches, mark_kernel};
pub use library::Library;
pub(crate) use library::{check_linked, check_linked_for_cpu, record_linked};
pub use lines::SourceLines;
use positions::{Mentions, Positions};

/// The address space of device memory.
const GLOBAL: u16 = 1;

/// A module of another compiler whose kernels are known.
pub struct Own<'ctx> {
    name: String,
    module: Module<'ctx>,
    program: Checked,
    /// Why there can be no image for the CPU device.
    missing: Option<(String, Option<Span>)>,
    /// By kernel, the kernels that it launches.
    launches: Vec<Vec<String>>,
    uses_device_runtime: bool,
}

impl<'ctx> Own<'ctx> {
    /// Reads NVVM IR in either dialect, as text or bitcode. `name` is its file's name. Launches record their failures as in
    /// [`Own::of`].
    ///
    /// # Errors
    /// As [`read()`] and [`Own::of`].
    pub fn read(context: &'ctx Context, name: &str, bytes: &[u8]) -> Result<Self> {
        let module = read(context, name, bytes)?;
        let text = library::text(&module, bytes);
        Own::new(module, name, SourceMap::single(name, text))
    }

    /// Takes a module that was built through inkwell. A module that launches gets the record of lost launches, if it has
    /// none, and the launches whose status it drops record their failures.
    ///
    /// # Errors
    /// [`Error::Invalid`] if LLVM's verifier refuses the module, it has no kernel, or a kernel has a parameter that a
    /// launch cannot pass.
    pub fn of(module: Module<'ctx>) -> Result<Self> {
        let name = module.get_name().to_string_lossy().into_owned();
        // Before LLVM prints it, which recurses over types.
        library::refuse(&name, &SourceMap::default(), depth::check(llvm::Module::new(&module)))?;
        // The module is often called by the file that it was made from, whose lines are not those of the text.
        let path = Path::new(if name.is_empty() { "module" } else { &name });
        let shown = path.with_extension("ll").to_string_lossy().into_owned();
        let text = module.print_to_string().to_string();
        Own::new(module, &name, SourceMap::single(shown, text))
    }

    /// `sources` has the module's text.
    fn new(module: Module<'ctx>, name: &str, mut sources: SourceMap) -> Result<Self> {
        let view = llvm::Module::new(&module);
        library::refuse(name, &sources, depth::check(view))?;
        short_pointers::settle(&module);
        library::refuse(name, &sources, check::reserved(view))?;
        // LLVM's verifier would not end.
        if let Some(file) = sources.files().first()
            && let Some(line) = cycles::line_of_cycle(&file.text)
        {
            let place = Place { file: file.name.clone(), line: line as u32, column: None };
            return Err(Error::Mistakes(vec![Mistake::new(
                name,
                Some(place),
                cycles::CYCLE.into(),
            )]));
        }
        nvvm::verify(&module, |name| name.starts_with("llvm.nvvm."))
            .map_err(|error| Error::Invalid(format!("{name}: {error}")))?;
        let functions = module.get_functions();
        let uses_device_runtime = symbols::declares_any(
            functions.map(|function| function.get_name().to_string_lossy().into_owned()),
        );
        if uses_device_runtime {
            lost::locate(&module, &sources);
            // A module that reads the record names it; one with Gridlet's functions writes it, too.
            if !complete::is_complete(&module) {
                record::open(&module);
            }
            let without_turns = turns::missing(&module);
            let lacks_turns = !without_turns.is_empty();
            let needs_record = lost::record(&module, &sources, false)?;
            if lacks_turns {
                turns::add(&module, &without_turns)?;
            }
            if needs_record || lacks_turns {
                complete::add_functions(&module, lacks_turns)?;
            }
            record::define(&module);
        }
        let view = llvm::Module::new(&module);
        Mentions::of(view).add_to(&mut sources, files::all(&module));
        let sources = Arc::new(sources);
        library::refuse(name, &sources, check::kernels(view))?;
        let imported = import::import(view, Arc::clone(&sources))?;
        let launches = runtime::launches(view);
        let mut missing = imported.missing.map(|(why, span)| (why, Some(span)));
        if let Err(error) = ir::verify::verify(&imported.module) {
            // The module is somebody's: what cannot be expressed in the IR is no bug.
            let why = match error {
                gridlet_lang::error::Error::Internal { message, .. } => message,
                other => other.to_string(),
            };
            missing.get_or_insert((why, None));
        }
        let layouts = Layouts { kernels: layouts(&imported.module) };
        let warnings = unused_buffers(view, &sources);
        let program = Checked { sources, module: imported.module, layouts, warnings };
        let name = name.to_owned();
        let own = Own { name, program, missing, launches, uses_device_runtime, module };
        own.compare_layouts()?;
        Ok(own)
    }

    /// Looks for the source files that the module's debug information names, so that findings of `gridlet run --check` quote
    /// their lines, also from a bundle. Relative names and folders in the debug information (`directory: "."`) start from
    /// `folder`; the command line gives that of the module's file. Files that were changed after `until` do not count, because
    /// their lines may be others.
    pub fn find_sources(&mut self, folder: &Path, until: Option<SystemTime>) {
        let mut sources = (*self.program.sources).clone();
        for (id, file) in (0..).map(FileId).zip(self.program.sources.files()) {
            let of = file.folder.as_ref().filter(|_| file.known == Known::Lines);
            let path = of.map(|of| folder.join(of).join(&file.name));
            if let Some(text) = path.and_then(|path| disk::source(&path, until)) {
                sources.set_original(id, text);
            }
        }
        self.program.sources = Arc::new(sources);
        self.program.module.sources = Arc::clone(&self.program.sources);
    }

    /// What may be wrong with the module on a GPU: functions that it uses and does not define, unless another module that is
    /// linked with it does, and the warnings of [`Own::program`], which hold on every device: parameter buffers that it asks for and
    /// never launches.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let positions = Positions::of(&self.program.sources);
        let warning = |function| {
            let symbol = kernels::name(function);
            let span = positions.line_of(&symbol).unwrap_or(Span::NOWHERE);
            let message = format!("the module does not define the function `{symbol}`");
            let hint = "give a module that defines it to `gridlet build` with `--link`";
            Diagnostic::warning(ids::UNDEFINED_FUNCTION, span, message).hint(hint)
        };
        let module = llvm::Module::new(&self.module);
        let undefined = check::undefined(module).into_iter().map(warning);
        undefined.chain(self.program.warnings.iter().cloned()).collect()
    }

    /// Turns an error of a compiler or a linker about functions that the module calls into one that names their lines.
    pub(crate) fn explain(&self, error: Error) -> Error {
        library::explain(&self.name, &self.module, &self.program.sources, error)
    }

    /// The module.
    pub fn module(&self) -> &Module<'ctx> {
        &self.module
    }

    /// The module as a program: its kernels, their parameter buffers, and its IR for the CPU device. Functions that the
    /// CPU device cannot run end in a trap: see [`Own::cpu_program`].
    pub fn program(&self) -> &Checked {
        &self.program
    }

    /// The program for an image for the CPU device.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with the first construct that the CPU device lacks, or with all that [`Own::check`] finds in the device
    /// runtime's signatures, in parameter buffers and in variables.
    pub fn cpu_program(&self) -> Result<&Checked> {
        let sources = &self.program.sources;
        library::refuse(self.name(), sources, check::for_cpu(llvm::Module::new(&self.module)))?;
        let Some((why, span)) = &self.missing else { return Ok(&self.program) };
        let place = span.filter(|span| *span != Span::NOWHERE).map(|span| Place {
            file: sources.name(span).to_owned(),
            line: sources.line(span),
            column: None,
        });
        let message = format!("the CPU device cannot run this module: {why}");
        Err(Error::Mistakes(vec![Mistake::new(self.name(), place, message)]))
    }

    /// The parameter buffer of every kernel, in the module's order.
    pub fn parameter_buffers(&self) -> impl Iterator<Item = &ParamLayout> {
        self.program.parameter_buffers()
    }

    /// By kernel, the names of the kernels that it launches, directly or in functions that it calls.
    pub fn launches(&self) -> &[Vec<String>] {
        &self.launches
    }

    /// Whether it declares functions of CUDA's device runtime.
    pub fn uses_device_runtime(&self) -> bool {
        self.uses_device_runtime
    }

    /// Checks what no tool checks, or says less clearly: the target, the signatures and names of the device runtime's functions,
    /// the parameter buffers, and intrinsics that libNVVM lacks.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with all findings.
    pub fn check(&self, arch: CudaArch) -> Result<()> {
        self.check_for(arch, true)
    }

    /// As [`Own::check`]; `by_libnvvm` is false for LLVM's own back end, which has more intrinsics.
    pub(crate) fn check_for(&self, arch: CudaArch, by_libnvvm: bool) -> Result<()> {
        library::check(&self.name, &self.module, &self.program.sources, arch, by_libnvvm)
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// Compares the layouts with those of LLVM's types.
    fn compare_layouts(&self) -> Result<()> {
        let kernels = kernels::kernels(llvm::Module::new(&self.module));
        for (kernel, layout) in kernels.into_iter().zip(self.parameter_buffers()) {
            let mut end = 0;
            for (parameter, slot) in kernels::parameters(kernel).iter().zip(&layout.slots) {
                let fits = parameter.extent().is_some_and(|extent| {
                    let offset = u64::next_multiple_of(end, extent.alignment.max(1));
                    end = offset + extent.size;
                    offset == u64::from(slot.offset)
                        && extent.size <= u64::from(slot.size)
                        && extent.alignment == u64::from(slot.alignment)
                });
                if !fits {
                    let message = format!(
                        "kernel `{}`: a launch cannot pass the parameter `{}` of type `{}`",
                        layout.kernel,
                        parameter.name,
                        parameter.ty.print()
                    );
                    let finding = check::Finding { at: Some(kernel), message };
                    return library::refuse(self.name(), &self.program.sources, [finding]);
                }
                end = u64::from(slot.offset + slot.size);
            }
        }
        Ok(())
    }
}

/// An error about the module, with the module's name before it.
pub fn at(name: &str, error: Error) -> Error {
    match error {
        Error::Invalid(message) => Error::Invalid(format!("{name}: {message}")),
        Error::Tool { tool, operation, log } => {
            Error::Tool { tool, operation: format!("{name}: {operation}"), log }
        }
        other => other,
    }
}

/// A warning for each parameter buffer that no launch uses.
fn unused_buffers(module: llvm::Module<'_>, sources: &SourceMap) -> Vec<Diagnostic> {
    let unused = buffers::unused(&runtime::declared(module));
    if unused.is_empty() {
        return vec![];
    }
    let positions = Positions::of(sources);
    let warning = |call| {
        let span = positions.instruction(call).unwrap_or(Span::NOWHERE);
        let message = "the parameter buffer that is asked for here is never launched";
        let hint = "launch it with `cudaLaunchDeviceV2`, or do not ask for it";
        Diagnostic::warning(ids::UNUSED_BUFFER, span, message).hint(hint)
    };
    unused.into_iter().map(warning).collect()
}

/// The layouts of all kernels; the host may launch one with parameters of more than 4,096 bytes.
fn layouts(module: &ir::Module) -> Vec<ParamLayout> {
    let layout = |kernel: &ir::Kernel| {
        let types = kernel.parameters.iter().map(|parameter| &parameter.ty);
        let buffer = buffer_layout(types, &module.structs);
        let slots =
            kernel.parameters.iter().zip(&buffer.slots).map(|(parameter, slot)| ParamSlot {
                name: parameter.name.clone(),
                ty: parameter.ty.clone(),
                offset: slot.offset as u32,
                size: slot.size as u32,
                alignment: slot.alignment as u32,
            });
        let slots = slots.collect();
        ParamLayout { kernel: kernel.name.clone(), slots, size: buffer.size as u32 }
    };
    module.kernels.iter().map(layout).collect()
}
