//! Runs random launch trees, and compares which grids ran, in which order, with what the language promises.
//!
//! A tree is named by its seed: `trees --seed N --count 1 --print` shows it. The program that runs the trees is compiled
//! once for each way. A tree that hangs a GPU ends the run, because the process has lost the device.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use nvvm_tests::trees::check::Summary;
use nvvm_tests::trees::reduce::reduce;
use nvvm_tests::trees::run::{Failure, Runner, Way};
use nvvm_tests::trees::{self, Tree};

/// How many smaller trees are tried, and how often each: the order on a device differs from run to run.
const REDUCTIONS: (usize, usize) = (400, 5);

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
    /// Stop after this many failing trees
    #[arg(long, default_value_t = 3, value_name = "N")]
    failures: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.print {
        (options.seed..options.seed.saturating_add(options.count))
            .for_each(|seed| print!("{}", trees::tree(seed)));
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
        let tree = trees::tree(seed);
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
            report(&mut runner, &tree, &failure);
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

/// Prints a failure, and a smaller tree that still fails.
fn report(runner: &mut Runner, tree: &Tree, failure: &Failure) {
    println!("\nseed {}: {failure}", tree.seed);
    let (most, times) = if failure.fatal { (0, 0) } else { REDUCTIONS };
    let mut last = None;
    let mut lost = false;
    let smaller = reduce(tree, most, |tree| {
        let found = (0..times).find_map(|_| match lost {
            true => None,
            false => runner.run(tree, &[failure.way]).err(),
        });
        lost |= found.as_ref().is_some_and(|found| found.fatal);
        let fails = found.as_ref().is_some_and(|found| found.fatal == failure.fatal);
        if fails {
            last = found;
        }
        fails
    });
    print!("{smaller}");
    if let Some(last) = last {
        println!("which fails so: {last}");
    }
    println!("again: trees --seed {} --count 1 --way {}\n", tree.seed, failure.way);
}
