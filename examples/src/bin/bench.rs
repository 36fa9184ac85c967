//! `cargo xtask bench`: how long compiling takes, against nvcc, and, with a GPU, what launches cost.
//!
//! Every figure is the median of several runs in this process or, for whole commands, of several processes.
//! A table goes to standard output, all figures as JSON to `<out>/bench.json`.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use clap::Parser;
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Checked, Session};
use gridlet::source::SourceMap;
use gridlet::toolchain::Component;
use gridlet_examples::{EXAMPLES, Example, PENDING_LAUNCHES, Run, quicksort};
use gridlet_runtime::manifest::Manifest;
use gridlet_runtime::{Arg, Artifact, Buffer, Device, GreenContext, LaunchConfig, Program};
use serde_json::{Value, json};

/// Measures compiling and launching.
#[derive(Parser)]
struct Options {
    /// Folder for bench.json
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    out: PathBuf,
    /// Repetitions of each figure
    #[arg(long, default_value_t = 15, value_name = "N")]
    repeat: usize,
}

fn main() -> ExitCode {
    match bench(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// One figure.
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
}

/// Collects figures and prints each as it comes.
#[derive(Default)]
struct Report {
    figures: Vec<Figure>,
}

impl Report {
    fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        let what = what.into();
        println!("{what:<68} {value:>10.3} {unit}");
        self.figures.push(Figure { what, value, unit });
    }

    fn to_json(&self) -> Value {
        let figures = self
            .figures
            .iter()
            .map(|figure| json!({"what": figure.what, "value": figure.value, "unit": figure.unit}));
        figures.collect()
    }
}

/// Median of `repeat` runs of `once`, which gives its own time.
fn median(repeat: usize, mut once: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let mut times = (0..repeat.max(1)).map(|_| once()).collect::<anyhow::Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Milliseconds that `work` takes, and what it gives.
fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let started = Instant::now();
    let result = work()?;
    Ok((started.elapsed().as_secs_f64() * 1e3, result))
}

fn bench(options: &Options) -> anyhow::Result<()> {
    fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make {}", options.out.display()))?;
    let mut report = Report::default();
    let session = Session::new();
    compile_times(&session, options, &mut report)?;
    command_times(&session, options, &mut report)?;
    match Device::list() {
        Ok(devices) if !devices.is_empty() => gpu_times(&session, options, &mut report)?,
        Ok(_) => println!("no GPU: launches were not measured"),
        Err(error) => println!("no GPU ({error}): launches were not measured"),
    }
    let file = options.out.join("bench.json");
    fs::write(&file, serde_json::to_vec_pretty(&report.to_json())?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("all figures are in {}", file.display());
    Ok(())
}

fn checked(example: &Example) -> anyhow::Result<Checked> {
    Ok(compile::check(SourceMap::single(format!("{}.grid", example.name), example.source))?)
}

/// Source to cubin in this process: once cold, then warm.
fn compile_times(session: &Session, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let build = BuildOptions::default();
    let (cold, _) = timed(|| Ok(session.cubin(&checked(&quicksort::EXAMPLE)?, &build)?))?;
    report.add("quicksort.grid to cubin, first time in a process (loads libraries)", cold, "ms");
    for example in &EXAMPLES {
        let whole = median(options.repeat, || {
            Ok(timed(|| Ok(session.cubin(&checked(example)?, &build)?))?.0)
        })?;
        report.add(format!("{}.grid to cubin, warm", example.name), whole, "ms");
    }
    let program = checked(&quicksort::EXAMPLE)?;
    let front = median(options.repeat, || Ok(timed(|| checked(&quicksort::EXAMPLE))?.0))?;
    report.add("  of quicksort: source to checked IR and layouts", front, "ms");
    let nvvm = median(options.repeat, || Ok(timed(|| Ok(program.nvvm(&build)?))?.0))?;
    report.add("  of quicksort: IR to NVVM IR (legacy)", nvvm, "ms");
    let ptx = median(options.repeat, || Ok(timed(|| Ok(session.ptx(&program, &build)?))?.0))?;
    report.add("  of quicksort: IR to PTX", ptx, "ms");
    let (ptx, _) = session.ptx(&program, &build)?;
    let link =
        median(options.repeat, || Ok(timed(|| Ok(session.device_link(&ptx, true, &build)?))?.0))?;
    report.add("  of quicksort: PTX and libcudadevrt to cubin", link, "ms");
    Ok(())
}

/// Whole commands: `gridlet build` against nvcc and nvlink, to the same kind of file.
fn command_times(session: &Session, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let grid = folder.path().join("quicksort.grid");
    let cu = folder.path().join("quicksort.cu");
    fs::write(&grid, quicksort::EXAMPLE.source)?;
    fs::write(&cu, include_str!("../../baselines/quicksort.cu"))?;

    let gridlet = beside_this_program("gridlet")?;
    let ours = median(options.repeat, || {
        let mut command = Command::new(&gridlet);
        command
            .arg("build")
            .arg(&grid)
            .args(["--emit", "cubin", "-o"])
            .arg(folder.path().join("ours.cubin"));
        Ok(timed(|| succeed(&mut command))?.0)
    })?;
    report.add("`gridlet build quicksort.grid --emit cubin`, whole command", ours, "ms");

    let theirs = match nvcc_cubin(session, &cu) {
        Ok(_) => median(options.repeat.min(7), || Ok(timed(|| nvcc_cubin(session, &cu))?.0))?,
        Err(error) => {
            println!("nvcc was not measured: {error:#}");
            return Ok(());
        }
    };
    report.add("nvcc -rdc=true -cubin and nvlink, the same program, whole commands", theirs, "ms");
    report.add("  nvcc's time over gridlet's", theirs / ours, "×");
    Ok(())
}

/// Compiles CUDA C++ to a device-linked cubin, the shortest way NVIDIA's tools have.
fn nvcc_cubin(session: &Session, source: &Path) -> anyhow::Result<PathBuf> {
    let tools = session.toolchain();
    let (object, linked) = (source.with_extension("rdc.cubin"), source.with_extension("cubin"));
    let mut nvcc = Command::new(tools.path(Component::Nvcc)?);
    nvcc.args(["-arch=sm_90", "-rdc=true", "-cubin", "-o"]).arg(&object).arg(source);
    succeed(&mut nvcc)?;
    let mut nvlink = Command::new(tools.path(Component::Nvlink)?);
    nvlink.arg("-arch=sm_90").arg(&object).arg(tools.cudadevrt()?).arg("-o").arg(&linked);
    succeed(&mut nvlink)?;
    Ok(linked)
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {}", output.status, log.trim());
    Ok(())
}

fn beside_this_program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name(name);
    ensure!(
        path.exists(),
        "{} is not there: build it with `cargo build --release`",
        path.display()
    );
    Ok(path)
}

/// The launch patterns of one family: kernels that only launch.
const PATTERNS: &str = include_str!("../../programs/launch_cost.grid");

fn gpu_times(session: &Session, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let device = Device::open(0)?;
    let info = device.info();
    println!("\non {}, driver {}:", info.name, info.driver_version);
    let capability = info.compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor)
        .ok_or_else(|| anyhow!("Gridlet builds for no GPU of compute capability {capability}"))?;
    device.set_pending_launch_limit(PENDING_LAUNCHES * 4)?;
    let build = BuildOptions::for_arch(arch);
    let green = GreenContext::with_sms(&device, 16)?;
    let pictures = tempfile::tempdir()?;

    for (place, stream) in
        [("whole GPU", device.stream()?), ("16-SM green context", green.stream()?)]
    {
        for example in &EXAMPLES {
            let program = Program::load(
                &device,
                &artifact::build(session, &checked(example)?, &[arch], &build)?,
            )?;
            let run = Run {
                device: &device,
                stream: &stream,
                program: &program,
                pictures: pictures.path(),
                shrink: 1,
            };
            let time =
                median(options.repeat.min(5), || Ok(f64::from((example.run)(&run)?.milliseconds)))?;
            report.add(format!("{} on the {place}", example.name), time, "ms");
        }
    }

    let stream = device.stream()?;
    let program = compile::check(SourceMap::single("launch_cost.grid", PATTERNS))?;
    let patterns = Program::load(&device, &artifact::build(session, &program, &[arch], &build)?)?;
    let mut done = Buffer::from_slice(&device, &[0u32])?;
    let run = Run {
        device: &device,
        stream: &stream,
        program: &patterns,
        pictures: pictures.path(),
        shrink: 1,
    };
    let sms = info.sm_count;
    // (kernel, grid, block, argument, launches)
    let shapes = [
        ("one_thread_default", 1, 1, 1_000u32, 1_000),
        ("one_thread_fire_and_forget", 1, 1, 1_000, 1_000),
        ("one_thread_tail", 1, 1, 1_000, 1_000),
        ("every_thread", sms, 32, 8, sms * 32 * 8),
        ("tree", 1, 1, 10, (1 << 11) - 2),
        ("chain_tail", 1, 1, 1_000, 1_000),
    ];
    for (name, grid, block, argument, launches) in shapes {
        let kernel = patterns.kernel(name)?;
        let time = median(options.repeat, || {
            done.copy_from_host(&[0])?;
            let arguments = [Arg::from(argument), Arg::from(&mut done)];
            let time =
                run.timed(&kernel, &LaunchConfig::new(grid, block), &arguments).context(name)?;
            let ran = done.to_vec()?[0];
            ensure!(ran == launches, "{name}: {ran} children ran instead of {launches}");
            Ok(f64::from(time))
        })?;
        report.add(
            format!("launch cost, {name}, {launches} launches"),
            time * 1e3 / f64::from(launches),
            "µs each",
        );
    }
    nvcc_quicksort(session, &device, arch, options, report)
}

/// The same quicksort, compiled by nvcc, launched by the same host code.
fn nvcc_quicksort(
    session: &Session,
    device: &Device,
    arch: CudaArch,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("quicksort.cu");
    fs::write(&source, include_str!("../../baselines/quicksort.cu"))?;
    let cubin = match nvcc_cubin(session, &source) {
        Ok(path) if arch == CudaArch::DEFAULT => fs::read(path)?,
        Ok(_) => return Ok(()),
        Err(error) => {
            println!("nvcc's quicksort was not run: {error:#}");
            return Ok(());
        }
    };
    let packed =
        artifact::pack(session, &checked(&quicksort::EXAMPLE)?, vec![(arch, cubin)], false)?;
    // nvcc's code keeps no record of lost launches.
    let manifest = Manifest { device_runtime: None, ..packed.manifest().clone() };
    let images = packed.images().map(|(_, bytes)| bytes.to_vec()).collect();
    let program = Program::load(device, &Artifact::new(manifest, images)?)?;
    let stream = device.stream()?;
    let run =
        Run { device, stream: &stream, program: &program, pictures: folder.path(), shrink: 1 };
    let time = median(options.repeat.min(5), || {
        Ok(f64::from((quicksort::EXAMPLE.run)(&run)?.milliseconds))
    })?;
    report.add("quicksort compiled by nvcc, on the whole GPU", time, "ms");
    Ok(())
}
