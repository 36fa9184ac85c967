//! The suite: every version of each program in a process of its own, which waits for commands, so that the versions take
//! turns and one that hangs can be ended.

mod cuda;
mod process;
mod serve;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use gridlet::arch::CudaArch;
use gridlet::compile::Session;
use gridlet_examples::nested::{Case, Nested, SUITE, Version, words};
use gridlet_runtime::Device;

use crate::measure::Options;
use crate::results;
use process::Process;
pub(crate) use serve::serve;
use table::{NOT_RUN, Outcome, Row, Runs};

/// How long a process may take to start; it compiles its program and makes a context.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Turns of each version after the first, cold run.
const TURNS: usize = 3;
/// A turn lasts about so many milliseconds.
const TURN_MS: f64 = 100.0;
const MAX_RUNS: usize = 10;

pub(crate) fn nested_times(session: &Session, options: &Options) -> anyhow::Result<()> {
    let devices = Device::list()?;
    let device = devices.first().context("there is no GPU")?;
    println!("\nthe suite, on {}, driver {}:", device.name, device.driver_version);
    let capability = device.compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor)
        .ok_or_else(|| anyhow!("Gridlet cannot build for compute capability {capability}"))?;
    let named = |program: &&Nested| {
        options.programs.is_empty() || options.programs.iter().any(|name| name == program.name)
    };
    let programs: Vec<&Nested> = SUITE.iter().filter(named).collect();
    ensure!(!programs.is_empty(), "no program of the suite has one of these names");
    let folder = tempfile::tempdir()?;
    let wanted =
        |version: &Version| options.versions.is_empty() || options.versions.contains(version);
    let versions: Vec<Version> = Version::ALL.into_iter().filter(wanted).collect();
    let built = cuda::build(session, &programs, &versions, arch, folder.path())?;
    let mut rows = Vec::new();
    for (program, executables) in programs.iter().zip(built) {
        println!("\n{}: {}", program.name, program.what);
        let mut suite = Servers {
            program,
            versions: &versions,
            executables,
            folder: folder.path().to_path_buf(),
            limit: Duration::from_secs(options.time_limit),
            processes: options.processes,
            running: BTreeMap::new(),
            given_up: BTreeMap::new(),
        };
        suite.start();
        table::print_head();
        for case in (program.cases)(gridlet_examples::nested::Size::Full) {
            let row = suite.measure(&case)?;
            table::print_row(&row);
            rows.push(row);
        }
    }
    table::print_summary(&rows);
    results::write("nested", table::to_json(&rows, &device.name), &options.out)
}

/// The processes of a program's versions.
struct Servers<'a> {
    program: &'a Nested,
    versions: &'a [Version],
    executables: [anyhow::Result<PathBuf>; 2],
    folder: PathBuf,
    /// How long a command may take before its process counts as hung.
    limit: Duration,
    /// Processes of each version that measure a case: the speed of some programs differs from process to process.
    processes: u32,
    /// Processes, and whether each has said that it is ready.
    running: BTreeMap<Version, (Process, bool)>,
    /// Versions that are not run any more, and why.
    given_up: BTreeMap<Version, String>,
}

impl Servers<'_> {
    /// Starts all versions at once: each compiles its program and makes a context first.
    fn start(&mut self) {
        for &version in self.versions {
            if self.given_up.contains_key(&version) {
                continue;
            }
            match self.spawn(version) {
                Ok(process) => drop(self.running.insert(version, (process, false))),
                Err(error) => self.give_up(version, &error),
            }
        }
    }

    /// Does not run a version any more.
    fn give_up(&mut self, version: Version, error: &anyhow::Error) {
        println!("!! {} has no {}: {error:#}", self.program.name, version.name());
        self.running.remove(&version);
        self.given_up.insert(version, format!("{error:#}"));
    }

    fn measure(&mut self, case: &Case) -> anyhow::Result<Row> {
        let input = self.folder.join("input");
        case.input.write(&input)?;
        let mut outcomes = BTreeMap::new();
        for process in 0..self.processes {
            if process > 0 {
                self.running.clear();
                self.start();
            }
            self.measure_once(case, &input, &mut outcomes);
        }
        let outcomes = outcomes
            .into_iter()
            .map(|(version, outcome)| (version, outcome.map_err(|error| format!("{error:#}"))))
            .collect();
        Ok(Row {
            program: self.program.name,
            case: case.name.clone(),
            launches: case.launches,
            outcomes,
        })
    }

    /// Measures a case in the processes that run now.
    fn measure_once(
        &mut self,
        case: &Case,
        input: &Path,
        outcomes: &mut BTreeMap<Version, anyhow::Result<Outcome>>,
    ) {
        let versions = self.versions;
        for &version in case.versions.iter().filter(|version| versions.contains(version)) {
            let outcome = outcomes.entry(version).or_insert_with(|| Ok(Outcome::default()));
            if let Ok(measured) = outcome
                && let Err(error) = self.first_run(version, case, input, measured)
            {
                *outcome = Err(error);
            }
        }
        for turn in 0..TURNS {
            for (&version, outcome) in &mut *outcomes {
                if let Ok(measured) = outcome
                    && let Err(error) = self.turn(version, case, measured, turn + 1 == TURNS)
                {
                    *outcome = Err(error);
                }
            }
        }
    }

    /// Loads the case and runs it once.
    fn first_run(
        &mut self,
        version: Version,
        case: &Case,
        input: &Path,
        measured: &mut Outcome,
    ) -> anyhow::Result<()> {
        if let Some(reason) = self.given_up.get(&version) {
            anyhow::bail!("{NOT_RUN}: {reason}");
        }
        if let Err(error) = self.make_ready(version) {
            self.give_up(version, &error);
            return Err(error);
        }
        self.ask(version, &format!("load {}", input.display()))?;
        let cold = self.run(version, case, 1, true)?;
        let cold = cold.first().copied().context("the reply has no times")?;
        measured.processes.push(Runs { cold, warm: Vec::new() });
        Ok(())
    }

    fn turn(
        &mut self,
        version: Version,
        case: &Case,
        measured: &mut Outcome,
        checked: bool,
    ) -> anyhow::Result<()> {
        let last = measured.processes.last_mut().context("no process has run")?;
        let runs = ((TURN_MS / last.cold) as usize).clamp(1, MAX_RUNS);
        // Another process used the GPU before: the first run warms up.
        let times = self.run(version, case, runs + 1, checked)?;
        last.warm.extend(&times[1..]);
        Ok(())
    }

    /// Runs, and checks the last result if `checked`; returns the times in milliseconds.
    fn run(
        &mut self,
        version: Version,
        case: &Case,
        runs: usize,
        checked: bool,
    ) -> anyhow::Result<Vec<f64>> {
        let result = self.folder.join("result");
        let path = if checked { result.display().to_string() } else { String::new() };
        let reply = self.ask(version, &format!("run {runs} {path}"))?;
        let times = reply["ms"].as_array().context("the reply has no times")?;
        let times: Vec<f64> = times.iter().filter_map(serde_json::Value::as_f64).collect();
        ensure!(times.len() == runs, "{} times for {runs} runs", times.len());
        if checked {
            let found = words(&std::fs::read(&result)?);
            (self.program.check)(&case.input, version, &found).context("WRONG")?;
        }
        Ok(times)
    }

    /// Waits until the version's process is ready, after starting one if none runs.
    fn make_ready(&mut self, version: Version) -> anyhow::Result<()> {
        if !self.running.contains_key(&version) {
            self.running.insert(version, (self.spawn(version)?, false));
        }
        let (process, is_ready) =
            self.running.get_mut(&version).context("the process has ended")?;
        if !*is_ready {
            process.answer(START_LIMIT)?;
            *is_ready = true;
        }
        Ok(())
    }

    fn spawn(&self, version: Version) -> anyhow::Result<Process> {
        match version {
            Version::Cdp | Version::Resident => {
                let own = std::env::current_exe()?;
                let strategy = version.name();
                let arguments = ["--serve", self.program.name, "--serve-launch", strategy];
                Process::start(&own, &arguments)
            }
            Version::CudaNested | Version::CudaFlat => {
                let nested = version == Version::CudaNested;
                let built = &self.executables[usize::from(!nested)];
                let executable = built.as_ref().map_err(|error| anyhow!("{error:#}"))?;
                let pending = if nested { self.program.pending_launches } else { 0 };
                Process::start(executable, &[&pending.to_string()])
            }
        }
    }

    /// Sends a command. After an error the process is ended; a version that hung is not run again.
    fn ask(&mut self, version: Version, command: &str) -> anyhow::Result<serde_json::Value> {
        let (process, _) = self.running.get_mut(&version).context("the process has ended")?;
        let reply = process.send(command).and_then(|()| process.answer(self.limit));
        if let Err(error) = &reply {
            self.running.remove(&version);
            if error.is::<process::Hung>() {
                self.given_up.insert(version, "an earlier case hung".into());
            }
        }
        reply
    }
}
