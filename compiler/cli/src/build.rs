//! `gridlet build`

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gridlet::Error;
use gridlet::arch::{CudaArch, Dialect};
use gridlet::compile::{
    Backend, BuildOptions, CpuOptions, DialectChoice, KernelName, LinkInput, Session,
};
use gridlet::diagnostics::ids;
use gridlet::disk;
use gridlet::emit::{self, Input, Kind};
use gridlet::inkwell::context::Context;
use gridlet::ir::Module;
use gridlet::launch::{self, LaunchChoice, LaunchStrategy};
use gridlet::modules::Library;
use gridlet::target::{self, Target};

use super::input::{self, FileKind};
use crate::files;
use crate::output::{print, write_out};
use crate::report::{Failure, Outcome, Reporter};

/// Options of `gridlet build`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program: a .grid file, Gridlet's IR as .gir, or NVVM IR as .ll or .bc
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write: a file for one output, a folder for several, - for standard output
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Target architectures: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120; cpu for this
    /// machine's processor
    #[arg(long, value_name = "ARCH", value_delimiter = ',', default_value = "sm_90")]
    arch: Vec<Target>,
    /// A kernel with const parameters to compile for these constants, as `k::<8>`, in addition to
    /// the instances that the program launches; may be repeated
    #[arg(long = "instance", value_name = "KERNEL")]
    instances: Vec<KernelName>,
    /// Outputs to write, separated by commas
    #[arg(long, value_parser = kinds(), value_delimiter = ',', default_value = "bundle", value_name = "KIND")]
    emit: Vec<Kind>,
    /// Instrument CPU images: report every access and loop iteration, for `gridlet run --check`
    #[arg(long)]
    check: bool,
    /// Let CPU images use every feature of this machine's processor; they then run only on
    /// processors that have them too
    #[arg(long)]
    native: bool,
    /// Instrument kernels: record nesting depth and the SMs used, for `gridlet run --stats`
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    code: CodeOptions,
}

impl Options {
    /// CPU options for images that are kept.
    fn cpu_options(&self) -> CpuOptions {
        self.code
            .cpu_options()
            .with_check(self.check)
            .with_native(self.native)
            .with_statistics(self.stats)
    }

    /// Options for a GPU.
    fn cuda_options(&self, arch: CudaArch) -> BuildOptions {
        self.code.build_options(arch).with_statistics(self.stats)
    }
}

/// Code generation options, shared with `run`.
#[derive(clap::Args)]
pub(crate) struct CodeOptions {
    /// A module that defines functions declared in the program as `extern fn` or `extern kernel`: .ll, .bc, .ptx,
    /// .cubin, .fatbin, .o, .a or .c; may be repeated
    #[arg(long = "link", value_name = "FILE")]
    links: Vec<PathBuf>,
    /// How kernels launch kernels on GPUs; auto decides by the program. A bundle keeps the strategy it was built with
    #[arg(long, value_parser = strategies(), default_value_t, value_name = "STRATEGY")]
    launch: LaunchChoice,
    /// The dialect of NVVM IR; auto picks the one that libNVVM expects for the architecture
    #[arg(long, value_enum, default_value = "auto")]
    dialect: DialectName,
    /// The PTX back end; auto is libnvvm
    #[arg(long, value_enum, default_value = "auto")]
    backend: BackendName,
    /// Optimisation level; 1 compiles images for the CPU faster than 3, and GPUs have only 0 and 3 [default: 3]
    #[arg(short = 'O', value_enum, value_name = "LEVEL")]
    level: Option<Level>,
    /// Compute with f32 on GPUs as nvcc's -use_fast_math does: subnormal numbers are zero; division, sqrt, sin, cos,
    /// tan, exp, log, log2, log10, pow and tanh are approximate
    #[arg(long)]
    fast_math: bool,
    /// Emit line tables, for debuggers and profilers, and variables: for GPUs only with -O 0
    #[arg(short = 'g')]
    debug_lines: bool,
}

/// The values of `--launch`.
fn strategies() -> impl TypedValueParser<Value = LaunchChoice> {
    let value = |choice: LaunchChoice| {
        PossibleValue::new(choice.name()).help(match choice {
            LaunchChoice::Auto => "The strategy that suits the program",
            LaunchChoice::Fixed(LaunchStrategy::Cdp) => {
                "Through the device runtime (CUDA Dynamic Parallelism)"
            }
            LaunchChoice::Fixed(LaunchStrategy::Resident) => {
                "By a kernel that stays on the SMs and runs all grids"
            }
        })
    };
    PossibleValuesParser::new(LaunchChoice::all().map(value))
        .try_map(|name| name.parse::<LaunchChoice>())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DialectName {
    Auto,
    Legacy,
    Modern,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackendName {
    Auto,
    Libnvvm,
    Nvptx,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    #[value(name = "0")]
    None,
    #[value(name = "1")]
    Quick,
    #[value(name = "3")]
    Full,
}

impl CodeOptions {
    /// Refuses modules that only a `.grid` program can be linked with.
    pub(crate) fn refuse_links_to_nvvm(&self) -> Outcome {
        let is_source = |path: &&PathBuf| {
            matches!(path.extension().and_then(|ending| ending.to_str()), Some("ll" | "bc" | "c"))
        };
        match self.links.iter().find(is_source) {
            None => Ok(()),
            Some(path) => Err(Failure::call(format!(
                "--link {}: NVVM IR links only with PTX and machine code; merge LLVM modules with `llvm-link`",
                path.display()
            ))),
        }
    }

    /// A session that links the modules given with `--link`.
    pub(crate) fn session(&self) -> Result<Session, Failure> {
        let inputs = self.links.iter().map(|path| LinkInput::read(path));
        Ok(Session::new().linking(inputs.collect::<gridlet::Result<_>>()?))
    }

    /// Converts to the library's options for a GPU.
    pub(crate) fn build_options(&self, arch: CudaArch) -> BuildOptions {
        BuildOptions::for_arch(arch)
            .with_launch(self.launch)
            .with_dialect(match self.dialect {
                DialectName::Auto => DialectChoice::Auto,
                DialectName::Legacy => DialectChoice::Fixed(Dialect::Legacy),
                DialectName::Modern => DialectChoice::Fixed(Dialect::Modern),
            })
            .with_backend(match self.backend {
                BackendName::Auto | BackendName::Libnvvm => Backend::LibNvvm,
                BackendName::Nvptx => Backend::Nvptx,
            })
            .with_optimize(self.optimizes())
            .with_statistics(false)
            .with_fast_math(self.fast_math)
            .with_debug_lines(self.debug_lines)
    }

    fn optimizes(&self) -> bool {
        self.level != Some(Level::None)
    }

    /// The options that were given and have an effect only on CPU images.
    pub(crate) fn only_for_cpu(&self) -> Vec<&'static str> {
        given([("-O 1", self.level == Some(Level::Quick))])
    }

    /// The options that were given and have an effect only on images for GPUs.
    pub(crate) fn only_for_gpu(&self) -> Vec<&'static str> {
        given([
            ("--dialect", self.dialect != DialectName::Auto),
            ("--backend", self.backend != BackendName::Auto),
            ("--fast-math", self.fast_math),
        ])
    }

    /// The options that were given and have an effect only on programs that are not built yet.
    pub(crate) fn only_for_sources(&self) -> Vec<&'static str> {
        let mut names = given([
            ("-O", self.level.is_some()),
            ("--launch", self.launch != LaunchChoice::Auto),
            ("--link", !self.links.is_empty()),
            ("-g", self.debug_lines),
        ]);
        names.extend(self.only_for_gpu());
        names
    }

    /// How kernels launch kernels.
    pub(crate) fn launch(&self) -> LaunchChoice {
        self.launch
    }

    /// Converts to the library's options for the CPU device, for an image that runs at once.
    pub(crate) fn cpu_options(&self) -> CpuOptions {
        CpuOptions::default()
            .with_optimize(self.optimizes())
            .with_quick(self.level == Some(Level::Quick))
            .with_debug_lines(self.debug_lines)
    }
}

/// The names of the options that were given.
fn given<const N: usize>(options: [(&'static str, bool); N]) -> Vec<&'static str> {
    options.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect()
}

/// Refuses options that were given and have no effect.
pub(crate) fn refuse(names: &[&str], why: &str) -> Outcome {
    let verb = match names {
        [] => return Ok(()),
        [_] => "has",
        _ => "have",
    };
    Err(Failure::call(format!("{} {verb} no effect: {why}", names.join(", "))))
}

/// The values of `--emit`.
fn kinds() -> impl TypedValueParser<Value = Kind> {
    let value = |kind: Kind| {
        PossibleValue::new(kind.name()).help(match kind {
            Kind::Ir => "The IR with lowered launches, as text",
            Kind::Layout => "The parameter buffers, as JSON",
            Kind::Nvvm => "NVVM IR, as text; for cpu, LLVM IR",
            Kind::Bitcode => "NVVM IR, as LLVM bitcode (modern dialect)",
            Kind::Ptx => "PTX as the back end writes it",
            Kind::Cubin => "Machine code, device-linked",
            Kind::Object => "Object file, before linking; for GPUs, relocatable device code",
            Kind::SharedObject => "Machine code, linked (cpu)",
            Kind::Manifest => "The manifest, as JSON",
            Kind::HostObject => {
                "The bundle as an object file for C and C++ programs on this machine"
            }
            Kind::Header => "The header of host-object",
            _ => "Manifest and images in one file",
        })
    };
    PossibleValuesParser::new(Kind::ALL.map(value)).try_map(|name| name.parse::<Kind>())
}

/// The ending of an output's file.
fn ending(kind: Kind, target: Target) -> &'static str {
    match kind {
        // nvcc takes device code by this ending, and `.o` as an object for the host.
        Kind::Object if target != Target::Cpu => "object.cubin",
        Kind::Ir => "gir",
        Kind::Layout => "layout.json",
        Kind::Nvvm => "ll",
        Kind::Bitcode => "bc",
        Kind::Ptx => "ptx",
        Kind::Cubin => "cubin",
        Kind::Object => "o",
        Kind::SharedObject => "so",
        Kind::Manifest => "json",
        Kind::HostObject => "bundle.o",
        Kind::Header => "h",
        _ => "gridlet",
    }
}

/// An output in memory, not written yet.
struct Output {
    name: PathBuf,
    bytes: Vec<u8>,
    is_text: bool,
}

/// Builds all outputs, then writes them: a failed build writes nothing.
pub(crate) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    let kind = FileKind::of(&options.file);
    refuse_ineffective(kind, options)?;
    let session = options.code.session()?;
    let mut sources = Arc::default();
    let outputs = match kind {
        FileKind::Source => {
            let program = input::checked(&options.file, &options.instances, reporter)?;
            sources = Arc::clone(&program.sources);
            if options.arch.iter().any(|target| matches!(target, Target::Cuda(_))) {
                note_strategy(&program.module, options.code.launch, reporter);
            }
            // Errors found while linking concern the source too.
            each_output(&session, Input::Program(&program), options)
                .map_err(|error| reporter.program(error, &program.sources))?
        }
        FileKind::Nvvm => nvvm_outputs(&session, options, reporter)?,
        FileKind::Artifact => {
            return Err(Failure::call(format!(
                "{}: is already built; `gridlet run` runs it directly",
                options.file.display()
            )));
        }
    };
    reporter.diagnostics(&session.tool_warnings(), &sources);
    write(outputs, options)
}

/// Says why kernels are launched by the device runtime where that was not asked for: hardly anybody looks into the manifest.
pub(crate) fn note_strategy(module: &Module, choice: LaunchChoice, reporter: &Reporter) {
    if choice != LaunchChoice::Auto || !launch::launches(module) {
        return;
    }
    if let (LaunchStrategy::Cdp, reason) = choice.resolve(module) {
        reporter.note(ids::NOT_RESIDENT, &format!("launches are not resident, because {reason}"));
    }
}

/// Refuses options that have no effect on the outputs.
fn refuse_ineffective(kind: FileKind, options: &Options) -> Outcome {
    let only_for_cpu = given([("--check", options.check), ("--native", options.native)]);
    let only_for_cpu = [only_for_cpu, options.code.only_for_cpu()].concat();
    match kind {
        FileKind::Source => {
            let for_cpu = options.arch.contains(&Target::Cpu);
            let for_gpu = options.arch.iter().any(|target| matches!(target, Target::Cuda(_)));
            if !for_cpu {
                refuse(&only_for_cpu, "only CPU images can be built that way; add `--arch cpu`")?;
            }
            if !for_gpu {
                refuse(&options.code.only_for_gpu(), "`--arch` names no GPU")?;
            }
            if for_cpu && options.code.fast_math {
                return Err(Failure::call(
                    "--fast-math: the CPU device computes exactly, so its results would differ from the GPU's; build its image \
                     by itself",
                ));
            }
            refuse_dialect(options)
        }
        FileKind::Nvvm => {
            let more = given([
                ("--instance", !options.instances.is_empty()),
                ("--stats", options.stats),
                ("--launch", options.code.launch != LaunchChoice::Auto),
                ("--fast-math", options.code.fast_math),
            ]);
            refuse(&more, "NVVM IR is compiled as it is")?;
            options.code.refuse_links_to_nvvm()?;
            if !options.arch.contains(&Target::Cpu) {
                refuse(&only_for_cpu, "only CPU images can be built that way; add `--arch cpu`")?;
            }
            refuse_dialect(options)
        }
        FileKind::Artifact => Ok(()),
    }
}

/// Refuses a dialect that libNVVM does not read for an architecture, if it has to.
fn refuse_dialect(options: &Options) -> Outcome {
    let code = &options.code;
    let needs_libnvvm = |kind: &Kind| {
        matches!(
            kind,
            Kind::Ptx
                | Kind::Cubin
                | Kind::Object
                | Kind::Manifest
                | Kind::Bundle
                | Kind::HostObject
        )
    };
    if code.backend == BackendName::Nvptx || !options.emit.iter().any(needs_libnvvm) {
        return Ok(());
    }
    for target in &options.arch {
        let Target::Cuda(arch) = target else { continue };
        let (given, right) = match (code.dialect, arch.dialect()) {
            (DialectName::Legacy, Dialect::Modern) => ("legacy", "modern"),
            (DialectName::Modern, Dialect::Legacy) => ("modern", "legacy"),
            _ => continue,
        };
        return Err(Failure::call(format!(
            "--dialect {given}: libNVVM requires the {right} dialect for {arch}; `--emit nvvm` writes either"
        )));
    }
    Ok(())
}

fn name(stem: &Path, kind: Kind, target: Target, arch: Option<Target>) -> PathBuf {
    let (stem, ending) = (stem.display(), ending(kind, target));
    match arch {
        Some(arch) => format!("{stem}.{arch}.{ending}").into(),
        None => format!("{stem}.{ending}").into(),
    }
}

/// Every requested output of a module of NVVM IR.
fn nvvm_outputs(
    session: &Session,
    options: &Options,
    reporter: &Reporter,
) -> Result<Vec<Output>, Failure> {
    let path = &options.file;
    let context = Context::create();
    let needs_kernels = options.emit.iter().any(|kind| kind.needs_kernels());
    if needs_kernels || options.arch.contains(&Target::Cpu) {
        let own = input::module(&context, path)?;
        let made = each_output(session, Input::Own(&own), options)?;
        reporter.diagnostics(&own.program().warnings, &own.program().sources);
        return Ok(made);
    }
    // A library has no kernels.
    let bytes = disk::bytes(path)?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let library = Library::read(&context, &name, &bytes).map_err(Error::in_nvvm_ir)?;
    Ok(each_output(session, Input::Library(&library), options)?)
}

/// Makes each requested output, in the order of `--emit`, then of `--arch`.
fn each_output(
    session: &Session,
    input: Input<'_, '_>,
    options: &Options,
) -> gridlet::Result<Vec<Output>> {
    let stem = input::stem(&options.file);
    let targets = target::distinct(&options.arch);
    let several = targets.len() > 1;
    let (cuda, cpu) = (options.cuda_options(CudaArch::DEFAULT), options.cpu_options());
    let mut outputs = Vec::new();
    for &kind in &options.emit {
        let mut add = |bytes, target: Target, shown: Option<Target>| {
            let name = name(&stem, kind, target, shown);
            outputs.push(Output { name, bytes, is_text: kind.is_text() });
        };
        if kind.per_target() {
            let all = emit::emit_each(session, input, kind, &targets, &cuda, &cpu)?;
            for (bytes, target) in all.into_iter().zip(&targets) {
                add(bytes, *target, several.then_some(*target));
            }
        } else {
            let bytes = emit::emit(session, input, kind, &targets, &cuda, &cpu)?;
            add(bytes, targets.first().copied().unwrap_or(Target::Cpu), None);
        }
    }
    Ok(outputs)
}

fn write(outputs: Vec<Output>, options: &Options) -> Outcome {
    let paths: Vec<PathBuf> = match (outputs.as_slice(), options.output.as_deref()) {
        ([only], None) if only.is_text => return print(&String::from_utf8_lossy(&only.bytes)),
        ([only], Some(path)) if path == Path::new("-") => {
            return write_out(|out| out.write_all(&only.bytes));
        }
        (_, Some(path)) if path == Path::new("-") => {
            return Err(Failure::call("-o -: standard output takes one output"));
        }
        ([_], Some(path)) if !path.is_dir() => vec![path.into()],
        (several, path) => {
            let folder = path.unwrap_or(Path::new("."));
            if folder.exists() && !folder.is_dir() {
                return Err(Failure::call(format!(
                    "{}: is a file; several outputs need a folder",
                    folder.display()
                )));
            }
            fs::create_dir_all(folder)
                .map_err(|source| Error::Io { path: folder.into(), source })?;
            several.iter().map(|output| folder.join(&output.name)).collect()
        }
    };
    for path in &paths {
        refuse_inputs(path, options)?;
    }
    let bytes = outputs.iter().map(|output| output.bytes.as_slice());
    files::write_all(&paths.into_iter().zip(bytes).collect::<Vec<_>>())
}

/// Refuses to overwrite an input with an output.
fn refuse_inputs(path: &Path, options: &Options) -> Outcome {
    let Ok(identity) = fs::canonicalize(path) else { return Ok(()) };
    let mut inputs = options.code.links.iter().chain([&options.file]);
    if inputs.any(|input| fs::canonicalize(input).is_ok_and(|input| input == identity)) {
        return Err(Failure::call(format!(
            "{}: is an input; name another file with -o",
            path.display()
        )));
    }
    if path.extension().is_some_and(|ending| ending == "grid") {
        return Err(Failure::call(format!(
            "{}: already exists, and .grid files are sources; name another file with -o",
            path.display()
        )));
    }
    Ok(())
}
