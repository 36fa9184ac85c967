//! Every operator, conversion and function of the language at the edges of its types, on the CPU
//! device and, through each back end, on a GPU, compared with a reference in Rust.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

mod cases;
mod nested;
mod reference;
mod values;

use std::time::Duration;

use crate::gpu::gpu_or_skip;
use cases::Case;
use gridlet::artifact;
use gridlet::builtins::Builtin;
use gridlet::compile::{self, Backend, BuildOptions, Checked, Session};
use gridlet::cpu::CpuOptions;
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Arg, Artifact, Buffer, Device, LaunchConfig, Program};

/// Kernels per program.
const KERNELS: usize = 128;
const BLOCK: u32 = 128;

/// Runs every case and returns the failures, with a few results of each.
fn run(
    device: &Device,
    build: impl Fn(&Checked) -> Artifact,
    cases: &[Case],
    is_gpu: bool,
) -> Vec<String> {
    let mut wrong = vec![];
    for chunk in cases.chunks(KERNELS) {
        let source: String =
            chunk.iter().enumerate().map(|(at, case)| case.source(&format!("k{at}"))).collect();
        let program = compile::check(SourceMap::single("edges.grid", source)).unwrap();
        let program = Program::load(device, &build(&program)).unwrap();
        let stream = device.stream().unwrap();
        for (at, case) in chunk.iter().enumerate() {
            let count = case.expected.len();
            let to_bytes = |values: &Vec<u64>, size: u64| -> Vec<u8> {
                values
                    .iter()
                    .flat_map(|v| v.to_le_bytes().into_iter().take(size as usize))
                    .collect()
            };
            let inputs: Vec<Buffer<u8>> = case
                .operands
                .iter()
                .zip(&case.inputs)
                .map(|(values, scalar)| to_bytes(values, scalar.size()))
                .map(|bytes| Buffer::from_slice(device, &bytes).unwrap())
                .collect();
            let size = case.output.size() as usize;
            let mut output = Buffer::<u8>::alloc_zeroed(device, count * size).unwrap();
            let mut arguments: Vec<Arg<'_>> = inputs.iter().map(Arg::from).collect();
            arguments.push(Arg::from(&mut output));
            arguments.push(Arg::from(count as u32));
            let kernel = program.kernel(&format!("k{at}")).unwrap();
            let config = LaunchConfig::new((count as u32).div_ceil(BLOCK), BLOCK);
            stream.launch(&kernel, &config, &arguments).unwrap();
            stream.synchronize(Duration::from_secs(60)).unwrap();
            let found = output.to_vec().unwrap();
            let results = found
                .chunks_exact(size)
                .map(|bytes| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)));
            let of_case = results.enumerate().filter_map(|(at, bits)| case.wrong(at, bits, is_gpu));
            wrong.extend(of_case.take(3));
        }
    }
    wrong
}

fn check(way: &str, wrong: Vec<String>) {
    let shown = wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{way}: {} results are wrong, among them\n{shown}", wrong.len());
}

fn check_on_cpu(cases: &[Case], ways: &[CpuOptions]) {
    let session = Session::new();
    for options in ways {
        let config = CpuConfig { check: options.check, ..CpuConfig::default() };
        let device = Device::open_cpu(config).unwrap();
        let build = |program: &Checked| artifact::build_cpu(&session, program, options).unwrap();
        check(&format!("{options:?}"), run(&device, build, cases, false));
    }
}

/// For this machine's processor, optimised and not.
fn native() -> [CpuOptions; 2] {
    [true, false].map(|optimize| CpuOptions::default().with_optimize(optimize))
}

fn check_on_gpu(test: &str, cases: &[Case]) {
    let Some((device, arch)) = gpu_or_skip(test) else { return };
    let session = Session::new();
    for (backend, optimize) in
        [(Backend::LibNvvm, true), (Backend::LibNvvm, false), (Backend::Nvptx, true)]
    {
        let options = BuildOptions::for_arch(arch).with_backend(backend).with_optimize(optimize);
        let build =
            |program: &Checked| artifact::build(&session, program, &[arch], &options).unwrap();
        check(&format!("{backend:?}, optimize: {optimize}"), run(&device, build, cases, true));
    }
}

#[test]
fn edge_values_match_the_reference_on_the_cpu() {
    check_on_cpu(&cases::all(), &native());
}

#[test]
fn edge_values_match_the_reference_on_a_gpu() {
    check_on_gpu("edge_values", &cases::all());
}

#[test]
fn every_half_matches_the_reference_on_the_cpu() {
    check_on_cpu(&cases::halves(), &native());
}

#[test]
fn every_half_matches_the_reference_on_a_gpu() {
    check_on_gpu("halves", &cases::halves());
}

#[test]
fn nested_expressions_match_the_reference_on_the_cpu() {
    // Checked images compute one value at a time, the others many at once.
    let checked = CpuOptions::default().with_check(true);
    let [optimized, plain] = native();
    check_on_cpu(&nested::all(), &[optimized, plain, checked, CpuOptions::portable()]);
}

#[test]
fn nested_expressions_match_the_reference_on_a_gpu() {
    check_on_gpu("nested_expressions", &nested::all());
}

/// Built-ins tested elsewhere: the test `built_ins` runs those that act on memory or on other
/// threads, in `in/built_ins.grid`; the tests named here run the rest.
const ELSEWHERE: [(&str, &str, &str); 7] = [
    ("printf", "run_cpu", include_str!("../../../cli/tests/suite/run_cpu.rs")),
    ("trap", "devices", include_str!("../../../cli/tests/support/devices.rs")),
    ("stream_create", "check_mode", include_str!("../../in/right/streams.grid")),
    ("stream_destroy", "check_mode", include_str!("../../in/right/streams.grid")),
    ("memcpy_async", "check_mode", include_str!("../../in/right/streams.grid")),
    ("memset_async", "check_mode", include_str!("../../in/right/streams.grid")),
    ("device_last_error", "run_cpu", include_str!("../../../cli/tests/suite/run_cpu.rs")),
];

#[test]
fn every_built_in_is_in_the_table_or_in_another_test() {
    let table = cases::all();
    for builtin in Builtin::ALL {
        let name = builtin.name();
        let calls = |text: &str| {
            let (plain, generic) = (format!("{name}("), format!("{name}::<"));
            text.match_indices(&plain).chain(text.match_indices(&generic)).any(|(at, _)| {
                !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            })
        };
        let covered = match builtin.properties().is_function() {
            true => table.iter().any(|case| calls(&case.name)),
            false => match ELSEWHERE.iter().find(|(known, ..)| *known == name) {
                Some((_, _, text)) => calls(text),
                None => calls(include_str!("../../in/built_ins.grid")),
            },
        };
        assert!(covered, "no test runs `{name}`");
    }
}
