//! Every example and sample on a GPU, with each launch strategy, compared with the host. Without a GPU, each test prints that it was skipped; with
//! `GRIDLET_REQUIRE_GPU=1` it fails instead.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::arch::CudaArch;
use gridlet::compile::{self, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet_examples::samples::SAMPLES;
use gridlet_examples::samples::recursive_print::{self, Line, check_tree};
use gridlet_examples::{EXAMPLES, PENDING_LAUNCHES, Run};
use gridlet_runtime::{Device, GreenContext, Program, Stream};

mod support;

/// The first GPU; if there is none, prints that `test` is skipped.
fn device_or_skip(test: &str) -> Option<Device> {
    let error = match Device::open(0) {
        Ok(device) => return Some(device),
        Err(error) => error,
    };
    let text = format!("SKIPPED: {test} needs an NVIDIA GPU: {error}");
    let required = std::env::var_os("GRIDLET_REQUIRE_GPU").is_some_and(|value| value == "1");
    assert!(!required, "{text}");
    eprintln!("{text}");
    None
}

fn run_all(device: &Device, stream: &Stream) {
    let capability = device.info().compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor)
        .expect("an architecture for this GPU");
    let session = Session::new();
    let pictures = tempfile::tempdir().unwrap();
    for example in EXAMPLES.iter().chain(&SAMPLES) {
        let sources = SourceMap::single(format!("{}.grid", example.name), example.source);
        let program = compile::check(sources).unwrap();
        for launch in LaunchStrategy::ALL {
            let options = BuildOptions::default().with_launch(launch.into());
            let artifact = gridlet::artifact::build(&session, &program, &[arch], &options).unwrap();
            let program = Program::load(device, &artifact).unwrap();
            let pictures = pictures.path();
            let run = Run { device, stream, program: &program, pictures, shrink: 1 };
            let name = format!("{} ({launch})", example.name);
            let finding = (example.run)(&run).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            eprintln!("{name}: {:.2} ms, {}", finding.milliseconds, finding.checked);
        }
    }
}

/// One test, because the pool of pending launches is sized before the first kernel of a process. It runs in a child
/// process, because the test harness does not capture a GPU's output.
#[test]
fn the_examples_are_right_in_the_primary_context_and_in_a_green_context_of_16_sms() {
    let test = "the_examples_are_right_in_the_primary_context_and_in_a_green_context_of_16_sms";
    if device_or_skip(test).is_none() {
        return;
    }
    let run = || {
        let device = device_or_skip(test).expect("the GPU that was there before");
        device.set_pending_launch_limit(PENDING_LAUNCHES).unwrap();
        let stream = device.stream().unwrap();
        run_all(&device, &stream);

        let green = GreenContext::with_sms(&device, 16).unwrap();
        assert!(green.sm_count() >= 16 && green.sm_count() < device.info().sm_count);
        let stream = green.stream().unwrap();
        run_all(&device, &stream);
    };
    let Some(printed) = support::printed(test, run) else { return };
    let lines: Vec<Line> = printed.lines().filter_map(Line::parse).collect();
    let runs = 2 * LaunchStrategy::ALL.len();
    assert_eq!(lines.len(), runs * recursive_print::tree_size(), "{printed}");
    for run in lines.chunks(recursive_print::tree_size()) {
        check_tree(run).unwrap_or_else(|error| panic!("{error:#}\n{printed}"));
    }
}
