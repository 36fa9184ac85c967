//! Modules of other compilers with atomic operations, on the CPU device and, through each back end, on a GPU.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::time::Duration;

use crate::gpu::gpu_or_skip;
use gridlet::artifact;
use gridlet::compile::{Backend, BuildOptions, Session};
use gridlet::cpu::CpuOptions;
use gridlet::inkwell::context::Context;
use gridlet::modules::Own;
use gridlet::target::Target;
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Arg, Buffer, Device, LaunchConfig, Program};

const TIMEOUT: Duration = Duration::from_secs(60);
const WORDS: usize = 24;

/// Compiles a module, runs its kernels `test` and then `check`, and returns what they wrote.
fn run(
    device: &Device,
    text: &str,
    target: Target,
    cuda: &BuildOptions,
    cpu: &CpuOptions,
    config: &LaunchConfig,
) -> Vec<u32> {
    let context = Context::create();
    let own = Own::read(&context, "module.ll", text.as_bytes()).unwrap();
    let bundle = artifact::build_own(&Session::new(), &own, &[target], cuda, cpu);
    let program = Program::load(device, &bundle.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let stream = device.stream().unwrap();
    let out = Buffer::<u32>::alloc_zeroed(device, WORDS).unwrap();
    for (kernel, config) in [("test", config), ("check", &LaunchConfig::new(1, 1))] {
        let kernel = program.kernel(kernel).unwrap();
        stream.launch(&kernel, config, &[Arg::address(out.address())]).unwrap();
        stream.synchronize(TIMEOUT).unwrap();
    }
    out.to_vec().unwrap()
}

/// What a module writes on the CPU device with several numbers of workers and, if there is one, on a GPU through each back end.
fn everywhere(
    test: &str,
    text: &str,
    config: &LaunchConfig,
    threads: &[usize],
) -> Vec<(String, Vec<u32>)> {
    let mut said = vec![];
    for optimize in [false, true] {
        for threads in threads {
            let cpu = CpuConfig { threads: Some(*threads), ..CpuConfig::default() };
            let device = Device::open_cpu(cpu).unwrap();
            let options = CpuOptions::default().with_optimize(optimize);
            let words = run(&device, text, Target::Cpu, &BuildOptions::default(), &options, config);
            said.push((format!("CPU, {threads} workers, optimised: {optimize}"), words));
        }
    }
    let Some((device, arch)) = gpu_or_skip(test) else { return said };
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        for optimize in [false, true] {
            let options =
                BuildOptions::for_arch(arch).with_backend(backend).with_optimize(optimize);
            let target = Target::Cuda(arch);
            let words = run(&device, text, target, &options, &CpuOptions::default(), config);
            said.push((format!("GPU, {backend:?}, optimised: {optimize}"), words));
        }
    }
    said
}

#[test]
fn atomic_operations_of_modules_give_their_values() {
    let text = include_str!("../in/llvm/running/atomics.ll");
    let double = 64f64.to_bits();
    let expected = [
        256,
        -256i32 as u32,
        u32::MAX,
        256,
        63,
        -63i32 as u32,
        128f32.to_bits(),
        (-128f32).to_bits(),
        0,
        512,
        double as u32,
        (double >> 32) as u32,
        256,
        512,
        0,
        0,
        1.5f32.to_bits(),
        252,
        0,
        0,
        0,
        0,
        7,
        3,
    ];
    let config = LaunchConfig::new(4, 64);
    for (way, words) in everywhere("atomics", text, &config, &[1, 2]) {
        assert_eq!(words, expected, "{way}");
    }
}

#[test]
fn atomic_operations_of_modules_keep_their_order() {
    let text = include_str!("../in/llvm/running/ordering.ll");
    for (way, words) in everywhere("ordering", text, &LaunchConfig::new(2, 32), &[2]) {
        let [missing, messages, neither, both] = words[..4] else { unreachable!() };
        eprintln!("{way}: {messages} messages, {both} rounds at the same time");
        assert_eq!((missing, neither), (0, 0), "{way}");
        if way.starts_with("GPU") {
            assert!(messages > 0 && both > 0, "{way}: the blocks did not run at the same time");
        }
    }
}

#[test]
fn locks_of_modules_protect_plain_accesses() {
    let text = include_str!("../in/llvm/running/lock.ll");
    for (way, words) in everywhere("lock", text, &LaunchConfig::new(8, 1), &[1, 2]) {
        assert_eq!(words[0], 1600, "{way}");
    }
}
