//! Random launch trees on the CPU device, and proof that the check of their records can fail. The program `trees` runs
//! them on a GPU and in large numbers.

use std::time::Duration;

use gridlet::compile::{BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use nvvm_tests::trees::check::{Summary, check};
use nvvm_tests::trees::reduce::{Smaller, reduce};
use nvvm_tests::trees::run::{Runner, Way};
use nvvm_tests::trees::tables::{NOT_TRIED, Results, Tables};
use nvvm_tests::trees::{self, Kernel, Stream, Tree, VARIANTS};
use nvvm_tests::{FOR_LINKING, differential, toolchain_or_skip};

const TIME_OUT: Duration = Duration::from_secs(120);
const CPU: Way = Way::CPU[0];
const FEW: Way = Way::CPU[1];
const CHECK: Way = Way::CPU[2];

fn runner(ways: &[Way]) -> Runner {
    Runner::new(ways, TIME_OUT).unwrap()
}

#[test]
fn random_trees_run_on_the_cpu_as_the_language_promises() {
    let mut runner = runner(&[CPU, FEW]);
    let mut sums = [Summary::default(); 2];
    for seed in 0..300 {
        let summaries = runner.run(&trees::tree(seed), &[CPU, FEW]).unwrap_or_else(|failure| {
            panic!("seed {seed}: {failure}\nto see it: cargo run -p nvvm-tests --bin trees -- --seed {seed} --count 1")
        });
        for (sum, one) in sums.iter_mut().zip(summaries) {
            sum.grids += one.grids;
            sum.refused += one.refused;
        }
    }
    let [all, few] = sums;
    assert!(all.grids > 50_000 && all.refused == 0, "{all:?}");
    assert!(few.grids > 10_000 && few.refused > 1_000, "{few:?}");
}

#[test]
fn random_trees_have_no_races() {
    let mut runner = runner(&[CHECK]);
    let small = (1000..).map(trees::tree).filter(|tree| Tables::new(tree, false).words() < 30_000);
    for tree in small.take(12) {
        runner.run(&tree, &[CHECK]).unwrap_or_else(|failure| panic!("{failure}\n{tree}"));
    }
}

/// What the check says of the first tree whose results the change breaks.
fn said(runner: &mut Runner, mut change: impl FnMut(&Tables<'_>, &mut Results) -> bool) -> String {
    for seed in 0.. {
        let tree = trees::tree(seed);
        let tables = Tables::new(&tree, false);
        let words = runner.execute(&tree, &tables, CPU).unwrap();
        let mut results = tables.results(&words);
        check(&tables, &results, false).unwrap();
        if change(&tables, &mut results) {
            return check(&tables, &results, false).unwrap_err();
        }
    }
    unreachable!()
}

/// The first record of a grid in this stream.
fn first_in(tables: &Tables<'_>, stream: Stream) -> Option<usize> {
    let node = tables
        .nodes
        .iter()
        .find(|node| node.grid.is_some() && node.step.is_some_and(|step| step.stream == stream));
    node.map(|node| node.first_record as usize)
}

/// Two records of one thread's launches into the same stream, the first of which ran first.
fn pair_in(tables: &Tables<'_>, results: &Results, stream: Stream) -> Option<(usize, usize)> {
    let node = tables.nodes.iter().find(|node| {
        let by_one = node
            .step
            .is_some_and(|step| step.stream == stream && step.is_by_one() && step.times > 1);
        node.grid.is_some() && by_one && tables.nodes[node.parent].records == 1
    })?;
    let mut records: Vec<_> = (node.first_record as usize..).take(node.records as usize).collect();
    records.sort_by_key(|record| results.records[*record].start);
    Some((records[0], records[1]))
}

#[test]
fn each_broken_promise_is_seen() {
    let runner = &mut runner(&[CPU]);
    type Change = fn(&Tables<'_>, &mut Results) -> bool;
    let changes: [(Change, &str); 17] = [
        (
            |_, results| {
                results.records[0].threads += 1;
                true
            },
            "threads ran instead of",
        ),
        (
            |_, results| {
                results.records[0].sum ^= 1;
                true
            },
            "not every thread ran once",
        ),
        (
            |_, results| {
                results.records[0].wrong = 1;
                true
            },
            "wrong values",
        ),
        (
            |_, results| {
                results.records[0].missing = 1;
                true
            },
            "did not see 1 of the marks",
        ),
        (
            |_, results| {
                results.marks[0] ^= 2;
                true
            },
            "its mark 0 is",
        ),
        (
            |_, results| results.marks.iter_mut().skip(1).any(|mark| std::mem::take(mark) != 0),
            "instead of",
        ),
        (
            |_, results| {
                results.launched.len() > 1 && {
                    results.launched[1] += 1;
                    true
                }
            },
            "times instead of",
        ),
        (
            |_, results| {
                results.records.len() > 1 && {
                    results.records[1].status = 69;
                    true
                }
            },
            "that was not launched",
        ),
        (
            |_, results| {
                // A grid that never was, without a trace.
                let last = results.records.len() - 1;
                let record = &mut results.records[last];
                (record.status, record.start, record.threads) = (NOT_TRIED, u32::MAX, 0);
                last > 0
            },
            "must launch it by the threads",
        ),
        (
            |_, results| {
                results.records.len() > 1 && {
                    results.records[1].thread += 1;
                    true
                }
            },
            "must launch it by the threads",
        ),
        (
            |_, results| {
                results.records.len() > 1 && {
                    results.records[1].step += 1;
                    true
                }
            },
            "launched by another step",
        ),
        (
            |_, results| {
                results.records.len() > 1 && results.records[1].start != u32::MAX && {
                    let record = &mut results.records[1];
                    record.start = record.launched - 1;
                    true
                }
            },
            "started before its launch",
        ),
        (
            |tables, results| {
                first_in(tables, Stream::Tail).is_some_and(|tail| {
                    let parent = results.records[tail].parent as usize;
                    results.records[parent].end = results.records[tail].start + 1;
                    true
                })
            },
            "before all else of its parent ended",
        ),
        (
            |tables, results| {
                pair_in(tables, results, Stream::Default).is_some_and(|(first, second)| {
                    results.records[first].end = results.records[second].start + 1;
                    true
                })
            },
            "of its stream, with all that it launched, ended",
        ),
        (
            |tables, results| {
                pair_in(tables, results, Stream::Tail).is_some_and(|(first, second)| {
                    results.records[first].end = results.records[second].start + 1;
                    true
                })
            },
            "ended",
        ),
        (
            |tables, results| {
                pair_in(tables, results, Stream::Default).is_some_and(|(first, second)| {
                    let launched = results.records[first].launched;
                    results.records[first].launched = results.records[second].launched;
                    results.records[second].launched = launched;
                    results.records[first].start > results.records[first].launched
                })
            },
            "its thread launched it before record",
        ),
        (
            |tables, results| {
                tables.joins.first().is_some_and(|join| {
                    let node = &tables.nodes[join.node];
                    results.launched[join.node] = 0;
                    results.records[node.first_record as usize].status = NOT_TRIED;
                    true
                })
            },
            "",
        ),
    ];
    for (change, expected) in changes {
        let said = said(runner, change);
        assert!(said.contains(expected), "{said}\nexpected: {expected}");
    }
}

/// Whether one of the first trees fails with a program in which a text is replaced.
fn fails_with(from: &str, to: &str) -> bool {
    let source = |variant: trees::Variant| {
        let source = variant.source();
        assert!(source.contains(from));
        source.replace(from, to)
    };
    let mut runner = Runner::of(&[CPU], TIME_OUT, source).unwrap();
    (0..200).map(trees::tree).any(|tree| runner.run(&tree, &[CPU]).is_err())
}

#[test]
fn programs_that_break_a_promise_fail() {
    for (from, to) in [
        // Other streams than the tree says.
        ("stream = tail", "stream = fire_and_forget"),
        ("stream = *s", "stream = fire_and_forget"),
        ("return in_order(tree, node, record, attempt);", "return forget(tree, node, record);"),
        // A launch too many, and one too few.
        ("for _ in 0..step.times {", "for _ in 0..step.times + step.times / 40 {"),
        ("for _ in 0..step.times {", "for _ in 0..min(step.times, 39) {"),
        // The join's grid comes before the last member.
        ("!= join.members - 1", "!= 0"),
        // A block without its barrier before the second phase.
        ("for phase in 0u32..2 {\n        sync_threads();", "for phase in 0u32..2 {"),
    ] {
        assert!(fails_with(from, to), "no tree fails with `{to}` instead of `{from}`");
    }
}

#[test]
fn failing_trees_become_small() {
    let kernels = |tree: &Tree| {
        let tables = Tables::new(tree, false);
        let grids = tables.nodes.iter().filter_map(|node| node.grid);
        grids.map(|grid| grid.kernel).collect::<Vec<_>>()
    };
    let fails = |tree: &Tree| kernels(tree).contains(&Kernel::Meeting);
    for tree in (0..50).map(trees::tree).filter(fails) {
        let first = |trees: &[Smaller]| trees.iter().position(|smaller| fails(&smaller.tree));
        let Smaller { tree: smaller, changes } = reduce(&tree, 2000, 1, first);
        let together = reduce(&tree, 2000, 8, first);
        assert_eq!(together.changes, changes);
        let again = changes.iter().try_fold(Smaller::whole(&tree), |tree, at| tree.changed(*at));
        assert_eq!(again.unwrap().tree.to_string(), smaller.to_string());
        // The root, the grid, and if that is a join's, the member that launches it.
        assert!(fails(&smaller) && kernels(&smaller).len() <= 3, "{smaller}");
    }
}

#[test]
fn the_program_of_the_trees_builds_for_gpus() {
    let test = "the_program_of_the_trees_builds_for_gpus";
    if toolchain_or_skip(test, &FOR_LINKING).is_none() {
        return;
    }
    // For `resident` only up to NVVM IR, because assembling takes long.
    let checked = differential::check(&VARIANTS[2].source()).unwrap();
    let options = |launch: LaunchStrategy| BuildOptions::default().with_launch(launch.into());
    Session::new().cubin(&checked, &options(LaunchStrategy::Cdp)).unwrap();
    gridlet::compile::nvvm(&checked, &options(LaunchStrategy::Resident)).unwrap();
}
