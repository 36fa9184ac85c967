//! `cargo xtask demo`: compiles every example, describes the result, and runs and checks it, on a GPU if there is one
//! and on the CPU otherwise.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use clap::Parser;
use gridlet::arch::CudaArch;
use gridlet::compile::{self, BuildOptions, Checked, Session};
use gridlet::cpu::CpuOptions;
use gridlet::ir::InstKind;
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet::{artifact, diagnostics};
use gridlet_examples::samples::SAMPLES;
use gridlet_examples::{EXAMPLES, Example, PENDING_LAUNCHES, Run};
use gridlet_runtime::{
    Artifact, Device, DeviceInfo, DeviceSelector, GreenContext, Program, Stream,
};

/// Compiles the examples and runs them, on a GPU if there is one, else on the CPU.
#[derive(Parser)]
struct Options {
    /// SMs of the green context that the examples run in; on the CPU, the worker threads
    #[arg(long, default_value_t = 16, value_name = "N")]
    sms: u32,
    /// Folder for the picture
    #[arg(long, default_value = "target/demo", value_name = "DIR")]
    out: PathBuf,
    /// Fail if there is no GPU, instead of running on the CPU
    #[arg(long)]
    require_gpu: bool,
    /// Run CUDA's samples of nested launches instead of the examples
    #[arg(long)]
    samples: bool,
}

impl Options {
    /// The list of programs to run.
    fn examples(&self) -> &'static [Example] {
        if self.samples { &SAMPLES } else { &EXAMPLES }
    }
}

fn main() -> ExitCode {
    match demo(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn demo(options: &Options) -> anyhow::Result<()> {
    let devices = Device::list();
    let gpu = devices.as_ref().ok().and_then(|devices| devices.first());
    let arch = gpu.map_or(Some(CudaArch::DEFAULT), arch_of);
    let arch = arch.ok_or_else(|| {
        anyhow!("this GPU is older than any architecture that Gridlet builds for")
    })?;

    println!(
        "Compiling {} programs whose kernels launch kernels, for {arch}:\n",
        options.examples().len()
    );
    let session = Session::new();
    let mut built = Vec::new();
    for example in options.examples() {
        built.push(build(&session, example, arch)?);
    }

    match (&devices, gpu) {
        (_, Some(gpu)) => run_on_gpu(gpu, options, &session, arch, built),
        (Ok(_), None) => run_on_cpu("the driver lists no device", options, &session, &built),
        (Err(error), None) => {
            let why = error.to_string();
            run_on_cpu(why.lines().next().unwrap_or_default(), options, &session, &built)
        }
    }
}

/// The architecture to build for.
fn arch_of(gpu: &DeviceInfo) -> Option<CudaArch> {
    CudaArch::for_device(gpu.compute_capability.major, gpu.compute_capability.minor)
}

/// An example's program and, for each launch strategy, its machine code.
struct Compiled {
    example: &'static Example,
    program: Checked,
    cubins: Vec<(LaunchStrategy, Vec<u8>)>,
}

fn build_options(arch: CudaArch, launch: LaunchStrategy) -> BuildOptions {
    BuildOptions::for_arch(arch).with_launch(launch.into())
}

/// Compiles one example and prints a description of the result.
fn build(session: &Session, example: &'static Example, arch: CudaArch) -> anyhow::Result<Compiled> {
    let file = format!("{}.grid", example.name);
    let sources = SourceMap::single(&file, example.source);
    println!("  {file}: {}", example.what);
    let program = compile::check(sources.clone()).map_err(|error| match error {
        gridlet::Error::Program(messages) => {
            anyhow!("{}", diagnostics::render(&messages, &sources, false))
        }
        other => other.into(),
    })?;
    let mut cubins = vec![];
    for strategy in LaunchStrategy::ALL {
        let started = Instant::now();
        let built = session
            .cubin(&program, &build_options(arch, strategy))
            .with_context(|| format!("{file}, launch strategy {strategy}"))?;
        println!(
            "    {strategy}: {} of source → {} of PTX → {} of machine code, in {:.0} ms",
            bytes(example.source.len()),
            bytes(built.ptx.0.len()),
            bytes(built.cubin.0.len()),
            started.elapsed().as_secs_f64() * 1e3
        );
        cubins.push((strategy, built.cubin.0));
    }
    for layout in program.parameter_buffers() {
        let slots: Vec<String> =
            layout.slots.iter().map(|slot| format!("{}@{}", slot.name, slot.offset)).collect();
        println!(
            "    kernel {:<14} {:>3} bytes of parameters: {}",
            layout.kernel,
            layout.size,
            slots.join(" ")
        );
    }
    for launch in launches(&program) {
        println!("    {launch}");
    }
    println!();
    Ok(Compiled { example, program, cubins })
}

/// Every launch in the program, as `line 38: squares → fill`.
fn launches(program: &Checked) -> Vec<String> {
    let module = &program.module;
    let mut found = Vec::new();
    for function in &module.functions {
        for inst in &function.instructions {
            if let InstKind::Launch(launch) = &inst.kind {
                let from = function.name.strip_suffix(".body").unwrap_or(&function.name);
                let line = program.sources.line(inst.span);
                found.push(format!(
                    "line {line}: {from} launches {}",
                    module.kernel(launch.kernel).name
                ));
            }
        }
    }
    found
}

fn bytes(count: usize) -> String {
    if count < 10_000 { format!("{count} B") } else { format!("{:.1} kB", count as f64 / 1e3) }
}

fn run_on_gpu(
    gpu: &DeviceInfo,
    options: &Options,
    session: &Session,
    arch: CudaArch,
    built: Vec<Compiled>,
) -> anyhow::Result<()> {
    let device = Device::open(gpu.ordinal)?;
    device.set_pending_launch_limit(PENDING_LAUNCHES)?;
    let green = GreenContext::with_sms(&device, options.sms)?;
    println!(
        "Running on {} ({}, driver {}) on a stream of a green context of {} of its {} SMs:\n",
        gpu.name,
        gpu.compute_capability.sm(),
        gpu.driver_version,
        green.sm_count(),
        gpu.sm_count
    );
    let mut runs = vec![];
    for Compiled { example, program, cubins } in built {
        for (strategy, cubin) in cubins {
            let build = build_options(arch, strategy);
            let artifact = artifact::pack(session, &program, vec![(arch, cubin)], &build)?;
            runs.push((example, strategy.name(), artifact));
        }
    }
    println!("  {:<18} {:<9} {:>11}  check", "program", "strategy", "time");
    run_all(&device, &green.stream()?, options, &runs)
}

fn run_on_cpu(
    why: &str,
    options: &Options,
    session: &Session,
    built: &[Compiled],
) -> anyhow::Result<()> {
    println!(
        "All programs compiled and linked, and their parameter buffers verified against the machine"
    );
    println!("code's own records. There is no GPU to run them on: {why}.\n");
    if options.require_gpu {
        return Err(anyhow!("--require-gpu: {why}"));
    }
    let device = Device::select(DeviceSelector::Cpu)?;
    device.set_pending_launch_limit(PENDING_LAUNCHES)?;
    let info = device.info();
    let part = GreenContext::with_sms(&device, options.sms.clamp(1, info.sm_count))?;
    println!(
        "Running them on the CPU instead, compiled once more from the same lowered kernels: {},",
        info.name
    );
    println!("on a stream of {} of {} worker threads:\n", part.sm_count(), info.sm_count);
    let mut runs = vec![];
    for Compiled { example, program, .. } in built {
        let artifact = artifact::build_cpu(session, program, &CpuOptions::default())?;
        runs.push((*example, "", artifact));
    }
    run_all(&device, &part.stream()?, options, &runs)
}

/// Runs each program; `runs` has it with the name of its launch strategy, which is empty on the CPU.
fn run_all(
    device: &Device,
    stream: &Stream,
    options: &Options,
    runs: &[(&Example, &str, Artifact)],
) -> anyhow::Result<()> {
    fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make {}", options.out.display()))?;
    for (example, strategy, artifact) in runs {
        let name = format!("{} {strategy}", example.name);
        let program = Program::load(device, artifact).with_context(|| name.clone())?;
        let run = Run { device, stream, program: &program, pictures: &options.out, shrink: 1 };
        let finding = (example.run)(&run).with_context(|| name.clone())?;
        let strategy = if strategy.is_empty() { String::new() } else { format!("{strategy:<9} ") };
        println!(
            "  {:<18} {strategy}{:>8.2} ms  {}",
            example.name, finding.milliseconds, finding.checked
        );
    }
    println!("\nAll results are right, and no launch was lost.");
    Ok(())
}
