//! Runs random programs in every way there is, and compares what comes out.
//!
//! A program is named by its seed: `differential --seed N --count 1` runs it again, with `--print` shows it, with
//! `--reduce` makes it smaller while it still fails.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use std::{panic, thread};

use clap::Parser;
use gridlet::arch::CudaArch;
use nvvm_tests::differential::{Failure, Runner, Way};
use nvvm_tests::generate::{self, Program};

/// Runs random programs in every way there is, and compares what comes out.
#[derive(Parser)]
struct Options {
    /// The first program's seed; the others' follow
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// How many programs
    #[arg(long, default_value_t = 100, value_name = "N")]
    count: u64,
    /// Also on the first GPU
    #[arg(long)]
    gpu: bool,
    /// Also build for GPUs of this architecture, without running there
    #[arg(long, value_name = "ARCH", conflicts_with = "gpu")]
    build: Option<CudaArch>,
    /// Programs at a time; otherwise as many as the machine runs threads
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print the programs and run nothing
    #[arg(long)]
    print: bool,
    /// Make each program that fails smaller while it still does
    #[arg(long)]
    reduce: bool,
    /// Stop after so many programs that fail
    #[arg(long, default_value_t = 5, value_name = "N")]
    failures: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let seeds = options.seed..options.seed.saturating_add(options.count);
    if options.print {
        seeds.for_each(|seed| print!("{}", generate::program(seed).source));
        return ExitCode::SUCCESS;
    }
    let runner = match options.build {
        Some(arch) => Ok(Runner::building_for(arch)),
        None if options.gpu => Runner::with_gpu(),
        None => Ok(Runner::new()),
    };
    match runner {
        Ok(runner) => run(&options, &runner),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, runner: &Runner) -> ExitCode {
    let mut ways = Way::CPU.to_vec();
    if options.gpu || options.build.is_some() {
        ways.extend(Way::GPU);
    }
    let jobs =
        options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let started = Instant::now();
    let (next, ran) = (AtomicU64::new(0), AtomicU64::new(0));
    let (stop, failed) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= options.count {
                return;
            }
            let program = generate::program(options.seed + at);
            let result = try_compare(runner, &program, &ways);
            let done = ran.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(100) {
                eprintln!("{done} programs after {:.0} s", started.elapsed().as_secs_f64());
            }
            if let Err(failure) = result
                && let Ok(mut failed) = failed.lock()
            {
                report(runner, &program, &failure, options.reduce);
                failed.push(program.seed);
                if failed.len() >= options.failures {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut failed = failed.into_inner().unwrap_or_default();
    failed.sort_unstable();
    println!(
        "{} programs from seed {} in {} ways: {} failed {failed:?}; {:.1} s",
        ran.into_inner(),
        options.seed,
        ways.len(),
        failed.len(),
        started.elapsed().as_secs_f64(),
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A panic of the compiler is a failure of this program, not of all.
fn try_compare(runner: &Runner, program: &Program, ways: &[Way]) -> Result<(), Failure> {
    let result = panic::catch_unwind(panic::AssertUnwindSafe(|| runner.compare(program, ways)));
    result.unwrap_or_else(|_| {
        let message = "the compiler panicked: see above".to_owned();
        Err(Failure { way: None, differs: false, message })
    })
}

fn report(runner: &Runner, program: &Program, failure: &Failure, reduce: bool) {
    println!("\nseed {}: {failure}", program.seed);
    let source = if reduce { runner.reduce(program, failure) } else { program.source.clone() };
    println!("{source}");
    println!("again: differential --seed {} --count 1 [--reduce] [--gpu]\n", program.seed);
}
