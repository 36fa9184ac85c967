//! The results of built-ins, tested by self-checking programs on the CPU device and, if there is
//! one, on a GPU.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::gpu::gpu_or_skip;
use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Session};
use gridlet::cpu::CpuOptions;
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Artifact, Device, LaunchConfig, Program};

const SOURCE: &str = include_str!("../in/built_ins.grid");

fn run(device: &Device, artifact: &Artifact) {
    let program = Program::load(device, artifact).unwrap();
    let stream = device.stream().unwrap();
    let mut first = program.global("first").unwrap();
    let mut word = [0_u8; 4];
    first.copy_to_host(&mut word).unwrap();
    assert_eq!(u32::from_le_bytes(word), 7, "what `first` starts as");
    first.copy_from_host(&9_u32.to_le_bytes()).unwrap();
    let kernel = program.kernel("check").unwrap();
    // Two warps, the second incomplete.
    stream.launch(&kernel, &LaunchConfig::new(2, 50), &[]).unwrap();
    stream.synchronize(Duration::from_secs(60)).unwrap();
    let mut wrong = [0_u8; 256];
    program.global("wrong").unwrap().copy_to_host(&mut wrong).unwrap();
    let counts = wrong.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let failed: Vec<(usize, u32)> = counts.enumerate().filter(|(_, count)| *count != 0).collect();
    assert!(failed.is_empty(), "checks that failed, and in how many threads: {failed:?}");
    let mut runs = [0_u8; 8];
    program.global("runs").unwrap().copy_to_host(&mut runs).unwrap();
    assert_eq!(u64::from_le_bytes(runs), 100);
    let error = program.global("second").unwrap_err().to_string();
    assert!(error.contains("`second`") && error.contains("`wrong`"), "{error}");
}

#[test]
fn built_ins_are_correct_on_the_cpu() {
    let program = compile::check(SourceMap::single("built_ins.grid", SOURCE)).unwrap();
    let statics = artifact::describe(&program, LaunchStrategy::Cdp).statics;
    let sizes: Vec<_> =
        statics.iter().map(|item| (item.name.as_str(), item.size, item.alignment)).collect();
    assert_eq!(sizes, [("first", 4, 4), ("wrong", 256, 4), ("runs", 8, 8)]);
    let artifact = artifact::build_cpu(&Session::new(), &program, &CpuOptions::default()).unwrap();
    run(&Device::open_cpu(CpuConfig::default()).unwrap(), &artifact);
}

#[test]
fn built_ins_are_correct_on_a_gpu() {
    let Some((device, arch)) = gpu_or_skip("built_ins") else { return };
    let program = compile::check(SourceMap::single("built_ins.grid", SOURCE)).unwrap();
    let options = BuildOptions::for_arch(arch);
    run(&device, &artifact::build(&Session::new(), &program, &[arch], &options).unwrap());
}
