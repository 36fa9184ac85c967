//! `gridlet build`

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gridlet::arch::{CudaArch, Dialect};
use gridlet::compile::{
    self, Backend, BuildOptions, Checked, CpuOptions, DialectChoice, KernelName, LinkInput, Session,
};
use gridlet::diagnostics::ids;
use gridlet::inkwell::context::Context;
use gridlet::launch::{LaunchChoice, LaunchStrategy};
use gridlet::modules::Own;
use gridlet::source::SourceMap;
use gridlet::target::Target;
use gridlet::{Error, artifact, ir, modules, nvvm};

use super::input::{self, FileKind};
use crate::output::{print, write_out};
use crate::report::{Failure, Outcome, Reporter};
use crate::{files, layout, status};

/// Options of `gridlet build`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program: a .grid file, or NVVM IR as .ll or .bc
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
    #[arg(long, value_enum, value_delimiter = ',', default_value = "bundle", value_name = "KIND")]
    emit: Vec<Emit>,
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
        CpuOptions {
            check: self.check,
            native: self.native,
            statistics: self.stats,
            ..self.code.cpu_options()
        }
    }

    /// Options for a GPU.
    fn cuda_options(&self, arch: CudaArch) -> BuildOptions {
        self.code.build_options(arch).with_statistics(self.stats)
    }
}

/// Code generation options, shared with `run`.
#[derive(clap::Args)]
pub(crate) struct CodeOptions {
    /// A module that defines functions declared in the program as `extern fn`: .ll, .bc, .ptx,
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
    /// Emit line tables in CPU images, for debuggers
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
        BuildOptions {
            arch,
            launch: self.launch,
            dialect: match self.dialect {
                DialectName::Auto => DialectChoice::Auto,
                DialectName::Legacy => DialectChoice::Fixed(Dialect::Legacy),
                DialectName::Modern => DialectChoice::Fixed(Dialect::Modern),
            },
            backend: match self.backend {
                BackendName::Auto | BackendName::Libnvvm => Backend::LibNvvm,
                BackendName::Nvptx => Backend::Nvptx,
            },
            optimize: self.optimizes(),
            statistics: false,
            fast_math: self.fast_math,
        }
    }

    fn optimizes(&self) -> bool {
        self.level != Some(Level::None)
    }

    /// The options that were given and have an effect only on CPU images.
    pub(crate) fn only_for_cpu(&self) -> Vec<&'static str> {
        given([("-g", self.debug_lines), ("-O 1", self.level == Some(Level::Quick))])
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
        CpuOptions {
            optimize: self.optimizes(),
            quick: self.level == Some(Level::Quick),
            debug_lines: self.debug_lines,
            ..CpuOptions::default()
        }
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

/// An output of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The IR with lowered launches, as text
    Ir,
    /// The parameter buffers, as JSON
    Layout,
    /// NVVM IR, as text; for cpu, LLVM IR
    Nvvm,
    /// NVVM IR, as LLVM bitcode (modern dialect)
    Bitcode,
    /// PTX, before device linking
    Ptx,
    /// Machine code, device-linked
    Cubin,
    /// Object file, before linking (cpu)
    Object,
    /// Machine code, linked (cpu)
    SharedObject,
    /// The manifest, as JSON
    Manifest,
    /// Manifest and images in one file
    Bundle,
}

impl Emit {
    fn ending(self) -> &'static str {
        match self {
            Emit::Ir => "gir",
            Emit::Layout => "layout.json",
            Emit::Nvvm => "ll",
            Emit::Bitcode => "bc",
            Emit::Ptx => "ptx",
            Emit::Cubin => "cubin",
            Emit::Object => "o",
            Emit::SharedObject => "so",
            Emit::Manifest => "json",
            Emit::Bundle => "gridlet",
        }
    }

    /// Whether each architecture has its own file.
    fn per_arch(self) -> bool {
        !matches!(self, Emit::Layout | Emit::Manifest | Emit::Bundle)
    }

    fn is_text(self) -> bool {
        matches!(self, Emit::Ir | Emit::Layout | Emit::Nvvm | Emit::Ptx | Emit::Manifest)
    }

    /// The name on the command line.
    fn value(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
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
    let outputs = match kind {
        FileKind::Source => {
            let program = input::checked(&options.file, &options.instances, reporter)?;
            source_outputs(&session, &program, options, reporter)?
        }
        FileKind::Nvvm => nvvm_outputs(&session, options)?,
        FileKind::Artifact => {
            return Err(Failure::call(format!(
                "{}: is already built; `gridlet run` runs it directly",
                options.file.display()
            )));
        }
    };
    reporter.diagnostics(&session.tool_warnings(), &SourceMap::default());
    write(outputs, options)
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
    let needs_libnvvm =
        |emit: &Emit| matches!(emit, Emit::Ptx | Emit::Cubin | Emit::Manifest | Emit::Bundle);
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

fn name(stem: &Path, emit: Emit, arch: Option<Target>) -> PathBuf {
    let stem = stem.display();
    match arch {
        Some(arch) => format!("{stem}.{arch}.{}", emit.ending()).into(),
        None => format!("{stem}.{}", emit.ending()).into(),
    }
}

/// Every requested output of a source program, in the order of `--emit`, then of `--arch`.
fn source_outputs(
    session: &Session,
    program: &Checked,
    options: &Options,
    reporter: &Reporter,
) -> Result<Vec<Output>, Failure> {
    // Errors found while linking concern the source too.
    let shown = |error: Error| reporter.program(error, &program.sources);
    let stem = input::stem(&options.file);
    let several = options.arch.len() > 1;
    let mut outputs = Vec::new();
    for &emit in &options.emit {
        if emit.per_arch() {
            for &target in &options.arch {
                let bytes = match target {
                    Target::Cuda(arch) => {
                        let build = options.cuda_options(arch);
                        cuda_output(session, program, emit, &build, &shown)?
                    }
                    Target::Cpu => {
                        cpu_output(session, program, emit, &options.cpu_options(), &shown)?
                    }
                };
                let name = name(&stem, emit, several.then_some(target));
                outputs.push(Output { name, bytes, is_text: emit.is_text() });
            }
            continue;
        }
        // The manifest holds the images' hashes, so the images are built first.
        let artifact = || {
            let (cuda, cpu) = (CudaArch::DEFAULT, options.cpu_options());
            let cuda = options.cuda_options(cuda);
            artifact::build_for(session, program, &options.arch, &cuda, &cpu).map_err(shown)
        };
        let bytes = match emit {
            Emit::Layout => {
                let buffers: Vec<_> = program.parameter_buffers().collect();
                json_bytes(&layout::to_json(&buffers, &program.module.structs))?
            }
            Emit::Manifest => json_bytes(artifact()?.manifest())?,
            _ => artifact()?.to_bytes()?,
        };
        outputs.push(Output { name: name(&stem, emit, None), bytes, is_text: emit.is_text() });
    }
    Ok(outputs)
}

/// An output for a GPU.
fn cuda_output(
    session: &Session,
    program: &Checked,
    emit: Emit,
    build: &BuildOptions,
    shown: &dyn Fn(Error) -> Failure,
) -> Result<Vec<u8>, Failure> {
    Ok(match emit {
        Emit::Ir => ir::print::print(&compile::lower(program, build)?).into_bytes(),
        Emit::Nvvm => compile::nvvm(program, build)?.bytes,
        Emit::Bitcode => compile::bitcode(program, build)?,
        Emit::Ptx => session.ptx(program, build).map_err(shown)?.0.0.into_bytes(),
        Emit::Cubin => session.cubin(program, build).map_err(shown)?.cubin.0,
        _ => return Err(wrong_target(emit, build.arch.into())),
    })
}

/// An output for the CPU device.
fn cpu_output(
    session: &Session,
    program: &Checked,
    emit: Emit,
    build: &CpuOptions,
    shown: &dyn Fn(Error) -> Failure,
) -> Result<Vec<u8>, Failure> {
    Ok(match emit {
        Emit::Ir => ir::print::print(&compile::lower_for_cpu(program, build)?).into_bytes(),
        Emit::Nvvm => compile::cpu_llvm(program, build)?.into_bytes(),
        Emit::Object => compile::cpu_object(program, build)?,
        Emit::SharedObject => session.cpu_image(program, build).map_err(shown)?.0,
        _ => return Err(wrong_target(emit, Target::Cpu)),
    })
}

fn wrong_target(emit: Emit, target: Target) -> Failure {
    let kinds = match target {
        Target::Cuda(_) => "ir, nvvm, bitcode, ptx and cubin",
        Target::Cpu => "ir, nvvm, object and shared-object",
    };
    Failure::call(format!("--arch {target} gives {kinds}, not `{}`", emit.value()))
}

fn json_bytes(value: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Failure::new(status::INTERNAL, ids::INTERNAL_ERROR, error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Every requested output of a module of NVVM IR.
fn nvvm_outputs(session: &Session, options: &Options) -> Result<Vec<Output>, Failure> {
    let path = &options.file;
    let context = Context::create();
    let needs_kernels =
        |emit: &Emit| !matches!(emit, Emit::Nvvm | Emit::Bitcode | Emit::Ptx | Emit::Cubin);
    let is_program = options.emit.iter().any(needs_kernels) || options.arch.contains(&Target::Cpu);
    if is_program {
        return own_outputs(session, &input::module(&context, path)?, options);
    }
    // A library has no kernels.
    let bytes = fs::read(path).map_err(|source| Error::Io { path: path.clone(), source })?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let module = modules::read(&context, &name, &bytes).map_err(input::foreign)?;
    each_output(options, |emit, target| {
        let Target::Cuda(arch) = target else { return Err(wrong_target(emit, target)) };
        let build = options.code.build_options(arch);
        let ptx = || {
            modules::check(&module, arch)?;
            session.ptx_of(&module, &build)
        };
        let made = match emit {
            Emit::Nvvm => compile::nvvm_text(&module, build.dialect()).map(|nvvm| nvvm.bytes),
            Emit::Bitcode => nvvm::modern_bitcode(&module).map(|nvvm| nvvm.bytes),
            Emit::Ptx => ptx().map(|(ptx, _)| ptx.0.into_bytes()),
            _ => ptx().and_then(|(ptx, _)| {
                session.device_link(&ptx, false, &build).map(|(cubin, _)| cubin.0)
            }),
        };
        made.map_err(|error| input::foreign(modules::at(&name, error)))
    })
}

/// Every requested output of a module with kernels.
fn own_outputs(
    session: &Session,
    own: &Own<'_>,
    options: &Options,
) -> Result<Vec<Output>, Failure> {
    let artifact = || {
        let (cuda, cpu) = (options.cuda_options(CudaArch::DEFAULT), options.cpu_options());
        artifact::build_own(session, own, &options.arch, &cuda, &cpu).map_err(input::foreign)
    };
    each_output(options, |emit, target| {
        let build = |arch| options.code.build_options(arch);
        let cpu = options.cpu_options();
        let made = match (emit, target) {
            (Emit::Layout, _) => {
                let buffers: Vec<_> = own.parameter_buffers().collect();
                return json_bytes(&layout::to_json(&buffers, &own.program().module.structs));
            }
            (Emit::Manifest, _) => return json_bytes(artifact()?.manifest()),
            (Emit::Bundle, _) => return Ok(artifact()?.to_bytes()?),
            (Emit::Nvvm, Target::Cuda(arch)) => {
                compile::nvvm_text(own.module(), build(arch).dialect()).map(|nvvm| nvvm.bytes)
            }
            (Emit::Bitcode, Target::Cuda(_)) => {
                nvvm::modern_bitcode(own.module()).map(|nvvm| nvvm.bytes)
            }
            (Emit::Ptx, Target::Cuda(arch)) => own
                .check(arch)
                .and_then(|()| session.ptx_of(own.module(), &build(arch)))
                .map(|(ptx, _)| ptx.0.into_bytes()),
            (Emit::Cubin, Target::Cuda(arch)) => {
                session.own_cubin(own, &build(arch)).map(|cubin| cubin.0)
            }
            (Emit::Ir, Target::Cpu) => own
                .cpu_program()
                .and_then(|program| compile::lower_for_cpu(program, &cpu))
                .map(|module| ir::print::print(&module).into_bytes()),
            (Emit::Nvvm, Target::Cpu) => own
                .cpu_program()
                .and_then(|program| compile::cpu_llvm(program, &cpu))
                .map(String::into_bytes),
            (Emit::Object, Target::Cpu) => {
                own.cpu_program().and_then(|program| compile::cpu_object(program, &cpu))
            }
            (Emit::SharedObject, Target::Cpu) => own
                .cpu_program()
                .and_then(|program| session.cpu_image(program, &cpu))
                .map(|image| image.0),
            (Emit::Ir, Target::Cuda(_)) => {
                return Err(Failure::call(
                    "NVVM IR has no `ir` for GPUs, because it is compiled as it is; `--arch cpu` shows what the CPU \
                     device runs",
                ));
            }
            _ => return Err(wrong_target(emit, target)),
        };
        made.map_err(input::foreign)
    })
}

/// Makes each requested output, in the order of `--emit`, then of `--arch`.
fn each_output(
    options: &Options,
    make: impl Fn(Emit, Target) -> Result<Vec<u8>, Failure>,
) -> Result<Vec<Output>, Failure> {
    let stem = input::stem(&options.file);
    let several = options.arch.len() > 1;
    let mut outputs = Vec::new();
    for &emit in &options.emit {
        let targets = if emit.per_arch() { &options.arch[..] } else { &options.arch[..1] };
        for &target in targets {
            let bytes = make(emit, target)?;
            let shown = (emit.per_arch() && several).then_some(target);
            outputs.push(Output { name: name(&stem, emit, shown), bytes, is_text: emit.is_text() });
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
