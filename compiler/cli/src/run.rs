//! `gridlet run`

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::cache::Cache;
use gridlet::compile::{Checked, KernelName};
use gridlet::diagnostics::ids;
use gridlet::inkwell::context::Context;
use gridlet::launch::{LaunchChoice, LaunchStrategy};
use gridlet::modules::Own;
use gridlet::source::SourceMap;
use gridlet::target::Target;
use gridlet_runtime::manifest::{Kernel, Manifest, Type};
use gridlet_runtime::{
    Arg, Artifact, Confinement, CpuConfig, Device, DeviceKind, DeviceMemory, DeviceSelector, Dim3,
    Event, GreenContext, LaunchConfig, LaunchPool, LostLaunches, Program, SmGranularity,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::arguments::{self, ArgumentPlan, BufferPlan};
use super::build::{CodeOptions, note_strategy, refuse};
use super::input::{self, FileKind};
use crate::output::{self, print_json, write_out};
use crate::report::{Failure, Outcome, Reporter};
use crate::{quotes, statistics, status, value};

/// Elements that `--print NAME` shows when no count is given.
const DEFAULT_PRINTED: usize = 16;

/// Options of `gridlet run`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program: a .grid file, Gridlet's IR as .gir, NVVM IR as .ll or .bc, or a bundle written by `gridlet build`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The kernel to launch; with constants, as `k::<8>`, if it has const parameters
    #[arg(long, value_name = "K")]
    kernel: KernelName,
    /// Blocks in the grid
    #[arg(long, value_name = "X[,Y[,Z]]")]
    grid: Extent,
    /// Threads per block
    #[arg(long, value_name = "X[,Y[,Z]]")]
    block: Extent,
    /// Dynamic shared memory per block, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    /// An argument, in kernel order: 7, -2.5, true, [1024], [1024]=iota, [1024]=fill:V,
    /// [1024]=random:SEED, @file.bin, null, {1.5, {2, 3}} for a struct, a vector or an array
    #[arg(long = "arg", value_name = "A", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Print the first elements of a pointer parameter after the run
    #[arg(long, value_name = "NAME[:COUNT]")]
    print: Vec<String>,
    /// The device; auto is the first GPU, or the CPU if there is none
    #[arg(long, default_value = "auto", value_name = "auto|cuda[:N]|cpu")]
    device: DeviceSelector,
    /// Detect invalid accesses, races and barriers that not all threads reach (CPU only)
    #[arg(long)]
    check: bool,
    /// Permute the order of threads, blocks and grids (CPU only)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run in a green context of at least this many SMs (on the CPU: worker threads)
    #[arg(long, value_name = "N")]
    sms: Option<u32>,
    /// Maximum number of pending device-side launches [default: 2,048]
    #[arg(long, value_name = "N")]
    pending_launches: Option<u64>,
    /// Device memory for the grids that kernels launch, with the launch strategy resident [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    launch_memory: Option<u64>,
    /// Show how many launches the kernels make, how deep they nest, and which SMs run them
    #[arg(long)]
    stats: bool,
    /// Write JSON to standard output, and what kernels print to standard error
    #[arg(long)]
    json: bool,
    /// Time limit of the run
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    timeout: f64,
    #[command(flatten)]
    code: CodeOptions,
}

/// `X[,Y[,Z]]`.
#[derive(Clone, Copy)]
struct Extent(Dim3);

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<u32> = text
            .split(',')
            .map(|part| {
                part.trim()
                    .parse()
                    .map_err(|_| format!("`{part}` is not a number from 0 to 4294967295"))
            })
            .collect::<Result<_, _>>()?;
        match parts[..] {
            [x] => Ok(Extent(Dim3::new(x, 1, 1))),
            [x, y] => Ok(Extent(Dim3::new(x, y, 1))),
            [x, y, z] => Ok(Extent(Dim3::new(x, y, z))),
            _ => Err("give one, two or three numbers: X[,Y[,Z]]".into()),
        }
    }
}

/// Parses a time in seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("give a number of seconds above 0 and up to 1000000".into()),
    }
}

/// The program to run: source, NVVM IR or an artifact.
enum Input<'ctx> {
    Source(Box<Checked>),
    Own(Box<Own<'ctx>>),
    Artifact(Artifact),
}

/// A buffer on the device and its element type.
struct Bound {
    plan: BufferPlan,
    memory: DeviceMemory,
}

/// Runs a kernel. Every error of the command line is found before a device is touched.
pub(crate) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    if options.json {
        output::reserve()?;
    }
    refuse_ineffective(options)?;
    let context = Context::create();
    let input = match FileKind::of(&options.file) {
        FileKind::Source => {
            let wanted = std::slice::from_ref(&options.kernel);
            Input::Source(Box::new(input::checked(&options.file, wanted, reporter)?))
        }
        FileKind::Artifact => Input::Artifact(Artifact::open(&options.file)?),
        FileKind::Nvvm => {
            let own = input::module(&context, &options.file)?;
            reporter.diagnostics(&own.program().warnings, &own.program().sources);
            Input::Own(Box::new(own))
        }
    };
    let manifest = match &input {
        Input::Source(program) => artifact::describe(program, options.code.launch()),
        Input::Own(own) => artifact::describe_own(own),
        Input::Artifact(artifact) => artifact.manifest().clone(),
    };
    let kernel = find_kernel(&manifest, &options.kernel.to_string())?;
    let plans = parse_arguments(kernel, &manifest, &options.arguments)?;
    let printed = parse_prints(&options.print, &plans)?;

    let sources = match &input {
        Input::Source(program) => Some(Arc::clone(&program.sources)),
        Input::Own(own) => Some(Arc::clone(&own.program().sources)),
        Input::Artifact(artifact) => {
            let is_quoted = options.check;
            is_quoted.then(|| Arc::new(quotes::of_bundle(artifact.manifest(), &options.file)))
        }
    };
    let device = open(options)?;
    let session = options.code.session()?.cached(Cache::of_user());
    let shown = |error, program: &Checked| reporter.program(error, &program.sources);
    let cpu = options.code.cpu_options().with_check(options.check).with_statistics(options.stats);
    let cuda = |target| match target {
        Target::Cuda(arch) => options.code.build_options(arch).with_statistics(options.stats),
        // Only the manifest tells of options for GPUs.
        _ => options.code.build_options(CudaArch::DEFAULT),
    };
    let artifact = match input {
        Input::Artifact(artifact) => artifact,
        Input::Source(program) => {
            let target = target(&device)?;
            if matches!(target, Target::Cuda(_)) {
                note_strategy(&program.module, options.code.launch(), reporter);
            }
            artifact::build_for(&session, &program, &[target], &cuda(target), &cpu)
                .map_err(|error| shown(error, &program))?
        }
        Input::Own(own) => {
            let target = target(&device)?;
            artifact::build_own(&session, &own, &[target], &cuda(target), &cpu)
                .map_err(input::foreign)?
        }
    };
    let nowhere = SourceMap::default();
    reporter.diagnostics(&session.tool_warnings(), sources.as_deref().unwrap_or(&nowhere));
    // Before the first kernel, at which the driver sizes the pool.
    if let Some(launches) = options.pending_launches {
        device.set_pending_launch_limit(launches)?;
    }
    if let Some(bytes) = options.launch_memory {
        device.set_launch_memory(bytes);
    }
    execute(options, reporter, sources.as_deref(), &device, &artifact, plans, &printed)
}

/// Refuses options that have no effect on the run. Which of those for one kind of device have an effect is unknown if
/// the device is chosen automatically.
fn refuse_ineffective(options: &Options) -> Outcome {
    if FileKind::of(&options.file) == FileKind::Artifact {
        let why =
            format!("{} is already built; give options to `gridlet build`", options.file.display());
        return refuse(&options.code.only_for_sources(), &why);
    }
    if FileKind::of(&options.file) == FileKind::Nvvm {
        let is_given = options.code.launch() != LaunchChoice::Auto;
        let given: &[&str] = if is_given { &["--launch"] } else { &[] };
        refuse(given, "NVVM IR is compiled as it is")?;
        options.code.refuse_links_to_nvvm()?;
        refuse(if options.stats { &["--stats"] } else { &[] }, "NVVM IR is compiled as it is")?;
    }
    match options.device {
        DeviceSelector::Cuda(_) => refuse(&options.code.only_for_cpu(), "the device is a GPU"),
        DeviceSelector::Cpu => refuse(&options.code.only_for_gpu(), "the device is the CPU"),
        DeviceSelector::Auto => Ok(()),
    }
}

/// The target of images for a device.
fn target(device: &Device) -> Result<Target, Failure> {
    if device.info().kind == DeviceKind::Cpu {
        return Ok(Target::Cpu);
    }
    let capability = device.info().compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor).ok_or_else(|| {
        let message = format!("Gridlet cannot build for GPUs of compute capability {capability}");
        Failure::new(status::MISSING, ids::MISSING_DEVICE, message)
    })?;
    Ok(Target::Cuda(arch))
}

/// Opens the requested device.
fn open(options: &Options) -> Result<Device, Failure> {
    let only_cpu = options.check || options.seed.is_some();
    match options.device {
        DeviceSelector::Cuda(_) if only_cpu => {
            let message = "--check and --seed need the CPU device: give --device cpu";
            Err(Failure::call(message))
        }
        DeviceSelector::Auto if !only_cpu => Ok(Device::select(DeviceSelector::Auto)?),
        DeviceSelector::Cuda(ordinal) => Ok(Device::open(ordinal)?),
        DeviceSelector::Auto | DeviceSelector::Cpu => Ok(Device::open_cpu(CpuConfig {
            seed: options.seed,
            check: options.check,
            ..CpuConfig::default()
        })?),
    }
}

fn find_kernel<'a>(manifest: &'a Manifest, name: &str) -> Result<&'a Kernel, Failure> {
    manifest.kernels.iter().find(|kernel| kernel.name == name).ok_or_else(|| {
        let known: Vec<&str> = manifest.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        Failure::call(format!("no kernel `{name}`; the program has {}", known.join(", ")))
    })
}

fn parse_arguments(
    kernel: &Kernel,
    manifest: &Manifest,
    texts: &[String],
) -> Result<Vec<ArgumentPlan>, Failure> {
    if texts.len() != kernel.parameters.len() {
        let wanted: Vec<String> = kernel
            .parameters
            .iter()
            .map(|parameter| format!("{}: {}", parameter.name, parameter.ty))
            .collect();
        return Err(Failure::call(format!(
            "kernel `{}` takes {} argument(s) ({}), but {} --arg were given",
            kernel.name,
            wanted.len(),
            wanted.join(", "),
            texts.len()
        )));
    }
    let parsed = kernel
        .parameters
        .iter()
        .zip(texts)
        .map(|(parameter, text)| arguments::parse(text, parameter, manifest));
    parsed.collect::<Result<_, _>>().map_err(Failure::from)
}

/// Parses every `--print NAME[:COUNT]`, and checks the name against the buffers.
fn parse_prints(texts: &[String], plans: &[ArgumentPlan]) -> Result<Vec<(String, usize)>, Failure> {
    let known: Vec<&BufferPlan> = plans.iter().flat_map(|plan| &plan.buffers).collect();
    let parse = |text: &String| {
        let (name, count) = match text.split_once(':') {
            None => (text.as_str(), DEFAULT_PRINTED),
            Some((name, count)) => match count.parse() {
                Ok(count) => (name, count),
                Err(_) => {
                    return Err(Failure::call(format!(
                        "--print {text}: `{count}` is not a number of elements"
                    )));
                }
            },
        };
        if known.iter().any(|plan| plan.name == name) {
            return Ok((name.to_owned(), count));
        }
        let names: Vec<&str> = known.iter().map(|plan| plan.name.as_str()).collect();
        let names = if names.is_empty() { "no buffers".into() } else { names.join(", ") };
        Err(Failure::call(format!(
            "--print {text}: no argument `{name}` has a buffer; there are {names}"
        )))
    };
    texts.iter().map(parse).collect()
}

fn execute(
    options: &Options,
    reporter: &Reporter,
    sources: Option<&SourceMap>,
    device: &Device,
    artifact: &Artifact,
    plans: Vec<ArgumentPlan>,
    printed: &[(String, usize)],
) -> Outcome {
    let green = options.sms.map(|sms| GreenContext::with_sms(device, sms)).transpose()?;
    let stream = match &green {
        Some(green) => green.stream()?,
        None => device.stream()?,
    };
    let program = Program::load(device, artifact)?;
    if let (Some(green), Some(asked)) = (&green, options.sms) {
        warn_about_partition(green, asked, &program, reporter);
    }
    let kernel = program.kernel(&options.kernel.to_string())?;

    let mut bound = Vec::new();
    let mut arguments = Vec::new();
    for plan in plans {
        let mut bytes = plan.bytes;
        for plan in plan.buffers {
            let memory = match &plan.contents {
                None => DeviceMemory::alloc_zeroed(device, plan.bytes)?,
                Some(contents) => {
                    let mut memory = DeviceMemory::alloc(device, plan.bytes)?;
                    memory.copy_from_host(contents)?;
                    memory
                }
            };
            memory.set_name(&plan.shown());
            bytes[plan.address_at..plan.address_at + 8]
                .copy_from_slice(&memory.address().to_le_bytes());
            bound.push(Bound { plan, memory });
        }
        arguments.push(bytes);
    }
    let arguments: Vec<Arg<'_>> = kernel
        .manifest()
        .parameters
        .iter()
        .zip(&arguments)
        .map(|(at, bytes)| argument(&at.ty, bytes))
        .collect();

    let config = LaunchConfig::new(options.grid.0, options.block.0).with_shared(options.shared);
    let (start, end) = (Event::new(device)?, Event::new(device)?);
    stream.record(&start)?;
    stream.launch(&kernel, &config, &arguments).map_err(|error| match &error {
        gridlet_runtime::Error::LaunchMemory { needed, .. } => {
            let hint = format!("give `--launch-memory {needed}` or more");
            Failure::from(error).with_hint(Some(hint))
        }
        _ => error.into(),
    })?;
    stream.record(&end)?;
    let lost = match stream.synchronize(Duration::from_secs_f64(options.timeout)) {
        Ok(()) => None,
        Err(gridlet_runtime::Error::LostLaunches(lost)) => Some(lost),
        Err(gridlet_runtime::Error::Checked(findings)) => {
            return Err(reporter.findings(&findings, sources));
        }
        Err(other) => return Err(other.into()),
    };
    let microseconds = f64::from(start.elapsed_ms(&end)?) * 1e3;
    let noted = if options.stats { program.statistics()? } else { None };
    if options.stats && noted.is_none() {
        reporter.warning(ids::NO_STATISTICS, &uninstrumented(&options.file));
    }

    let shown = read_buffers(artifact.manifest(), &bound, printed)?;
    let place = match (&green, device.info().kind) {
        (None, _) => device.to_string(),
        (Some(green), DeviceKind::Cuda) => {
            format!("{device}, green context of {} SMs", green.sm_count())
        }
        (Some(green), DeviceKind::Cpu) => {
            format!("{device}, {} worker threads", green.sm_count())
        }
    };
    if options.json {
        print_json(&Json {
            device: &place,
            launch: program.artifact().manifest().launch_strategy,
            time_us: microseconds,
            launches: statistics::launches_json(noted.as_ref(), lost.as_deref()),
            sms: statistics::sms_json(noted.as_ref()),
            buffers: &shown,
        })?;
    } else {
        let mut text = format!("{} on {place}: {microseconds:.1} µs\n", options.kernel);
        if let Some(noted) = &noted {
            statistics::describe(noted, device.info().kind, &mut text);
        }
        show_text(&text, &shown)?;
    }
    match lost {
        None => Ok(()),
        Some(lost) => {
            // The files of a linked object are unknown.
            let is_known = artifact.manifest().sources.contains(&lost.file) && lost.line > 0;
            let place = is_known.then(|| (lost.file.clone(), lost.line));
            let failure = lost_launches(*lost);
            Err(match place {
                Some((file, line)) => failure.with_place(&file, line),
                None => failure,
            })
        }
    }
}

/// Warns if a partition has another size than requested, or does not confine launched kernels.
fn warn_about_partition(green: &GreenContext, asked: u32, program: &Program, reporter: &Reporter) {
    let given = green.sm_count();
    if given != asked {
        let device = green.device();
        let sizes = device.info().sm_granularity.as_ref().map(|sizes| {
            let SmGranularity { minimum, alignment, .. } = sizes;
            format!(": this GPU splits in multiples of {alignment}, at least {minimum}")
        });
        let sizes = sizes.unwrap_or_default();
        reporter
            .note(ids::PARTITION_ROUNDED, &format!("{asked} SMs requested, {given} given{sizes}"));
    }
    let confinement = green.confinement(program);
    let text = format!("--sms {asked}: {confinement}");
    match confinement {
        Confinement::Confined => {}
        Confinement::ChildrenLeave => reporter.warning(ids::PARTITION_LEFT, &text),
        Confinement::TwoMore => reporter.note(ids::PARTITION_SHARED, &text),
        Confinement::NotMeasured => reporter.note(ids::PARTITION_NOT_MEASURED, &text),
    }
}

/// The failure of a run that lost launches, with a hint at the option that may help.
fn lost_launches(lost: LostLaunches) -> Failure {
    let hint = lost.full_pool.map(|pool| match pool {
        LaunchPool::PendingLaunches => "give `--pending-launches N` for a larger pool",
        LaunchPool::LaunchMemory => {
            "give `--launch-memory BYTES` for a larger one; the default is 67108864"
        }
    });
    Failure::new(status::RUN, ids::LOST_LAUNCHES, lost.to_string()).with_hint(hint)
}

/// An argument whose bytes were checked against the manifest when its text was parsed.
fn argument<'a>(ty: &Type, bytes: &'a [u8]) -> Arg<'a> {
    match (ty, <[u8; 8]>::try_from(bytes)) {
        (Type::Pointer { .. }, Ok(word)) => Arg::address(u64::from_le_bytes(word)),
        _ => Arg::Bytes(bytes),
    }
}

/// Elements that `--print` names. They are decoded while they are written, because their number is
/// the user's choice.
struct Shown<'a> {
    plan: &'a BufferPlan,
    manifest: &'a Manifest,
    bytes: Vec<u8>,
}

impl Shown<'_> {
    fn elements(&self) -> impl Iterator<Item = Value> {
        let elements = self.bytes.chunks_exact(self.plan.element_bytes);
        elements.map(|bytes| value::decode(bytes, &self.plan.element, self.manifest))
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.elements())
    }
}

/// Reads the elements that `--print` names.
fn read_buffers<'a>(
    manifest: &'a Manifest,
    bound: &'a [Bound],
    printed: &[(String, usize)],
) -> Result<Vec<Shown<'a>>, Failure> {
    let mut shown = Vec::new();
    for (name, count) in printed {
        let Some(Bound { plan, memory }) = bound.iter().find(|bound| bound.plan.name == *name)
        else {
            continue;
        };
        let bytes = (*count as u64).saturating_mul(plan.element_bytes as u64).min(plan.bytes);
        let mut bytes = arguments::zeros(bytes as usize)?;
        memory.copy_start_to_host(&mut bytes)?;
        shown.push(Shown { plan, manifest, bytes });
    }
    Ok(shown)
}

/// The buffers by name; the last one counts if a name is given twice.
fn by_name<S: Serializer>(shown: &&[Shown<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    let is_last =
        |at: usize| !shown[at + 1..].iter().any(|later| later.plan.name == shown[at].plan.name);
    let last = shown.iter().enumerate().filter(|(at, _)| is_last(*at));
    serializer.collect_map(last.map(|(_, shown)| (&shown.plan.name, shown)))
}

/// The result of `--json`.
#[derive(Serialize)]
struct Json<'a> {
    device: &'a str,
    launch: LaunchStrategy,
    time_us: f64,
    launches: Value,
    sms: Value,
    #[serde(serialize_with = "by_name")]
    buffers: &'a [Shown<'a>],
}

/// The note that the image is not instrumented, and how to build one that is.
fn uninstrumented(file: &Path) -> String {
    let file = file.display();
    format!(
        "{file} records no statistics; rebuild it with `gridlet build --stats`, or \
         `with_statistics(true)` of the library's options"
    )
}

fn show_text(text: &str, shown: &[Shown<'_>]) -> Outcome {
    write_out(|out| {
        out.write_all(text.as_bytes())?;
        for shown in shown {
            write!(out, "{}: [", shown.plan.name)?;
            for (index, element) in shown.elements().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                write!(out, "{comma}{element}")?;
            }
            writeln!(out, "]")?;
        }
        Ok(())
    })
}
