//! Runs random programs on every device and by every back end, and compares the results.
//!
//! A program is named by its seed: `differential --seed N --count 1` runs it again, `--print` also shows it, and
//! `--reduce` shrinks it while it still fails.
//!
//! The programs run in child processes, a batch in each. A program that hangs the GPU or crashes the compiler ends only
//! its own process, and the next process continues after that program.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Parser;
use gridlet::arch::CudaArch;
use gridlet_runtime::Device;
use nvvm_tests::differential::{Failure, Runner, Way};
use nvvm_tests::generate::{self, Program, reduce};
use serde_json::{Value, json};

/// The most programs per process: enough that starting the process and the GPU costs little.
const PROGRAMS_EACH: u64 = 200;
/// The most processes for each GPU: each takes about 2.5 GB there, mostly for the stacks of all threads that can run.
const PROCESSES_OF_GPU: usize = 16;
/// How many smaller programs are tried. Each takes about as long as the program itself and the start of a process.
const MAX_REDUCTIONS: usize = 2000;

/// Runs random programs on every device and by every back end, and compares the results.
#[derive(Parser)]
struct Options {
    /// Seed of the first program; the others follow
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// How many programs
    #[arg(long, default_value_t = 100, value_name = "N")]
    count: u64,
    /// Also run on the GPUs; the processes are spread over all of them
    #[arg(long)]
    gpu: bool,
    /// As a worker, the number of its GPU
    #[arg(long, hide = true, default_value_t = 0)]
    device: u32,
    /// Also build for this GPU architecture, without running there
    #[arg(long, value_name = "ARCH", conflicts_with = "gpu")]
    build: Option<CudaArch>,
    /// Programs that run at the same time; by default one for each hardware thread, but not more than 16 for each GPU
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Time limit of each run of a program; a program whose compilations and runs take five times as long ends, too
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    time_out: u64,
    /// Print the programs without running them
    #[arg(long)]
    print: bool,
    /// Shrink each failing program while it still fails
    #[arg(long)]
    reduce: bool,
    /// Stop shrinking a program after this time
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    reduce_for: u64,
    /// Stop after this many failing programs
    #[arg(long, default_value_t = 5, value_name = "N")]
    failures: usize,
    /// Compare only this way with the first one, as a failure names it: `libnvvm -O 0`. May be given several times
    #[arg(long = "way", value_name = "WAY")]
    ways: Vec<Way>,
    /// Compare the ways with resident launches only for seeds that N divides: compiling their scheduler takes most of the time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    resident_every: u64,
    /// Run this text, printed by `--print` or a failure, instead of the program of the seed
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Run in this process, and write one line of JSON per program
    #[arg(long, hide = true)]
    worker: bool,
    /// As a worker, run the texts in standard input, each a JSON string on a line, instead of the program of the seed
    #[arg(long, hide = true, requires = "worker")]
    texts: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let seeds = options.seed..options.seed.saturating_add(options.count);
    let result = if options.print {
        print(&options, seeds).map(|()| true)
    } else if options.worker {
        work(&options, seeds).map(|()| true)
    } else {
        run(&options, seeds)
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The text that the user names, or else the program of a seed.
fn program(options: &Options, seed: u64) -> anyhow::Result<Program> {
    let Some(path) = &options.source else {
        return Ok(generate::program(seed));
    };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let named = Program::from_text(&text).with_context(|| path.display().to_string())?;
    Ok(Program { seed, ..named })
}

fn print(options: &Options, mut seeds: Range<u64>) -> anyhow::Result<()> {
    seeds.try_for_each(|seed| {
        print!("{}", program(options, seed)?.to_text()?);
        Ok(())
    })
}

/// How many times as long as a run of it a program may take as a whole.
const RUNS: u32 = 5;

/// Ends the process once more than `limit` has passed since the time that is returned: no wait limits a compiler.
#[expect(clippy::exit, reason = "nothing else ends a thread that is in a compiler")]
fn watch(limit: Duration) -> Arc<Mutex<Instant>> {
    let began = Arc::new(Mutex::new(Instant::now()));
    let seen = Arc::clone(&began);
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(100));
            if seen.lock().is_ok_and(|began| began.elapsed() > limit) {
                eprintln!("error: the program took longer than {} s as a whole", limit.as_secs());
                std::process::exit(1);
            }
        }
    });
    began
}

/// Runs programs in this process until one fails.
fn work(options: &Options, seeds: Range<u64>) -> anyhow::Result<()> {
    let runner = match options.build {
        Some(arch) => Runner::building_for(arch),
        None if options.gpu => Runner::with_gpu(options.device)?,
        None => Runner::new(),
    };
    let time_out = Duration::from_secs(options.time_out);
    let runner = runner.with_time_out(time_out);
    let began = watch(RUNS * time_out);
    let begin = || {
        if let Ok(mut began) = began.lock() {
            *began = Instant::now();
        }
    };
    let reference = Way::CPU[0];
    let ways = if !options.ways.is_empty() {
        let others = options.ways.iter().copied().filter(|way| *way != reference);
        [reference].into_iter().chain(others).collect()
    } else if options.gpu || options.build.is_some() {
        [&Way::CPU[..], &Way::GPU].concat()
    } else {
        Way::CPU.to_vec()
    };
    // Prints how a program ended.
    let print = |program: &Program, result: &Result<(), Failure>| {
        let failure = result.as_ref().err().map(|failure| {
            let way = failure.way.map(|way| way.to_string());
            json!({ "way": way, "differs": failure.differs, "message": failure.message })
        });
        println!("{}", json!({ "seed": program.seed, "failure": failure }));
    };
    if options.texts {
        let mut program = program(options, options.seed)?;
        for line in std::io::stdin().lines() {
            program.source = serde_json::from_str(&line?)?;
            begin();
            let result = runner.compare(&program, &ways);
            print(&program, &result);
            if result.is_err_and(|failure| failure.is_fatal()) {
                break;
            }
        }
        return Ok(());
    }
    for seed in seeds {
        let program = program(options, seed)?;
        begin();
        let ways: Vec<Way> =
            ways.iter().copied().filter(|way| is_due(options, seed, *way)).collect();
        let result = runner.compare(&program, &ways);
        print(&program, &result);
        if result.is_err() {
            break;
        }
    }
    Ok(())
}

/// Whether a way is compared for a seed.
fn is_due(options: &Options, seed: u64, way: Way) -> bool {
    !way.is_resident() || seed.is_multiple_of(options.resident_every)
}

/// The arguments of a process for some programs, on the GPU with that number.
fn worker(options: &Options, seeds: &Range<u64>, device: u32) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let count = seeds.end - seeds.start;
    command.args(["--worker", "--seed", &seeds.start.to_string(), "--count", &count.to_string()]);
    command.args(["--time-out", &options.time_out.to_string()]);
    command.args(["--resident-every", &options.resident_every.to_string()]);
    if options.gpu {
        command.args(["--gpu", "--device", &device.to_string()]);
    }
    if let Some(arch) = options.build {
        command.args(["--build", &arch.to_string()]);
    }
    if let Some(source) = &options.source {
        command.arg("--source").arg(source);
    }
    command.stdout(Stdio::piped());
    Ok(command)
}

/// Starts a process for these programs and passes on how each ended, including one that ended the process. Returns the
/// seeds that remain.
fn start(
    options: &Options,
    seeds: Range<u64>,
    device: u32,
    mut each: impl FnMut(u64, Result<(), Failure>),
) -> anyhow::Result<Range<u64>> {
    let mut command = worker(options, &seeds, device)?;
    command.args(way_arguments(&options.ways));
    let mut child = command.spawn().context("cannot start a process")?;
    let output = child.stdout.take().context("a process without output")?;
    let mut next = seeds.start;
    for line in BufReader::new(output).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let seed = line["seed"].as_u64().context("a line without a seed")?;
        next = seed + 1;
        each(seed, outcome(&line)?);
    }
    let status = child.wait()?;
    if !status.success() && next < seeds.end {
        let message = format!("its process ended with {status}: see above");
        each(next, Err(Failure { way: None, differs: false, message }));
        next += 1;
    }
    Ok(next..seeds.end)
}

/// The outcome in a worker's line.
fn outcome(line: &Value) -> anyhow::Result<Result<(), Failure>> {
    let failure = &line["failure"];
    if failure.is_null() {
        return Ok(Ok(()));
    }
    let way = failure["way"].as_str().map(str::parse).transpose();
    Ok(Err(Failure {
        way: way.map_err(|error: String| anyhow!(error))?,
        differs: failure["differs"] == true,
        message: failure["message"].as_str().unwrap_or_default().to_owned(),
    }))
}

/// Runs all programs and prints the failures. Returns whether none failed.
fn run(options: &Options, seeds: Range<u64>) -> anyhow::Result<bool> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    // Without a GPU, each process says so.
    let gpus = if options.gpu { Device::list()?.len().max(1) } else { 1 };
    let most = if options.gpu { gpus * PROCESSES_OF_GPU } else { threads };
    let jobs = options.jobs.unwrap_or(threads.min(most));
    let each = (options.count / (4 * jobs.max(1) as u64)).clamp(1, PROGRAMS_EACH);
    let started = Instant::now();
    let (next, ran) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let (stop, failed) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let ended = |seed: u64, result: Result<(), Failure>| {
        let done = ran.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(100) {
            eprintln!("{done} programs after {:.0} s", started.elapsed().as_secs_f64());
        }
        if let Err(failure) = result
            && let Ok(mut failed) = failed.lock()
        {
            if let Err(error) = report(options, seed, &failure) {
                eprintln!("error: cannot describe the failure of seed {seed}: {error:#}");
            }
            failed.push(seed);
            stop.fetch_or(failed.len() >= options.failures, Ordering::Relaxed);
        }
    };
    let work = |device: usize| -> anyhow::Result<()> {
        loop {
            let first = next.fetch_add(each, Ordering::Relaxed);
            let mut left = first..seeds.end.min(first.saturating_add(each));
            while !left.is_empty() {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                left = start(options, left, device as u32, ended)?;
            }
            if first >= seeds.end {
                return Ok(());
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..jobs.max(1)).map(|job| scope.spawn(move || work(job % gpus))).collect();
        let mut joined = workers.into_iter().map(|worker| worker.join());
        joined.try_for_each(|result| result.unwrap_or_else(|_| Err(anyhow!("a thread panicked"))))
    })?;
    let mut failed = failed.into_inner().unwrap_or_default();
    failed.sort_unstable();
    println!(
        "{} programs from seed {}: {} failed {failed:?}; {:.1} s",
        ran.into_inner(),
        options.seed,
        failed.len(),
        started.elapsed().as_secs_f64(),
    );
    Ok(failed.is_empty())
}

fn way_arguments(ways: &[Way]) -> Vec<String> {
    ways.iter().flat_map(|way| ["--way".to_owned(), way.to_string()]).collect()
}

fn report(options: &Options, seed: u64, failure: &Failure) -> anyhow::Result<()> {
    let program = program(options, seed)?;
    let mut text = format!("\nseed {seed}: {failure}\n");
    let shown = match options.reduce {
        true => smaller(options, &program, failure),
        false => Ok(program.source.clone()),
    };
    match shown {
        Ok(source) => text += &Program { source, ..program }.to_text()?,
        Err(error) => text += &format!("it cannot be made smaller: {error:#}\n"),
    }
    text += &format!(
        "again: differential --seed {seed} --count 1 [--reduce] [--gpu], or with --source FILE and the text above\n"
    );
    println!("{text}");
    Ok(())
}

/// A shrunk version of the program that still fails as `failure` describes.
fn smaller(options: &Options, program: &Program, failure: &Failure) -> anyhow::Result<String> {
    // With `--check` first, so that no smaller program fails by a race.
    let check = Way::CPU[2];
    let failing = failure.way.filter(|way| *way != check);
    let ways = way_arguments(&[&[check], failing.as_slice()].concat());
    let mut runs = Texts { options, seed: program.seed, ways, process: None };
    let mut error = None;
    let end = Instant::now() + Duration::from_secs(options.reduce_for);
    let source = reduce::reduce(&program.source, MAX_REDUCTIONS, |source| {
        if Instant::now() > end {
            return false;
        }
        match runs.run(source) {
            Ok(Err(found)) => found.way == failure.way && found.differs == failure.differs,
            Ok(Ok(())) => false,
            Err(found) => {
                error = Some(found);
                false
            }
        }
    });
    error.map_or(Ok(source), Err)
}

/// Runs texts in one process until one of them ends it: starting the GPU takes longer than most programs.
struct Texts<'a> {
    options: &'a Options,
    seed: u64,
    ways: Vec<String>,
    process: Option<(Child, Lines<BufReader<ChildStdout>>)>,
}

impl Texts<'_> {
    fn run(&mut self, source: &str) -> anyhow::Result<Result<(), Failure>> {
        let (child, lines) = match &mut self.process {
            Some(process) => process,
            none => {
                let mut command = worker(self.options, &(self.seed..self.seed + 1), 0)?;
                command.arg("--texts").args(&self.ways).stdin(Stdio::piped());
                let mut child = command.spawn().context("cannot start a process")?;
                let output = child.stdout.take().context("a process without output")?;
                none.insert((child, BufReader::new(output).lines()))
            }
        };
        let input = child.stdin.as_mut().context("a process without input")?;
        writeln!(input, "{}", json!(source))?;
        let line = lines.next().transpose()?;
        let has_ended = line.is_none();
        let result = match line {
            Some(line) => outcome(&serde_json::from_str(&line)?)?,
            None => {
                let message = "its process ended".to_owned();
                Err(Failure { way: None, differs: false, message })
            }
        };
        if has_ended || result.as_ref().is_err_and(Failure::is_fatal) {
            self.end()?;
        }
        Ok(result)
    }

    fn end(&mut self) -> std::io::Result<()> {
        if let Some((mut child, _)) = self.process.take() {
            // It ends at the end of its input.
            drop(child.stdin.take());
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Texts<'_> {
    fn drop(&mut self) {
        drop(self.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_its_gpu() {
        let arguments = |options: &[&str], device| {
            let options = Options::parse_from([&["differential"], options].concat());
            let command = worker(&options, &(7..9), device).expect("this program has a path");
            let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
            Options::parse_from([vec!["differential".to_owned()], words.collect()].concat())
        };
        let told = arguments(&["--gpu"], 1);
        assert!(told.worker && told.gpu);
        assert_eq!((told.device, told.seed, told.count), (1, 7, 2));
        assert!(!arguments(&[], 0).gpu);
    }

    #[test]
    fn resident_launches_may_be_compared_for_some_seeds_only() {
        let due = |every: &str| {
            let options = Options::parse_from(["differential", "--resident-every", every]);
            let ways =
                |seed| Way::GPU.into_iter().filter(|way| is_due(&options, seed, *way)).count();
            [ways(15), ways(16), ways(17)]
        };
        assert_eq!(due("8"), [4, 6, 4]);
        assert_eq!(due("1"), [6, 6, 6]);
        assert!(Options::try_parse_from(["differential", "--resident-every", "0"]).is_err());
    }
}
