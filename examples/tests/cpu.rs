//! Every example and sample on the CPU device, compared with plain Rust: in several orders, on one worker, and under
//! `--check`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::compile::{self, Session};
use gridlet::cpu::CpuOptions;
use gridlet::source::SourceMap;
use gridlet_examples::kernels;
use gridlet_examples::nested::{self, Nested, Place, SUITE, Size, Version, run_once};
use gridlet_examples::samples::recursive_print::{Line, check_tree};
use gridlet_examples::samples::{SAMPLES, recursive_print};
use gridlet_examples::{EXAMPLES, Example, PENDING_LAUNCHES, Run};
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Artifact, Device, GreenContext, Program, Stream};

mod support;

fn open(config: CpuConfig) -> Device {
    let device = Device::open_cpu(config).unwrap();
    device.set_pending_launch_limit(PENDING_LAUNCHES).unwrap();
    device
}

fn with_seed(seed: Option<u64>) -> Device {
    open(CpuConfig { seed, ..CpuConfig::default() })
}

/// The program for the CPU, with or without checks of each access.
fn build(example: &Example, check: bool) -> Artifact {
    let sources = SourceMap::single(format!("{}.grid", example.name), example.source);
    let program = compile::check(sources).unwrap();
    let options = CpuOptions::default().with_check(check);
    gridlet::artifact::build_cpu(&Session::new(), &program, &options).unwrap()
}

fn run_one(device: &Device, stream: &Stream, example: &Example, artifact: &Artifact, shrink: u32) {
    let pictures = tempfile::tempdir().unwrap();
    let program = Program::load(device, artifact).unwrap();
    let run = Run { device, stream, program: &program, pictures: pictures.path(), shrink };
    let finding = (example.run)(&run).unwrap_or_else(|error| panic!("{}: {error:#}", example.name));
    eprintln!("{}: {:.2} ms, {}", example.name, finding.milliseconds, finding.checked);
}

fn run_all(device: &Device, stream: &Stream, shrink: u32) {
    for example in &EXAMPLES {
        run_one(device, stream, example, &build(example, false), shrink);
    }
}

/// Results hold in any order, and the checker finds nothing.
fn sample_is_right(example: &Example, shrink: u32, shrink_checked: u32) {
    let artifact = build(example, false);
    for seed in [None, Some(1), Some(2), Some(3)] {
        let device = with_seed(seed);
        run_one(&device, &device.stream().unwrap(), example, &artifact, shrink);
    }
    for seed in [None, Some(4)] {
        let device = open(CpuConfig { seed, check: true, ..CpuConfig::default() });
        run_one(&device, &device.stream().unwrap(), example, &build(example, true), shrink_checked);
    }
}

#[test]
fn the_examples_are_right_on_all_workers() {
    let device = with_seed(None);
    run_all(&device, &device.stream().unwrap(), 2);
}

#[test]
fn the_examples_are_right_in_any_order() {
    for seed in 1..=3 {
        let device = with_seed(Some(seed));
        run_all(&device, &device.stream().unwrap(), 8);
    }
}

#[test]
fn the_examples_are_right_on_one_worker() {
    let device = with_seed(Some(3));
    let part = GreenContext::with_sms(&device, 1).unwrap();
    assert_eq!(part.sm_count(), 1);
    run_all(&device, &part.stream().unwrap(), 8);
}

/// A finding of the checker would be the error of the example's wait.
#[test]
fn the_examples_are_checked_without_a_report() {
    let device = open(CpuConfig { seed: Some(2), check: true, ..CpuConfig::default() });
    device.set_pending_launch_limit(PENDING_LAUNCHES).unwrap();
    for example in &EXAMPLES {
        run_one(&device, &device.stream().unwrap(), example, &build(example, true), 8);
    }
}

#[test]
fn recursive_print_prints_the_tree() {
    let name = "recursive_print_prints_the_tree";
    let sample = || sample_is_right(&recursive_print::EXAMPLE, 1, 1);
    let Some(printed) = support::printed(name, sample) else { return };
    let lines: Vec<Line> = printed.lines().filter_map(Line::parse).collect();
    assert_eq!(lines.len(), 6 * recursive_print::tree_size(), "{printed}");
    for run in lines.chunks(recursive_print::tree_size()) {
        check_tree(run).unwrap_or_else(|error| panic!("{error:#}\n{printed}"));
    }
}

#[test]
fn simple_quicksort_is_right() {
    sample_is_right(&SAMPLES[1], 10, 20);
}

#[test]
fn advanced_quicksort_is_right() {
    sample_is_right(&SAMPLES[2], 30, 100);
}

#[test]
fn bezier_is_right() {
    sample_is_right(&SAMPLES[3], 1, 4);
}

#[test]
fn quadtree_is_right() {
    sample_is_right(&SAMPLES[4], 1, 2);
}

/// The small inputs of a program of the suite, in two orders and under the checker.
fn suite_is_right(program: &Nested) {
    let sources = SourceMap::single(format!("{}.grid", program.name), program.source);
    let checked = compile::check(sources).unwrap();
    for (seed, check) in [(None, false), (Some(1), false), (Some(2), true)] {
        let options = CpuOptions::default().with_check(check);
        let artifact = gridlet::artifact::build_cpu(&Session::new(), &checked, &options).unwrap();
        let device = open(CpuConfig { seed, check, ..CpuConfig::default() });
        device.set_pending_launch_limit(program.pending_launches).unwrap();
        let stream = device.stream().unwrap();
        let loaded = Program::load(&device, &artifact).unwrap();
        let place = Place { device, stream, program: loaded };
        for case in (program.cases)(Size::Small) {
            let said = run_once(program, &place, &case, Version::Cdp);
            let said = said.unwrap_or_else(|error| panic!("{error:#}"));
            eprintln!("{}, {}: {said}", program.name, case.name);
        }
    }
}

/// A test for each program of the suite, named like it.
mod suite {
    use super::*;

    macro_rules! tests {
        ($($name:ident)*) => {
            $(#[test]
            fn $name() {
                suite_is_right(&nested::$name::PROGRAM);
            })*

            #[test]
            fn each_program_has_a_test() {
                assert_eq!(SUITE.map(|program| program.name), [$(stringify!($name)),*]);
            }
        };
    }

    tests! { patterns mandelbrot uts simple_quicksort quicksort bfs sssp queens segments colouring triangles refinement bezier cholesky quadtree }
}

/// The small cases of the plain kernels, in two orders and under the checker, compared with plain Rust.
#[test]
fn the_plain_kernels_are_right() {
    let mut wrong = Vec::new();
    for plain in kernels::kernels() {
        let sources = SourceMap::single(format!("{}.grid", plain.name), plain.source);
        let checked = compile::check(sources).unwrap();
        let mut run = |seeds: &[Option<u64>], check: bool| {
            let options = CpuOptions::default().with_check(check);
            let artifact = gridlet::artifact::build_cpu(&Session::new(), &checked, &options);
            let artifact = artifact.unwrap();
            for &seed in seeds {
                let device = open(CpuConfig { seed, check, ..CpuConfig::default() });
                let program = Program::load(&device, &artifact).unwrap();
                if let Err(error) = kernels::run_small(&plain, &device, &program) {
                    wrong.push(format!("seed {seed:?}, check {check}: {error:#}"));
                }
            }
        };
        run(&[None, Some(1)], false);
        run(&[Some(2)], true);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
