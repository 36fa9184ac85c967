//! Every example on the CPU device, checked against plain Rust: in several orders, and on one worker.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::compile::{self, Session};
use gridlet::cpu::CpuOptions;
use gridlet::source::SourceMap;
use gridlet_examples::{EXAMPLES, PENDING_LAUNCHES, Run};
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Device, GreenContext, Program, Stream};

fn open(seed: Option<u64>) -> Device {
    let device = Device::open_cpu(CpuConfig { seed, ..CpuConfig::default() }).unwrap();
    device.set_pending_launch_limit(PENDING_LAUNCHES).unwrap();
    device
}

fn run_all(device: &Device, stream: &Stream, shrink: u32) {
    run_compiled(device, stream, shrink, &CpuOptions::default());
}

fn run_compiled(device: &Device, stream: &Stream, shrink: u32, options: &CpuOptions) {
    let session = Session::new();
    let pictures = tempfile::tempdir().unwrap();
    for example in &EXAMPLES {
        let sources = SourceMap::single(format!("{}.grid", example.name), example.source);
        let program = compile::check(sources).unwrap();
        let artifact = gridlet::artifact::build_cpu(&session, &program, options).unwrap();
        let program = Program::load(device, &artifact).unwrap();
        let run = Run { device, stream, program: &program, pictures: pictures.path(), shrink };
        let finding =
            (example.run)(&run).unwrap_or_else(|error| panic!("{}: {error:#}", example.name));
        eprintln!("{}: {:.2} ms, {}", example.name, finding.milliseconds, finding.checked);
    }
}

#[test]
fn the_examples_are_right_on_all_workers() {
    let device = open(None);
    run_all(&device, &device.stream().unwrap(), 2);
}

#[test]
fn the_examples_are_right_in_any_order() {
    for seed in 1..=3 {
        let device = open(Some(seed));
        run_all(&device, &device.stream().unwrap(), 8);
    }
}

#[test]
fn the_examples_are_right_on_one_worker() {
    let device = open(Some(3));
    let part = GreenContext::with_sms(&device, 1).unwrap();
    assert_eq!(part.sm_count(), 1);
    run_all(&device, &part.stream().unwrap(), 8);
}

/// A finding of the checker would be the error of the example's wait.
#[test]
fn the_examples_are_checked_without_a_report() {
    let config = CpuConfig { seed: Some(2), check: true, ..CpuConfig::default() };
    let device = Device::open_cpu(config).unwrap();
    device.set_pending_launch_limit(PENDING_LAUNCHES).unwrap();
    let options = CpuOptions { check: true, ..CpuOptions::default() };
    run_compiled(&device, &device.stream().unwrap(), 8, &options);
}
