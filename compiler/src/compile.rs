//! The driver: source to artifact, one function per arrow of the pipeline.
//!
//! ```text
//! load → check → ir → layout → launch → codegen → dialect → ptx → link → artifact
//! ```
//! A [`Session`] finds and loads the toolchain, libNVVM and nvJitLink once, for every program that it compiles. A
//! [`Checked`] program is independent of the target; every image starts from it.

mod modules;
mod options;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use gridlet_lang::arch::Dialect;
use gridlet_lang::diagnostics::{self, Diagnostic, ids};
use gridlet_lang::ir;
use gridlet_lang::launch::{self, LaunchChoice, LaunchOptions, LaunchStrategy, cdp};
use gridlet_lang::layout::{self, ParamLayout};
use gridlet_lang::load;
pub use gridlet_lang::program::{Checked, KernelName};
use gridlet_lang::source::SourceMap;
use inkwell::context::Context;

use crate::cache::{Cache, Entry, key::Key};
use crate::codegen;
use crate::cpu;
pub use crate::cpu::{CpuOptions, SharedObject};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::inputs;
use crate::inputs::InputKind;
pub use crate::inputs::LinkInput;
use crate::link::cubin::{KernelRecords, parameter_records};
use crate::link::lanes::Assembled;
use crate::link::{self, Cubin, LinkOptions, LinkOutput, NvJitLink, ptxas};
use crate::modules::{Own, check_linked, record_linked};
use crate::nvvm::legacy::LegacyOptions;
use crate::nvvm::{self, NvvmModule};
use crate::ptx::guard::Process;
use crate::ptx::libnvvm::LibNvvm;
use crate::ptx::{self, Ptx};
use crate::toolchain::{Component, LLVM_VERSION, Toolchain};
pub use options::{Backend, BuildOptions, DialectChoice};

/// Reads a program from disk: the given file, and every file that it uses, directly or indirectly.
///
/// # Errors
/// As [`gridlet_lang::load::load`].
pub fn load(path: &Path) -> Result<SourceMap> {
    Ok(load::load(&Disk, path)?)
}

/// Parses and checks a program, builds its IR and lays out its parameter buffers.
///
/// # Errors
/// [`Error::Program`] with every message if the program is wrong.
pub fn check(sources: SourceMap) -> Result<Checked> {
    Ok(gridlet_lang::program::check(sources)?)
}

/// As [`check`], with kernel instances in addition to those that the program launches: see
/// [`gridlet_lang::program::check_for`].
///
/// # Errors
/// As [`gridlet_lang::program::check_for`].
pub fn check_for(sources: SourceMap, wanted: &[KernelName]) -> Result<Checked> {
    Ok(gridlet_lang::program::check_for(sources, wanted)?)
}

/// The IR with launches lowered for an architecture.
///
/// # Errors
/// As [`launch::lower`], [`launch::check_shared`] and [`launch::check_locals`].
pub fn lower(program: &Checked, options: &BuildOptions) -> Result<ir::Module> {
    let launch_options = LaunchOptions::for_arch(options.strategy(program), options.arch)
        .with_count_launches(options.statistics);
    let lowered = program.lower(&launch_options)?;
    launch::check_shared(&program.module, &lowered, &launch_options)?;
    launch::check_locals(&program.module, &launch_options)?;
    Ok(lowered)
}

/// The NVVM IR in the dialect that the options select.
///
/// # Errors
/// Only internal ones.
pub fn nvvm(program: &Checked, options: &BuildOptions) -> Result<NvvmModule> {
    let context = Context::create();
    let module = llvm(program, &context, options)?;
    nvvm_text_with(&module, options)
}

/// The NVVM IR as LLVM bitcode, which is always in the modern dialect.
///
/// # Errors
/// Only internal ones.
pub fn bitcode(program: &Checked, options: &BuildOptions) -> Result<Vec<u8>> {
    let context = Context::create();
    let module = llvm(program, &context, options)?;
    Ok(nvvm::modern_bitcode(&module)?.bytes)
}

/// The IR with launches lowered for the CPU device.
///
/// # Errors
/// Only internal ones.
pub fn lower_for_cpu(program: &Checked, options: &CpuOptions) -> Result<ir::Module> {
    Ok(program.lower(&LaunchOptions::CPU.with_count_launches(options.statistics))?)
}

/// The module for the CPU as unoptimised LLVM text.
///
/// # Errors
/// [`Error::Invalid`] if the program uses a feature that the CPU device lacks.
pub fn cpu_llvm(program: &Checked, options: &CpuOptions) -> Result<String> {
    cpu::llvm_text(&lower_for_cpu(program, options)?, options)
}

/// The unlinked object file for the CPU.
///
/// # Errors
/// As [`cpu_llvm`]; [`Error::Tool`] if LLVM refuses the module.
pub fn cpu_object(program: &Checked, options: &CpuOptions) -> Result<Vec<u8>> {
    cpu::object(&lower_for_cpu(program, options)?, options, &[])
}

fn llvm<'ctx>(
    program: &Checked,
    context: &'ctx Context,
    options: &BuildOptions,
) -> Result<inkwell::module::Module<'ctx>> {
    let fast_math = fast_math(program, options).unwrap_or(false);
    llvm_of(&lower(program, options)?, context, &BuildOptions { fast_math, ..*options }, false)
}

/// Whether all kernels of a program compute with fast mathematics on GPUs, or none; `None` if some do.
fn fast_math(program: &Checked, options: &BuildOptions) -> Option<bool> {
    let defined = || program.module.kernels.iter().filter(|kernel| !kernel.is_extern());
    match (defined().any(|kernel| kernel.fast_math), defined().all(|kernel| kernel.fast_math)) {
        (false, _) => Some(options.fast_math),
        (true, true) => Some(true),
        (true, false) => options.fast_math.then_some(true),
    }
}

/// The LLVM module of lowered IR. `fast_apart`: see [`codegen::GpuModuleOptions`].
fn llvm_of<'ctx>(
    lowered: &ir::Module,
    context: &'ctx Context,
    options: &BuildOptions,
    fast_apart: bool,
) -> Result<inkwell::module::Module<'ctx>> {
    let gpu = codegen::GpuModuleOptions {
        arch: options.arch,
        fast_math: options.fast_math,
        fast_apart,
        debug_lines: options.debug_lines,
        optimize: options.optimize,
        byte_flags: options.backend == Backend::LibNvvm,
        version: true,
    };
    codegen::build_module_for(context, lowered, gpu)
}

/// Writes a module as NVVM IR in a dialect. In the legacy dialect, the device runtime's
/// declarations follow NVIDIA's documents, and of debug information the lines remain.
///
/// # Errors
/// As [`nvvm::legacy::write`]: LLVM 7 cannot express part of the module.
pub fn nvvm_text(module: &inkwell::module::Module<'_>, dialect: Dialect) -> Result<NvvmModule> {
    nvvm::text(module, dialect, &LegacyOptions::device_runtime().with_debug_lines(true))
}

/// As [`nvvm_text`], with variables where the options ask for them.
fn nvvm_text_with(
    module: &inkwell::module::Module<'_>,
    options: &BuildOptions,
) -> Result<NvvmModule> {
    let legacy = LegacyOptions::device_runtime().with_debug_lines(true);
    nvvm::text(module, options.dialect(), &legacy.with_debug_variables(options.debug_variables()))
}

/// A cubin with the output of the tools that made it. `cubin.0` is the file's bytes, as `gridlet build --emit cubin` writes them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Built {
    /// The PTX that was assembled: [`Session::ptx`], with a limit for the registers of the resident kernel, and with turns in the device
    /// runtime and calls in deep nests of branches where the machine code showed that they are needed.
    pub ptx: Ptx,
    /// The machine code.
    pub cubin: Cubin,
    /// Warnings of libNVVM and nvJitLink; usually empty.
    pub log: String,
}

/// The tools of one process, found once and loaded on first use.
pub struct Session {
    toolchain: Toolchain,
    inputs: Vec<LinkInput>,
    cache: Option<Cache>,
    /// The tools that made what came from the cache.
    recalled: Mutex<BTreeMap<String, String>>,
    libnvvm: OnceLock<LibNvvm>,
    nvjitlink: OnceLock<NvJitLink>,
    /// Set once ptxas has assembled a program.
    assembled: OnceLock<()>,
    /// The distinct warnings so far.
    said: Mutex<Vec<Diagnostic>>,
}

impl Session {
    /// A session with this machine's toolchain.
    pub fn new() -> Self {
        Session::with_toolchain(Toolchain::discover())
    }

    /// A session with a given toolchain.
    pub fn with_toolchain(toolchain: Toolchain) -> Self {
        Session {
            toolchain,
            inputs: vec![],
            cache: None,
            recalled: Mutex::default(),
            libnvvm: OnceLock::new(),
            nvjitlink: OnceLock::new(),
            assembled: OnceLock::new(),
            said: Mutex::default(),
        }
    }

    /// Adds modules to link with every program: they define the functions that programs declare as
    /// `extern fn`. Each is linked where it fits: LLVM IR according to its target triple, PTX and
    /// GPU machine code into cubins, C into images for the CPU, object files and archives into
    /// both.
    pub fn linking(mut self, inputs: Vec<LinkInput>) -> Self {
        self.inputs = inputs;
        self
    }

    /// Adds a module to those of [`Session::linking`].
    pub fn link(&mut self, input: LinkInput) {
        self.inputs.push(input);
    }

    /// Takes cubins and images for the CPU device from a cache, and adds those that it compiles. Those with warnings of tools
    /// are compiled each time, and so are images for the CPU device with modules in C or machine code.
    pub fn cached(mut self, cache: Option<Cache>) -> Self {
        self.cache = cache;
        self
    }

    /// The toolchain.
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// libNVVM, loaded on first use.
    ///
    /// # Errors
    /// [`Error::Missing`] if it is missing or too old.
    pub fn libnvvm(&self) -> Result<&LibNvvm> {
        once(&self.libnvvm, || LibNvvm::load(self.toolchain.libnvvm()?))
    }

    /// nvJitLink, loaded on first use.
    ///
    /// # Errors
    /// [`Error::Missing`] if it is missing or too old.
    pub fn nvjitlink(&self) -> Result<&NvJitLink> {
        once(&self.nvjitlink, || NvJitLink::load(self.toolchain.nvjitlink()?))
    }

    /// The warnings of NVIDIA's tools, and of their machine code, since the session began. Each appears once, however many images
    /// it came with. Places are in the sources of the program that was compiled.
    pub fn tool_warnings(&self) -> Vec<Diagnostic> {
        sorted(self.said.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// As [`Session::tool_warnings`], but forgets them, for a session that compiles one program after another.
    pub fn take_tool_warnings(&self) -> Vec<Diagnostic> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        sorted(std::mem::take(&mut *said))
    }

    /// Keeps the log of a tool as a warning.
    fn note(&self, tool: &'static str, log: &str) {
        let text = log.trim();
        if !text.is_empty() {
            let message = format!("{tool} says: {text}");
            self.warn(Diagnostic::general_warning(ids::TOOL_WARNING, message));
        }
    }

    fn warn(&self, warning: Diagnostic) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.contains(&warning) {
            said.push(warning);
        }
    }

    /// Names and versions of the tools used so far, sorted by name, for the manifest.
    pub fn versions(&self) -> Vec<(String, String)> {
        let libnvvm = self.libnvvm.get().map(|library| library.version().to_string());
        let nvjitlink = self.nvjitlink.get().map(|library| library.version().to_string());
        let toolkit =
            |part| self.toolchain.toolkit_version(part).map(|version| version.to_string());
        let cudadevrt = toolkit(Component::CudaDevRt);
        let ptxas = self.assembled.get().and_then(|()| toolkit(Component::Ptxas));
        let found = [
            ("gridlet", Some(env!("CARGO_PKG_VERSION").to_owned())),
            ("libcudadevrt", cudadevrt),
            ("libnvvm", libnvvm),
            ("llvm", Some(LLVM_VERSION.to_owned())),
            ("nvjitlink", nvjitlink),
            ("ptxas", ptxas),
        ];
        let found =
            found.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?)));
        let mut all = self.recalled.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(found);
        all.into_iter().collect()
    }

    /// The parts of a compilation from the cache, or else from `make`, which also tells whether the cache may keep them.
    fn recall<T>(
        &self,
        key: impl FnOnce() -> Option<Key>,
        read: impl FnOnce(Vec<Vec<u8>>) -> Option<T>,
        make: impl FnOnce() -> Result<T>,
        parts: impl FnOnce(&T) -> Option<Vec<Vec<u8>>>,
    ) -> Result<T> {
        let cached = self.cache.as_ref().and_then(|cache| Some((cache, key()?)));
        let Some((cache, key)) = cached else { return make() };
        if let Some(Entry { tools, parts }) = cache.get(&key)
            && let Some(value) = read(parts)
        {
            self.recalled.lock().unwrap_or_else(PoisonError::into_inner).extend(tools);
            return Ok(value);
        }
        let value = make()?;
        if let Some(parts) = parts(&value) {
            cache.put(&key, &Entry { tools: self.versions(), parts });
        }
        Ok(value)
    }

    /// Compiles a checked program to PTX, as the back end writes it. [`Built::ptx`] also has what only follows from machine code.
    ///
    /// # Errors
    /// [`Error::Missing`] without libNVVM, [`Error::Tool`] if a tool refuses the module.
    pub fn ptx(&self, program: &Checked, options: &BuildOptions) -> Result<(Ptx, String)> {
        self.ptx_of_lowered(program, &lower(program, options)?, options)
    }

    fn ptx_of_lowered(
        &self,
        program: &Checked,
        lowered: &ir::Module,
        options: &BuildOptions,
    ) -> Result<(Ptx, String)> {
        let compile = |fast_math, fast_apart| {
            let options = BuildOptions { fast_math, ..*options };
            let context = Context::create();
            let module = llvm_of(lowered, &context, &options, fast_apart)?;
            let by_libnvvm = options.uses_libnvvm();
            codegen::link_inputs(&module, &program.module, &self.inputs, |linked, input| {
                let (name, bytes) = (&input.name, &input.bytes);
                check_linked(name, linked, bytes, options.arch, by_libnvvm)?;
                record_linked(name, linked, bytes)
            })?;
            match self.inputs.iter().any(|input| input.kind == InputKind::Ir) {
                true => self.ptx_of(&module, &options),
                false => Ok(self.ptx_by(&module, &options, Process::This)?),
            }
        };
        if let Some(fast_math) = fast_math(program, options) {
            return compile(fast_math, false);
        }
        let (exact, fast) = std::thread::scope(|scope| {
            let fast = scope.spawn(|| compile(true, true));
            let exact = compile(false, true);
            (exact, fast.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let ((exact, log), (fast, _)) = (exact?, fast?);
        let ptx = ptx::splice::splice(&exact, &fast, &codegen::fast_functions(lowered)?)?;
        Ok((ptx, log))
    }

    /// Links PTX to a cubin, with CUDA's device runtime if `device_runtime` says so
    /// ([`Checked::needs_device_runtime`]), or if the PTX or a linked module calls it. PTX that needs neither it nor another module is assembled
    /// as a whole program, where the toolkit has ptxas, which also assembles other long PTX.
    ///
    /// # Errors
    /// [`Error::Missing`] without nvJitLink or libcudadevrt, [`Error::Tool`] with its log if
    /// assembling or linking fails.
    pub fn device_link(
        &self,
        ptx: &Ptx,
        device_runtime: bool,
        options: &BuildOptions,
    ) -> Result<(Cubin, String)> {
        let built = self.link_for(ptx.clone(), device_runtime, options, None, None)?;
        Ok((built.cubin, built.log))
    }

    /// As [`Session::device_link`], with places in `program` in warnings, and with a ptxas that may wait.
    fn link_for(
        &self,
        ptx: Ptx,
        device_runtime: bool,
        options: &BuildOptions,
        program: Option<&Checked>,
        waiting: Option<ptxas::Process>,
    ) -> Result<Built> {
        let waiting = Cell::new(waiting);
        let assembled = link::lanes::assemble(ptx, options.arch, options.optimize, |ptx| {
            let (cubin, log) = self.link_once(ptx, device_runtime, options, waiting.take())?;
            Ok(LinkOutput { cubin, log })
        })?;
        Ok(self.warned(assembled, program))
    }

    /// Warns of lanes that may be lost.
    fn warned(&self, assembled: Assembled, program: Option<&Checked>) -> Built {
        let Assembled { ptx, cubin, mut log, losing } = assembled;
        for name in losing {
            let warning = link::lanes::warning(&name, program);
            let nowhere = SourceMap::default();
            let sources = program.map_or(&nowhere, |program| &program.sources);
            log.push_str(&diagnostics::render(std::slice::from_ref(&warning), sources, false));
            self.warn(warning);
        }
        Built { ptx, cubin, log }
    }

    /// [`Session::device_link`] of this PTX.
    fn link_once(
        &self,
        ptx: &Ptx,
        device_runtime: bool,
        options: &BuildOptions,
        waiting: Option<ptxas::Process>,
    ) -> Result<(Cubin, String)> {
        let link_options = options.link_options(ptx);
        let links = self.links(device_runtime) || !ptxas::is_whole(ptx);
        let output = if links { ptxas::Output::Object } else { ptxas::Output::Cubin };
        let pays = !links || ptx.0.len() >= WORTH_A_PROCESS;
        let assemble = |path| {
            let waits = waiting.filter(|it| it.is_for(output, options.arch, &link_options));
            let start = || ptxas::Process::start(path, output, options.arch, &link_options);
            waits.map_or_else(start, Ok)?.assemble(ptx)
        };
        let object = self.assembler(links).filter(|_| pays).map(assemble).transpose()?;
        if let Some(LinkOutput { log, .. }) = &object {
            self.assembled.get_or_init(|| ());
            self.note("ptxas", log);
        }
        if !links && let Some(LinkOutput { cubin, log }) = object {
            return Ok((cubin, log));
        }
        let (program, assembled) = match &object {
            Some(LinkOutput { cubin, log }) => (link::Program::Object(cubin), log.as_str()),
            None => (link::Program::Ptx(ptx), ""),
        };
        // Machine code does not tell whether it launches; an archive that nothing calls adds nothing.
        let calls = cdp::symbols::declares_any(ptxas::extern_functions(ptx));
        let cudadevrt = match device_runtime || calls {
            true => Some(self.toolchain.linkable_cudadevrt()?),
            false => self.toolchain.linkable_cudadevrt().ok().filter(|_| self.links_machine_code()),
        };
        let library = self.nvjitlink()?;
        let linked = link::device_link(
            library,
            program,
            cudadevrt,
            &self.inputs,
            options.arch,
            &link_options,
        )?;
        self.note("nvJitLink", &linked.log);
        let log = format!("{assembled}\n{}", linked.log).trim().to_owned();
        Ok((linked.cubin, log))
    }

    /// ptxas, which is to assemble programs: it must be of the toolkit of libNVVM or a newer one, which knows the PTX that libNVVM
    /// writes. If nvJitLink links what it makes, that must be as new.
    fn assembler(&self, links: bool) -> Option<&Path> {
        let version = |component| self.toolchain.toolkit_version(component);
        let fits = version(Component::Ptxas) >= version(Component::LibNvvm)
            && (!links || version(Component::NvJitLink) >= version(Component::Ptxas));
        self.toolchain.path(Component::Ptxas).ok().filter(|_| fits)
    }

    /// ptxas, started for a program whose PTX it is going to assemble.
    fn waiting_assembler(
        &self,
        program: &Checked,
        device_runtime: bool,
        options: &BuildOptions,
    ) -> Option<ptxas::Process> {
        let links = self.links(device_runtime);
        let output = if links { ptxas::Output::Object } else { ptxas::Output::Cubin };
        let functions = &program.module.functions;
        let count: usize = functions.iter().map(|function| function.instructions.len()).sum();
        if links && count < LONG_PROGRAM || !options.optimize {
            return None;
        }
        let link_options = options.link_options(&Ptx(String::new()));
        ptxas::Process::start(self.assembler(links)?, output, options.arch, &link_options).ok()
    }

    /// Whether programs are linked with the device runtime or with modules.
    fn links(&self, device_runtime: bool) -> bool {
        device_runtime || self.links_machine_code()
    }

    /// Whether modules are linked in after code generation.
    pub(crate) fn links_machine_code(&self) -> bool {
        self.inputs.iter().any(LinkInput::is_for_device_link)
    }

    /// The limit for the registers of the resident kernel: compiles the program with the other strategy, in which each kernel
    /// is compiled alone. `None` without ptxas or without a resident kernel.
    fn register_limit(&self, program: &Checked, options: &BuildOptions) -> Result<Option<u32>> {
        let nests = launch::runs_resident(&program.module, options.strategy(program));
        if !options.optimize || !nests.contains(&true) {
            return Ok(None);
        }
        let Some(ptxas) = self.assembler(false).filter(|_| !self.links(false)) else {
            return Ok(None);
        };
        let lowered = lower(program, options)?;
        let Some(resident) = &lowered.resident else { return Ok(None) };
        let entry = lowered.kernels.iter().find(|kernel| kernel.name == launch::resident::ENTRY);
        let bound = entry.and_then(|entry| Some(entry.launch_bounds?.max_threads));
        let launch = LaunchStrategy::Cdp.into();
        let alone = BuildOptions { launch, statistics: false, ..*options };
        // Without limits for shared memory, which the resident kernel has in another way, and which only a link looks at.
        let unlimited =
            program.lower(&LaunchOptions::for_arch(LaunchStrategy::Cdp, options.arch))?;
        let (ptx, _) = self.ptx_of_lowered(program, &unlimited, &alone)?;
        let assembled = LinkOptions::default();
        let object = ptxas::compile(ptxas, &ptx, options.arch, &assembled)?.cubin;
        let loops = ir::graph::has_loops(&program.module);
        let waits = ir::graph::orders_grids(&program.module);
        let few = launch::resident::may_lack_registers(loops, waits);
        let launches = ir::graph::launched(&program.module);
        let may_lack = !ir::graph::launches_in_levels(&launches)
            && few.zip(&nests).any(|(few, nests)| few && *nests);
        let kernels = program.module.kernels.iter().zip(launches).zip(&nests);
        let named: Vec<_> = kernels
            .filter(|(_, nests)| **nests)
            .map(|((kernel, launched), _)| {
                (ir::symbol::external(&kernel.name), !launched.is_empty())
            })
            .collect();
        // A block of the resident kernel is as large as one that the host launches, too.
        let own = program.module.kernels.iter().zip(&nests).filter(|(_, nests)| **nests);
        let own = own.filter_map(|(kernel, _)| Some(kernel.launch_bounds?.max_threads)).max();
        let threads = resident.max_block_threads.max(own.unwrap_or(0));
        link::registers::limit(&object, &named, may_lack, threads, bound).map(Some)
    }

    /// Compiles and links a checked program, and compares the cubin's own parameter records with
    /// the layout pass.
    ///
    /// # Errors
    /// As [`Session::ptx`] and [`Session::device_link`]; [`Error::Program`] if no linked module
    /// defines an `extern fn` that is called or an `extern kernel` that is launched, or if the definition differs from the
    /// declaration;
    /// [`Error::Internal`] if a record differs.
    pub fn cubin(&self, program: &Checked, options: &BuildOptions) -> Result<Built> {
        self.recall(
            || Key::of_cubin(program, options, &self.inputs, &self.toolchain),
            |parts| {
                let [ptx, cubin] = parts.try_into().ok()?;
                let ptx = Ptx(String::from_utf8(ptx).ok()?);
                Some(Built { ptx, cubin: Cubin(cubin), log: String::new() })
            },
            || self.make_cubin(program, options),
            |built| {
                let parts = || vec![built.ptx.0.clone().into_bytes(), built.cubin.0.clone()];
                built.log.trim().is_empty().then(parts)
            },
        )
    }

    fn make_cubin(&self, program: &Checked, options: &BuildOptions) -> Result<Built> {
        let strategy = options.strategy(program);
        let device_runtime = program.needs_device_runtime(strategy);
        let (ptx, mut log, waiting) = std::thread::scope(|scope| {
            let limit = scope.spawn(|| self.register_limit(program, options));
            // Meanwhile, in the order in which they are needed: the system loads one library at a time. If loading or starting
            // fails, what uses a library or ptxas does so again and reports the error.
            let links = self.links(device_runtime) || self.assembler(false).is_none();
            let links = links && self.nvjitlink.get().is_none();
            let compiles = options.uses_libnvvm() && self.libnvvm.get().is_none();
            let prepare = move || {
                _ = compiles.then(|| self.libnvvm());
                let waiting = self.waiting_assembler(program, device_runtime, options);
                _ = links.then(|| self.nvjitlink());
                waiting
            };
            let prepared = std::thread::Builder::new().spawn_scoped(scope, prepare);
            let (mut ptx, log) = self.ptx(program, options)?;
            let limit = limit.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            if let Some(limit) = limit {
                let entry = ir::symbol::external(launch::resident::ENTRY);
                link::registers::set_limit(&mut ptx, &entry, limit);
            }
            let waiting = prepared.ok().and_then(|prepared| prepared.join().ok().flatten());
            Result::Ok((ptx, log, waiting))
        })?;
        inputs::externs::check_ptx(&program.module, &ptx.0, &self.inputs)?;
        let explain = |error| inputs::externs::explain(error, &program.module, &self.inputs, true);
        let built =
            self.link_for(ptx, device_runtime, options, Some(program), waiting).map_err(explain)?;
        let records = parameter_records(&built.cubin)?;
        check_records(program, &records, options)?;
        link::extern_kernels::check(program, &records, &self.inputs)?;
        log.push_str(&built.log);
        Ok(Built { log, ..built })
    }

    /// Compiles a checked program to a relocatable object for a GPU, which `nvcc -dlink` and other device linkers link with
    /// CUDA code that launches its kernels. Its own kernels launch through CUDA's device runtime.
    ///
    /// # Errors
    /// As [`Session::ptx`]; [`Error::Missing`] without ptxas; [`Error::Invalid`] if the options ask for statistics, which add
    /// parameters to kernels, or for another launch strategy; [`Error::Internal`] if a parameter record differs.
    pub fn object(&self, program: &Checked, options: &BuildOptions) -> Result<Cubin> {
        let refused = match options.launch {
            _ if options.statistics => {
                Some("statistics, because only Gridlet's runtime launches such kernels")
            }
            LaunchChoice::Fixed(LaunchStrategy::Resident) => Some(
                "resident launches, because it is linked with other CUDA code; use `--launch cdp`",
            ),
            LaunchChoice::Auto | LaunchChoice::Fixed(LaunchStrategy::Cdp) => None,
        };
        if let Some(why) = refused {
            return Err(Error::Invalid(format!("an object for a GPU has no {why}")));
        }
        let options = options.with_launch(LaunchStrategy::Cdp.into());
        let mut lowered = lower(program, &options)?;
        launch::mark_linked(&mut lowered);
        let (ptx, _) = self.ptx_of_lowered(program, &lowered, &options)?;
        let object = self.object_for(&ptx, &options, Some(program))?;
        check_records(program, &parameter_records(&object)?, &options)?;
        Ok(object)
    }

    /// Assembles PTX to a relocatable object.
    ///
    /// # Errors
    /// [`Error::Missing`] without ptxas, [`Error::Tool`] if it refuses the PTX.
    pub fn assemble_object(&self, ptx: &Ptx, options: &BuildOptions) -> Result<Cubin> {
        self.object_for(ptx, options, None)
    }

    fn object_for(
        &self,
        ptx: &Ptx,
        options: &BuildOptions,
        program: Option<&Checked>,
    ) -> Result<Cubin> {
        let ptxas = self.toolchain.path(Component::Ptxas)?;
        let ptx = ptxas::share_added_symbols(ptx);
        let assembled = link::lanes::assemble(ptx, options.arch, options.optimize, |ptx| {
            ptxas::compile(ptxas, ptx, options.arch, &options.link_options(ptx))
        })?;
        self.assembled.get_or_init(|| ());
        self.note("ptxas", &assembled.log);
        Ok(self.warned(assembled, program).cubin)
    }

    /// Checks, compiles and links a module of another compiler, and compares the cubin's parameter records with the layouts.
    ///
    /// # Errors
    /// As [`Own::check`], [`Session::ptx_of`] and [`Session::device_link`].
    pub fn own_cubin(&self, own: &Own<'_>, options: &BuildOptions) -> Result<Cubin> {
        own.check_for(options.arch, options.uses_libnvvm())?;
        let compiled = self.ptx_of(own.module(), options);
        let linked = compiled
            .and_then(|(ptx, _)| self.device_link(&ptx, own.uses_device_runtime(), options));
        let (cubin, _) = linked.map_err(|error| own.explain(error))?;
        link::check_parameters(&cubin, own.parameter_buffers())?;
        Ok(cubin)
    }

    /// Compiles and links a checked program to an image for the CPU device.
    ///
    /// # Errors
    /// As [`cpu_object`]; [`Error::Missing`] if a module that is linked in needs a C compiler and there is none.
    pub fn cpu_image(&self, program: &Checked, options: &CpuOptions) -> Result<SharedObject> {
        self.recall(
            || Key::of_image(program, options, &self.inputs),
            |parts| <[_; 1]>::try_from(parts).ok().map(|[image]| SharedObject(image)),
            || self.make_image(program, options),
            |image| Some(vec![image.0.clone()]),
        )
    }

    fn make_image(&self, program: &Checked, options: &CpuOptions) -> Result<SharedObject> {
        let object = cpu::object(&lower_for_cpu(program, options)?, options, &self.inputs)?;
        cpu::link(&object, &self.inputs)
            .map_err(|error| inputs::externs::explain(error, &program.module, &self.inputs, false))
    }
}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}

/// The bytes of PTX from which on ptxas assembles it sooner, several functions at a time, than nvJitLink, which does so one after another
/// but in this process (docs/measurements.md, "Compile time").
const WORTH_A_PROCESS: usize = 20_000;

/// The instructions of a program with launches whose PTX has about as many bytes. If it has fewer, a ptxas was started for nothing.
const LONG_PROGRAM: usize = 180;

/// Compares the parameter records of an image with the layout pass, except those of `extern kernel`s.
fn check_records(
    program: &Checked,
    records: &[KernelRecords],
    options: &BuildOptions,
) -> Result<()> {
    let others: Vec<&str> = program.module.extern_kernels().map(|kernel| &*kernel.name).collect();
    let is_own = |layout: &&ParamLayout| !others.contains(&layout.kernel.as_str());
    if options.statistics || launch::adds_kernels(&program.module, options.strategy(program)) {
        // Both add kernels to those of the program.
        let layouts = layout::compute_layouts(&lower(program, options)?)?;
        return link::check_records(records, layouts.kernels.iter().filter(is_own));
    }
    link::check_records(records, program.parameter_buffers().filter(is_own))
}

/// Warnings in the order of their messages: images that are built at the same time give them in any order.
fn sorted(mut warnings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    warnings.sort_by(|one, other| one.message.cmp(&other.message));
    warnings
}

/// `OnceLock::get_or_try_init`, which is not stable yet: a failure is not cached.
fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::Search;
    use crate::toolchain::tests::Disk;

    #[test]
    fn ptxas_knows_the_ptx_of_libnvvm_and_the_linker_knows_its_cubins() {
        let assembles = |version: &str| {
            let disk = Disk::new();
            disk.toolkit(
                "linker",
                "13.0",
                &["nvvm/lib64/libnvvm.so.4", "lib64/libnvJitLink.so.13"],
            );
            disk.toolkit("assembler", version, &["bin/ptxas"]);
            let roots = ["linker", "assembler"].map(|root| disk.path(root));
            let session = Session::with_toolchain(Toolchain::search(Search::from_roots(roots)));
            [false, true].map(|links| session.assembler(links).is_some())
        };
        assert_eq!(assembles("12.8"), [false, false]);
        assert_eq!(assembles("13.0"), [true, true]);
        assert_eq!(assembles("13.5"), [true, false]);
    }

    #[test]
    fn tool_messages_become_warnings_once() {
        let session = Session::new();
        session.note("libNVVM", "  \n");
        assert_eq!(session.tool_warnings(), []);
        session.note("libNVVM", "stack is large\n");
        session.note("libNVVM", "stack is large");
        session.note("nvJitLink", "stack is large");
        let warnings = session.tool_warnings();
        let texts: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(texts, ["libNVVM says: stack is large", "nvJitLink says: stack is large"]);
        assert!(warnings.iter().all(|w| w.id == ids::TOOL_WARNING && w.labels.is_empty()));
        let shown = gridlet_lang::diagnostics::render(&warnings[..1], &SourceMap::default(), false);
        assert_eq!(shown.trim_end(), "warning[tool-warning]: libNVVM says: stack is large");
    }
}
