//! Options, figures and times, which all sections of the benchmark share.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use gridlet::compile::Checked;
use gridlet::source::SourceMap;
use gridlet_examples::Example;
use gridlet_examples::nested::Version;
use serde_json::{Value, json};

/// Measures compiling and running.
#[derive(Parser)]
pub(crate) struct Options {
    /// Folder for bench.json
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Repetitions of each figure
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub(crate) repeat: usize,
    /// Measures only this part
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) only: Option<Part>,
    /// Programs or kernels of a suite to measure; all by default
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) programs: Vec<String>,
    /// Versions of the suite's nested programs to measure; all by default
    #[arg(long, value_enum, value_delimiter = ',', value_name = "VERSIONS")]
    pub(crate) versions: Vec<Version>,
    /// Seconds that a run of a nested program may take before it counts as hung: more under compute-sanitizer
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub(crate) time_limit: u64,
    /// Processes of each version of a nested program, one after another: a figure is the median of their medians
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processes: u32,
    /// Measures nothing: draws a suite's figures in this file, to an .svg file beside it
    #[arg(long, value_name = "JSON")]
    pub(crate) plot: Option<PathBuf>,
    /// Runs a program of the suite by commands, for the benchmark itself
    #[arg(long, hide = true, value_name = "PROGRAM")]
    pub(crate) serve: Option<String>,
    /// The launch strategy of that program
    #[arg(long, hide = true, default_value = "cdp", value_name = "STRATEGY")]
    pub(crate) serve_launch: String,
}

impl Options {
    pub(crate) fn measures(&self, part: Part) -> bool {
        // The suites take minutes.
        let is_suite = matches!(part, Part::Nested | Part::Kernels);
        self.only.map_or(!is_suite, |only| only == part)
    }
}

/// A section of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Check,
    Compile,
    Gpu,
    Launch,
    Load,
    Cpu,
    /// The suite of nested programs beside CUDA C++; only where it is named
    Nested,
    /// Plain kernels beside CUDA C++; only where they are named
    Kernels,
}

/// One figure.
pub(crate) struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
}

/// Collects figures and prints each as it comes.
#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        let what = what.into();
        println!("{what:<76} {value:>10.3} {unit}");
        self.figures.push(Figure { what, value, unit });
    }

    /// The median, and the best in a line of its own.
    pub(crate) fn add_times(&mut self, what: impl Into<String>, times: &Times, unit: &'static str) {
        self.add(what, times.median, unit);
        self.add("  at best", times.best, unit);
    }

    pub(crate) fn to_json(&self) -> Value {
        let figures = self
            .figures
            .iter()
            .map(|figure| json!({"what": figure.what, "value": figure.value, "unit": figure.unit}));
        figures.collect()
    }
}

/// Median of `repeat` runs of `once`, which returns its own time.
pub(crate) fn median(
    repeat: usize,
    once: impl FnMut() -> anyhow::Result<f64>,
) -> anyhow::Result<f64> {
    Ok(Times::measure(repeat, once)?.median)
}

/// Several times of one thing.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) median: f64,
    pub(crate) best: f64,
}

impl Times {
    pub(crate) fn of(mut times: Vec<f64>) -> Times {
        times.sort_by(f64::total_cmp);
        let at = |index: usize| times.get(index).copied().unwrap_or(f64::NAN);
        Times { median: at(times.len() / 2), best: at(0) }
    }

    /// Times `repeat` runs of `once`, which returns its own time.
    pub(crate) fn measure(
        repeat: usize,
        mut once: impl FnMut() -> anyhow::Result<f64>,
    ) -> anyhow::Result<Times> {
        Ok(Times::of((0..repeat.max(1)).map(|_| once()).collect::<anyhow::Result<Vec<f64>>>()?))
    }

    pub(crate) fn scaled(self, factor: f64) -> Times {
        Times { median: self.median * factor, best: self.best * factor }
    }
}

/// Runs `work`; returns its time in milliseconds and its result.
pub(crate) fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let started = Instant::now();
    let result = work()?;
    Ok((started.elapsed().as_secs_f64() * 1e3, result))
}

pub(crate) fn checked(example: &Example) -> anyhow::Result<Checked> {
    Ok(gridlet::compile::check(SourceMap::single(
        format!("{}.grid", example.name),
        example.source,
    ))?)
}
