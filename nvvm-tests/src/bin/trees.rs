//! Runs random launch trees, and compares which grids ran, in which order, with what the language promises.
//!
//! A tree is named by its seed: `trees --seed N --count 1 --print` shows it. The program that runs the trees is compiled
//! once for each way. A tree that hangs a GPU ends the run, because the process has lost the device. Smaller trees then run in processes of
//! their own.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use nvvm_tests::trees::check::Summary;
use nvvm_tests::trees::reduce::{Smaller, reduce};
use nvvm_tests::trees::run::{Failure, Runner, Way};
use nvvm_tests::trees::{self, Tree};

/// How many smaller trees are tried, and how often each: the order on a device differs from run to run.
const REDUCTIONS: (usize, usize) = (400, 5);
/// How many smaller trees run at a time if the tree hangs, and how many seconds each may take, and to start.
const TOGETHER: usize = 8;
const HANGS_AFTER: u64 = 3;
const STARTS_WITHIN: u64 = 30;
/// How a failure says that a tree hangs.
const UNFINISHED: &str = "not finished";

/// Runs random launch trees and checks what they record.
#[derive(Parser)]
struct Options {
    /// Seed of the first tree; the others follow
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// How many trees
    #[arg(long, default_value_t = 100, value_name = "N")]
    count: u64,
    /// Run on the first GPU instead of the CPU device
    #[arg(long)]
    gpu: bool,
    /// Run only in this way: cpu, cpu-few, cpu-check, cdp, resident-256-mib, or resident-least-N with 0, 100000 or 4000000
    /// bytes of launch memory more than the least
    #[arg(long, value_name = "WAY")]
    way: Vec<Way>,
    /// Time limit of a tree
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    time_out: u64,
    /// Print the trees without running them
    #[arg(long)]
    print: bool,
    /// Make the first tree smaller by these changes, which a failing run prints, and no smaller if it fails
    #[arg(long, value_delimiter = ',', value_name = "N")]
    changes: Option<Vec<usize>>,
    /// Stop after this many failing trees
    #[arg(long, default_value_t = 3, value_name = "N")]
    failures: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.print {
        for seed in options.seed..options.seed.saturating_add(options.count) {
            match changed(&options, seed) {
                Ok(tree) => print!("{tree}"),
                Err(error) => {
                    eprintln!("error: {error:#}");
                    return ExitCode::FAILURE;
                }
            }
        }
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the trees and prints the failures. Returns whether there were none.
fn run(options: &Options) -> anyhow::Result<bool> {
    let ways = match (&options.way[..], options.gpu) {
        ([], true) => Way::GPU.to_vec(),
        ([], false) => Way::CPU.to_vec(),
        (ways, _) => ways.to_vec(),
    };
    let started = Instant::now();
    let time_out = Duration::from_secs(options.time_out);
    let mut runner = Runner::new(&ways, time_out)?;
    eprintln!("compiled after {:.1} s", started.elapsed().as_secs_f64());
    let (mut ran, mut failed) = (0, vec![]);
    let mut sums = vec![(Summary::default(), Duration::ZERO); ways.len()];
    for seed in options.seed..options.seed.saturating_add(options.count) {
        let tree = changed(options, seed)?;
        ran += 1;
        let mut failure = None;
        for (&way, (sum, time)) in ways.iter().zip(&mut sums) {
            let began = Instant::now();
            match runner.run(&tree, &[way]) {
                Ok(summaries) => {
                    sum.grids += summaries.iter().map(|one| one.grids).sum::<usize>();
                    sum.refused += summaries.iter().map(|one| one.refused).sum::<usize>();
                }
                Err(found) => failure = failure.or(Some(found)),
            }
            *time += began.elapsed();
            if failure.as_ref().is_some_and(|failure| failure.fatal) {
                break;
            }
        }
        if let Some(failure) = failure {
            report(&mut runner, &tree, &failure, options.changes.as_deref());
            failed.push(seed);
            if failure.fatal || failed.len() >= options.failures {
                break;
            }
        }
        if ran % 1000 == 0 {
            eprintln!("{ran} trees after {:.0} s", started.elapsed().as_secs_f64());
        }
    }
    for (way, (sum, time)) in ways.iter().zip(&sums) {
        println!(
            "{way}: {} grids, {} launches refused, {:.1} s",
            sum.grids,
            sum.refused,
            time.as_secs_f64()
        );
    }
    println!(
        "{ran} trees from seed {}: {} failed {failed:?}; {:.1} s",
        options.seed,
        failed.len(),
        started.elapsed().as_secs_f64(),
    );
    Ok(failed.is_empty())
}

/// The tree of a seed, smaller by the changes that the options name.
fn changed(options: &Options, seed: u64) -> anyhow::Result<Tree> {
    let mut tree = Smaller::whole(&trees::tree(seed));
    for &number in options.changes.iter().flatten().filter(|_| seed == options.seed) {
        let next = tree.changed(number);
        tree = next.with_context(|| format!("the tree has no change {number}"))?;
    }
    Ok(tree.tree)
}

/// Prints a failure, and a smaller tree that still fails. `changes`: those that made this tree, if it is to be left as it is.
fn report(runner: &mut Runner, tree: &Tree, failure: &Failure, changes: Option<&[usize]>) {
    println!("\nseed {}: {failure}", tree.seed);
    let mut last = None;
    let smaller = match (changes, failure.fatal) {
        (Some(_), _) => Smaller::whole(tree),
        (None, true) => {
            reduce(tree, REDUCTIONS.0, TOGETHER, |trees| first_that_hangs(trees, failure))
        }
        (None, false) => {
            let mut lost = false;
            reduce(tree, REDUCTIONS.0, 1, |trees| {
                let found = (0..REDUCTIONS.1).find_map(|_| match lost {
                    true => None,
                    false => runner.run(&trees[0].tree, &[failure.way]).err(),
                });
                lost |= found.as_ref().is_some_and(|found| found.fatal);
                let fails = found.as_ref().is_some_and(|found| !found.fatal);
                if fails {
                    last = found;
                }
                fails.then_some(0)
            })
        }
    };
    print!("{}", smaller.tree);
    if let Some(last) = last {
        println!("which fails so: {last}");
    }
    let changes = match changes.unwrap_or(&smaller.changes) {
        [] => String::new(),
        numbers => format!(" --changes {}", listed(numbers)),
    };
    println!("again: trees --seed {} --count 1 --way {}{changes}\n", tree.seed, failure.way);
}

fn listed(changes: &[usize]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Runs trees at the same time. Others start when all of these have ended.
fn first_that_hangs(trees: &[Smaller], failure: &Failure) -> Option<usize> {
    let hang: Vec<bool> = std::thread::scope(|scope| {
        let run = |tree| scope.spawn(move || hangs(tree, failure));
        let running: Vec<_> = trees.iter().map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or(false)).collect()
    });
    let first = hang.into_iter().position(|hangs| hangs)?;
    eprintln!("hangs, too: --changes {}", listed(&trees[first].changes));
    Some(first)
}

/// Whether a tree fails in the same way in a process of its own, which ends with the GPU that it may lose.
fn hangs(tree: &Smaller, failure: &Failure) -> bool {
    let Ok(program) = std::env::current_exe() else { return false };
    let mut command = Command::new("timeout");
    command.arg("--kill-after=5").arg((STARTS_WITHIN + HANGS_AFTER).to_string()).arg(program);
    command.args(["--gpu", "--count", "1", "--seed", &tree.tree.seed.to_string()]);
    command.args(["--way", &failure.way.to_string(), "--changes", &listed(&tree.changes)]);
    command.args(["--time-out", &HANGS_AFTER.to_string()]);
    let Ok(output) = command.stderr(Stdio::null()).output() else { return false };
    // A tree without some of its steps may also fail for another reason, such as a sum that is too small.
    output.status.code() == Some(1) && String::from_utf8_lossy(&output.stdout).contains(UNFINISHED)
}
