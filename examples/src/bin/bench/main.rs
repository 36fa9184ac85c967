//! `cargo xtask bench`: the speed of checking; compile times beside nvcc's; with a GPU, the cost of launches and of
//! loading; the speed of the CPU device; and, where they are asked for, the suites of nested programs and of plain kernels.
//!
//! Every figure is the median of several runs in this process or, for whole commands, of several processes.
//! A table goes to standard output, all figures as JSON to `<out>/bench.json`.

#![expect(clippy::print_stdout, reason = "a program for people")]

mod bare;
mod check;
mod compile;
mod cpu;
mod gpu;
mod kernels;
mod launch;
mod load;
mod measure;
mod nested;
mod nvcc;
mod plot;
mod results;
mod ways;

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use gridlet::compile::Session;
use gridlet_runtime::Device;

use measure::{Options, Part, Report};

fn main() -> ExitCode {
    match bench(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> anyhow::Result<()> {
    if let Some(program) = &options.serve {
        return nested::serve(program, &options.serve_launch);
    }
    if let Some(figures) = &options.plot {
        println!("{}", plot::plot_file(figures)?.display());
        return Ok(());
    }
    fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make {}", options.out.display()))?;
    let mut report = Report::default();
    let session = Session::new();
    if options.measures(Part::Check) {
        check::check_times(options, &mut report)?;
    }
    if options.measures(Part::Compile) {
        compile::compile_times(&session, options, &mut report)?;
        compile::small_program_times(&session, options, &mut report)?;
        compile::command_times(&session, options, &mut report)?;
    }
    if options.measures(Part::Gpu) {
        match Device::list() {
            Ok(devices) if !devices.is_empty() => gpu::gpu_times(&session, options, &mut report)?,
            Ok(_) => println!("no GPU: launches were not measured"),
            Err(error) => println!("no GPU ({error}): launches were not measured"),
        }
    }
    if options.measures(Part::Launch) {
        match Device::list() {
            Ok(devices) if !devices.is_empty() => launch::launch_times(options, &mut report)?,
            Ok(_) => println!("no GPU: launches by the host were not measured"),
            Err(error) => println!("no GPU ({error}): launches by the host were not measured"),
        }
    }
    if options.measures(Part::Load) {
        match Device::list() {
            Ok(devices) if !devices.is_empty() => load::load_times(&session, options, &mut report)?,
            Ok(_) => println!("no GPU: loading was not measured"),
            Err(error) => println!("no GPU ({error}): loading was not measured"),
        }
    }
    if options.measures(Part::Cpu) {
        cpu::cpu_times(&session, options, &mut report)?;
    }
    if options.measures(Part::Nested) {
        return nested::nested_times(&session, options);
    }
    if options.measures(Part::Kernels) {
        return kernels::kernel_times(&session, options);
    }
    let file = options.out.join("bench.json");
    fs::write(&file, serde_json::to_vec_pretty(&report.to_json())?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("all figures are in {}", file.display());
    Ok(())
}
