//! Runs the self-checking programs in `in/ok` on the CPU device and, if there is one, on a GPU.
//!
//! A program with a kernel `test` is run: `kernel test()` or `kernel test(out: *mut u32)`, where
//! `out` has 64 words of zero. `test` and the grids that it launches report errors through
//! `assert`. If there is a kernel `check` with the same parameters, one thread of it runs after
//! `test` and all its children. `//@ grid=2 block=64 shared=16` sets the launch of `test`; the
//! default is one block of 64 threads.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

mod coverage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::gpu::{gpu_or_skip, under_memcheck};
use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Checked, Session};
use gridlet::cpu::CpuOptions;
use gridlet::launch::{LaunchStrategy, runs_resident};
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Arg, Artifact, Buffer, Device, LaunchConfig, Program};

const TIMEOUT: Duration = Duration::from_secs(30);
const WORDS: usize = 64;
/// Enough for every program's pending launches.
const PENDING_LAUNCHES: u64 = 8192;

/// Names the programs' folder on machines without the sources: set in the bundle for GPU machines.
const FOLDER_VARIABLE: &str = "GRIDLET_TEST_PROGRAMS";

/// Names the program with which a process starts on a GPU after another process failed.
const FROM_VARIABLE: &str = "GRIDLET_TEST_FROM";

/// The programs' names and files, including the files that they use, sorted by name.
fn programs() -> Vec<(String, SourceMap)> {
    let folder = std::env::var_os(FOLDER_VARIABLE)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in/ok"), PathBuf::from);
    let mut programs: Vec<_> = walkdir::WalkDir::new(&folder)
        .into_iter()
        .map(|entry| entry.unwrap_or_else(|error| panic!("{FOLDER_VARIABLE}: {error}")).into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "grid"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, compile::load(&path).unwrap())
        })
        .collect();
    programs.sort_by(|left, right| left.0.cmp(&right.0));
    assert!(programs.len() > 100, "only {} programs in {}", programs.len(), folder.display());
    programs
}

/// A self-checking program.
struct Case {
    name: String,
    checked: Checked,
    config: LaunchConfig,
}

fn cases() -> Vec<Case> {
    programs().into_iter().filter_map(|(name, sources)| Case::new(name, sources)).collect()
}

impl Case {
    /// `None` if the program has no kernel `test`.
    fn new(name: String, sources: SourceMap) -> Option<Case> {
        let values: BTreeMap<&str, u32> = sources.files()[0]
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("//@"))
            .flat_map(str::split_whitespace)
            .map(|pair| pair.split_once('=').unwrap_or_else(|| panic!("{name}: `{pair}`")))
            .map(|(key, value)| (key, value.parse().unwrap()))
            .collect();
        for key in values.keys() {
            assert!(["grid", "block", "shared"].contains(key), "{name}: `{key}` says nothing");
        }
        let value = |key: &str, default: u32| values.get(key).copied().unwrap_or(default);
        let config = LaunchConfig::new(value("grid", 1), value("block", WORDS as u32))
            .with_shared(value("shared", 0));
        let checked =
            compile::check(sources.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let runs = checked.parameter_buffers().any(|layout| layout.kernel == "test");
        runs.then_some(Case { name, checked, config })
    }

    /// Runs the program; a failed check is an error.
    fn run(&self, device: &Device, artifact: &Artifact) -> gridlet_runtime::Result<()> {
        let program = Program::load(device, artifact)?;
        let stream = device.stream()?;
        let mut out = Buffer::<u32>::alloc_zeroed(device, WORDS)?;
        let one_thread = LaunchConfig::new(1, 1);
        for (name, config) in [("test", &self.config), ("check", &one_thread)] {
            if !artifact.manifest().kernels.iter().any(|kernel| kernel.name == name) {
                continue;
            }
            let kernel = program.kernel(name)?;
            let arguments = [Arg::from(&mut out)];
            let count = kernel.manifest().parameters.len().min(1);
            stream.launch(&kernel, config, &arguments[..count])?;
            stream.synchronize(TIMEOUT)?;
        }
        Ok(())
    }
}

/// Calls `each` for every item, on so many threads, each with its own state from `start`, and
/// returns the results in the order of the items.
fn on_all<T: Sync, S, R: Send>(
    items: &[T],
    threads: usize,
    start: impl Fn() -> S + Sync,
    each: impl Fn(&S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let own = start();
        let mut results = vec![];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return results };
            results.push((at, each(&own, item)));
        }
    };
    let mut results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A set of options for the CPU device, and the orders in which programs run with it.
struct Way {
    what: &'static str,
    optimize: bool,
    check: bool,
    seeds: &'static [Option<u64>],
}

const WAYS: [Way; 3] = [
    Way { what: "-O 0", optimize: false, check: false, seeds: &[None, Some(1)] },
    Way { what: "-O 3", optimize: true, check: false, seeds: &[None, Some(2), Some(3)] },
    Way { what: "--check", optimize: true, check: true, seeds: &[None, Some(4)] },
];

/// For each set of options, one device per seed.
fn cpu_devices() -> Vec<Vec<Device>> {
    let open = |check: bool, seed: Option<u64>| {
        let config = CpuConfig { seed, check, threads: Some(2), pending_limit: PENDING_LAUNCHES };
        Device::open_cpu(config).unwrap()
    };
    let of_way = |way: &Way| way.seeds.iter().map(|seed| open(way.check, *seed)).collect();
    WAYS.iter().map(of_way).collect()
}

/// Runs a program in every way; returns the errors, with the first seed of each way that shows one.
fn run_on_cpu(devices: &[Vec<Device>], case: &Case) -> String {
    let session = Session::new();
    let mut wrong = String::new();
    for (way, devices) in WAYS.iter().zip(devices) {
        let options = CpuOptions::default().with_optimize(way.optimize).with_check(way.check);
        let artifact = artifact::build_cpu(&session, &case.checked, &options).unwrap();
        for (seed, device) in way.seeds.iter().zip(devices) {
            if let Err(error) = case.run(device, &artifact) {
                wrong += &format!("{}, {}, seed {seed:?}: {error}\n", case.name, way.what);
                break;
            }
        }
    }
    wrong
}

#[test]
fn programs_pass_on_the_cpu() {
    // A device's findings cover everything that runs on it, so each thread has its own devices.
    let wrong = on_all(&cases(), 2, cpu_devices, |devices, case| run_on_cpu(devices, case));
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn programs_pass_on_a_gpu() {
    let Some((device, arch)) = gpu_or_skip("corpus") else { return };
    device.set_pending_launch_limit(PENDING_LAUNCHES).unwrap();
    let cases = cases();
    let of_case = |case| LaunchStrategy::ALL.map(|strategy| (case, strategy));
    // A program in which nothing launches or is launched is the same with both strategies.
    let differs = |(case, strategy): &(&Case, LaunchStrategy)| {
        *strategy == LaunchStrategy::Cdp
            || runs_resident(&case.checked.module, *strategy).contains(&true)
    };
    let runs: Vec<_> = cases.iter().flat_map(of_case).filter(differs).collect();
    let started = std::time::Instant::now();
    let first = std::env::var(FROM_VARIABLE).map_or(0, |text| text.parse().unwrap());
    // Compiling takes most of the time, so it has all cores.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runs = &runs[first.min(runs.len())..];
    let artifacts = on_all(runs, cores, Session::new, |session, (case, strategy)| {
        let options = BuildOptions::for_arch(arch).with_launch((*strategy).into());
        artifact::build(session, &case.checked, &[arch], &options).unwrap()
    });
    for (at, ((case, strategy), artifact)) in (first..).zip(runs.iter().zip(&artifacts)) {
        if case.name == "heap_exhausted.grid"
            && under_memcheck(&case.name, "its own `malloc` gives memory where there is none")
        {
            continue;
        }
        let Err(error) = case.run(&device, artifact) else { continue };
        // After a fault this process cannot use the GPU any more, so another process continues with
        // the remaining programs.
        let rest = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "programs_pass_on_a_gpu", "--nocapture"])
            .env(FROM_VARIABLE, (at + 1).to_string())
            .status();
        panic!("{} with {strategy}: {error}\nthe programs after it: {rest:?}", case.name);
    }
    eprintln!("{} runs of programs in {:.1} s", runs.len(), started.elapsed().as_secs_f64());
}
