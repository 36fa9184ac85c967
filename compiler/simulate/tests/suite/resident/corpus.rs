//! Runs the self-checking programs of `in/ok` that launch.

use gridlet_lang::launch::{self, LaunchStrategy};
use gridlet_simulate::{Device, FailureKind, Grid, Options, Policy};

use super::{Nested, Root, Workers};
use crate::corpus::{self, Case, WORDS};

/// Programs that take hundreds of millions of operations.
const LONG: [&str; 1] = ["fills_of_any_bytes.grid"];

fn cases() -> Vec<Case> {
    let mut cases = corpus::cases(true);
    cases.retain(|case| !LONG.contains(&case.name.as_str()));
    assert!(cases.len() > 20, "only {} programs", cases.len());
    cases
}

fn workers(seed: u64) -> Workers {
    let seed = seed as u32;
    Workers { count: 1 + (seed + 1) % 4, more_warps: seed % 2, more_records: 4000 }
}

/// Runs `test` and `check`; gives the races.
fn run(
    nested: &Nested,
    grid: Grid,
    workers: &Workers,
    options: &Options,
) -> Result<Vec<String>, String> {
    let mut device = Device::new(&nested.program);
    let out = device.allocate(WORDS * 4);
    let memory = nested.memory(&mut device, workers);
    let nests = launch::runs_resident(&nested.checked.module, LaunchStrategy::Resident);
    let mut races = vec![];
    for (kernel, grid) in [("test", grid), ("check", Grid::new(1, 1))] {
        let Some(number) = nested.kernel(kernel) else { continue };
        let parameters = out.to_le_bytes();
        let launched = if nests[number] {
            let root = Root { kernel, grid, parameters: &parameters };
            nested.launch(&mut device, memory, &root, workers, options)
        } else {
            device.launch(kernel, grid, &parameters, options)
        };
        match launched {
            Ok(outcome) => races.extend(outcome.races),
            // The search for races is slow, so it may stop early.
            Err(failure) if options.races && failure.kind == FailureKind::Endless => {
                races.extend(failure.races);
                return Ok(races);
            }
            Err(failure) => return Err(failure.to_string()),
        }
        let lost = nested.lost(&device);
        if lost[0] != 0 {
            return Err(format!("lost launches: {lost:?}"));
        }
    }
    Ok(races)
}

#[test]
fn self_checking_programs_pass_as_resident_launches() {
    let mut failed = vec![];
    for (at, case) in (0..).zip(cases()) {
        let nested = Nested::of(case.checked);
        for seed in at..at + 3 {
            let policy = Policy::ALL[seed as usize % Policy::ALL.len()];
            let (weak, lockstep) = (seed % 2 == 1, seed % 3 == 0);
            let tick = [1, 100, u64::MAX][seed as usize % 3];
            let seeded = Options::seed(seed);
            let options =
                Options { policy, weak, lockstep, tick, max_steps: 200_000_000, ..seeded };
            let result = run(&nested, case.grid, &workers(seed), &options);
            failed.extend(result.err().map(|text| format!("{}: {options:?}: {text}", case.name)));
        }
    }
    assert!(failed.is_empty(), "{} of them:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn nothing_in_the_scheduler_is_unordered() {
    let mut found = vec![];
    for case in cases() {
        let nested = Nested::of(case.checked);
        for seed in 0..8 {
            let tick = [1, 100, u64::MAX][seed as usize % 3];
            let options =
                Options { races: true, tick, max_steps: 1_000_000, ..Options::seed(seed) };
            let races = run(&nested, case.grid, &workers(seed), &options);
            let races = races.unwrap_or_else(|text| panic!("{}: {options:?}: {text}", case.name));
            found.extend(races.into_iter().map(|race| format!("{} {seed}: {race}", case.name)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
