//! `cargo xtask bench`: how fast programs are checked; how long compiling takes, against nvcc; with a GPU, what
//! launches and loading cost; and how fast the CPU device runs kernels.
//!
//! Every figure is the median of several runs in this process or, for whole commands, of several processes.
//! A table goes to standard output, all figures as JSON to `<out>/bench.json`.

#![expect(clippy::print_stdout, reason = "a program for people")]

mod bare;
mod check;
mod compile;
mod cpu;
mod gpu;
mod launch;
mod load;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use gridlet::compile::{Checked, Session};
use gridlet::source::SourceMap;
use gridlet_examples::Example;
use gridlet_runtime::Device;
use serde_json::{Value, json};

/// Measures compiling and running.
#[derive(Parser)]
struct Options {
    /// Folder for bench.json
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    out: PathBuf,
    /// Repetitions of each figure
    #[arg(long, default_value_t = 15, value_name = "N")]
    repeat: usize,
    /// Measures only this part
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<Part>,
}

impl Options {
    fn measures(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// A part of the figures.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Check,
    Compile,
    Gpu,
    Launch,
    Load,
    Cpu,
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
        println!("{what:<76} {value:>10.3} {unit}");
        self.figures.push(Figure { what, value, unit });
    }

    /// The median, and the best in a line of its own.
    fn add_times(&mut self, what: impl Into<String>, times: &Times, unit: &'static str) {
        self.add(what, times.median, unit);
        self.add("  at best", times.best, unit);
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
fn median(repeat: usize, once: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    Ok(Times::measure(repeat, once)?.median)
}

/// Several times of one thing.
#[derive(Clone, Copy)]
struct Times {
    median: f64,
    best: f64,
}

impl Times {
    fn of(mut times: Vec<f64>) -> Times {
        times.sort_by(f64::total_cmp);
        let at = |index: usize| times.get(index).copied().unwrap_or(f64::NAN);
        Times { median: at(times.len() / 2), best: at(0) }
    }

    /// Those of `repeat` runs of `once`, which gives its own time.
    fn measure(
        repeat: usize,
        mut once: impl FnMut() -> anyhow::Result<f64>,
    ) -> anyhow::Result<Times> {
        Ok(Times::of((0..repeat.max(1)).map(|_| once()).collect::<anyhow::Result<Vec<f64>>>()?))
    }

    fn scaled(self, factor: f64) -> Times {
        Times { median: self.median * factor, best: self.best * factor }
    }
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
    if options.measures(Part::Check) {
        check::check_times(options, &mut report)?;
    }
    if options.measures(Part::Compile) {
        compile::compile_times(&session, options, &mut report)?;
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
    let file = options.out.join("bench.json");
    fs::write(&file, serde_json::to_vec_pretty(&report.to_json())?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("all figures are in {}", file.display());
    Ok(())
}

fn checked(example: &Example) -> anyhow::Result<Checked> {
    Ok(gridlet::compile::check(SourceMap::single(
        format!("{}.grid", example.name),
        example.source,
    ))?)
}
