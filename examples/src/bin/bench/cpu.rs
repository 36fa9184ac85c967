//! How fast the CPU device is: kernels beside the same loops in Rust, switches at barriers, nested launches.

use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use gridlet::artifact;
use gridlet::compile::{self, CpuOptions, Session};
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Arg, Artifact, Buffer, Device, LaunchConfig, Program};

use crate::{Options, Report, median, timed};

const SOURCE: &str = "\
kernel saxpy(n: u32, a: f32, x: *const f32, y: *const f32, out: *mut f32) {
    let i = block_idx.x * block_dim.x + thread_idx.x;
    if i < n { out[i] = a * x[i] + y[i]; }
}
kernel steps(n: u32, a: f32, x: *const f32, y: *const f32, out: *mut f32) {
    let i = block_idx.x * block_dim.x + thread_idx.x;
    if i < n {
        let mut value = x[i];
        for step in 0..50 { value = a * value * value - y[i]; }
        out[i] = value;
    }
}
kernel barriers(rounds: u32) {
    for round in 0..rounds { sync_threads(); }
}
kernel empty() {}
kernel fire_and_forget(count: u32) {
    for i in 0..count { launch empty<<<1, 32, stream = fire_and_forget>>>(); }
}
kernel tail(count: u32) {
    for i in 0..count { launch empty<<<1, 32, stream = tail>>>(); }
}
";

/// Elements of each array: three arrays of 512 KiB, which the L2 cache of a server's core holds.
const ELEMENTS: usize = 1 << 17;
const BLOCK: u32 = 256;
const HOST_LAUNCHES: u32 = 1000;
const MILLION: u32 = 1_000_000;
const TIME_OUT: Duration = Duration::from_secs(120);

pub(crate) fn cpu_times(
    session: &Session,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let workers = thread::available_parallelism()?.get();
    let rust =
        if cfg!(target_feature = "avx2") { "with AVX2" } else { "for any x86-64 or AArch64" };
    println!(
        "\non the CPU device, {workers} threads at a time; this program's Rust is built {rust}:"
    );
    let program = compile::check(SourceMap::single("cpu.grid", SOURCE))?;
    let native = artifact::build_cpu(session, &program, &CpuOptions::default())?;
    let portable = artifact::build_cpu(session, &program, &CpuOptions::portable())?;
    let mut counts = vec![1, workers];
    counts.dedup();
    for threads in counts {
        for loop_ in [SAXPY, STEPS] {
            let rust = rust_loop(&loop_, threads, options)?;
            let what = format!("{}, {ELEMENTS} elements, threads: {threads}", loop_.kernel);
            report.add(format!("{what}: plain Rust"), rust, "ms");
            for (built, artifact) in [("native", &native), ("portable", &portable)] {
                let kernel = kernel_loop(&loop_, artifact, threads, options)?;
                report.add(format!("{what}: kernel, {built} image"), kernel, "ms");
                report.add("  the kernel's time over Rust's", kernel / rust, "×");
            }
        }
    }
    for block in [32, 1024] {
        let switch = switch(&native, block, options)?;
        let what = format!("switch between threads at a barrier, block of {block}, 1 worker");
        report.add(what, switch, "ns");
    }
    report.add(
        format!("launch of an empty 1×32 grid from the host, of {HOST_LAUNCHES} queued"),
        host_launch(&native, options)?,
        "µs",
    );
    for kernel in ["fire_and_forget", "tail"] {
        let launch = median(options.repeat.min(5), || {
            let device = Device::open_cpu(CpuConfig { pending_limit: 0, ..CpuConfig::default() })?;
            run(&device, &native, kernel, 1, Arg::from(MILLION / 10))
        })?;
        let what = format!("nested launch of an empty 1×32 grid, {kernel}");
        report.add(what, launch * 1e4 / f64::from(MILLION), "µs");
    }
    million_launches(&native, report)
}

/// A kernel and the same in Rust.
struct Loop {
    kernel: &'static str,
    /// Runs over the arrays for each measurement.
    passes: usize,
    rust: fn(f32, &[f32], &[f32], &mut [f32]),
}

const FACTOR: f32 = 0.75;

const SAXPY: Loop = Loop {
    kernel: "saxpy",
    passes: 400,
    rust: |a, x, y, out| {
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out = a * x + y;
        }
    },
};

const STEPS: Loop = Loop {
    kernel: "steps",
    passes: 20,
    rust: |a, x, y, out| {
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            let mut value = *x;
            for _ in 0..50 {
                value = a * value * value - y;
            }
            *out = value;
        }
    },
};

fn inputs() -> (Vec<f32>, Vec<f32>) {
    let ramp = |from: f32| (0..ELEMENTS).map(move |i| from + i as f32 / ELEMENTS as f32);
    (ramp(-0.5).collect(), ramp(0.0).collect())
}

/// Milliseconds for one pass in Rust. A thread keeps its part for all passes.
fn rust_loop(loop_: &Loop, threads: usize, options: &Options) -> anyhow::Result<f64> {
    let (x, y) = inputs();
    let mut out = vec![0.0; ELEMENTS];
    let part = ELEMENTS.div_ceil(threads);
    median(options.repeat, || {
        let started = Instant::now();
        thread::scope(|scope| {
            for ((x, y), out) in x.chunks(part).zip(y.chunks(part)).zip(out.chunks_mut(part)) {
                scope.spawn(move || {
                    for _ in 0..loop_.passes {
                        (loop_.rust)(black_box(FACTOR), black_box(x), black_box(y), black_box(out));
                    }
                });
            }
        });
        Ok(started.elapsed().as_secs_f64() * 1e3 / loop_.passes as f64)
    })
}

/// Milliseconds for one pass as a kernel: a launch for each.
fn kernel_loop(
    loop_: &Loop,
    artifact: &Artifact,
    threads: usize,
    options: &Options,
) -> anyhow::Result<f64> {
    let device = Device::open_cpu(CpuConfig { threads: Some(threads), ..CpuConfig::default() })?;
    let program = Program::load(&device, artifact)?;
    let (kernel, stream) = (program.kernel(loop_.kernel)?, device.stream()?);
    let (x, y) = inputs();
    let (x_buffer, y_buffer) = (Buffer::from_slice(&device, &x)?, Buffer::from_slice(&device, &y)?);
    let mut out = Buffer::<f32>::alloc_zeroed(&device, ELEMENTS)?;
    let config = LaunchConfig::new((ELEMENTS as u32).div_ceil(BLOCK), BLOCK);
    let time = median(options.repeat, || {
        let started = Instant::now();
        for _ in 0..loop_.passes {
            let arguments = [
                Arg::from(ELEMENTS as u32),
                Arg::from(FACTOR),
                Arg::from(&x_buffer),
                Arg::from(&y_buffer),
                Arg::from(&mut out),
            ];
            stream.launch(&kernel, &config, &arguments)?;
        }
        stream.synchronize(TIME_OUT)?;
        Ok(started.elapsed().as_secs_f64() * 1e3 / loop_.passes as f64)
    })?;
    let mut expected = vec![0.0; ELEMENTS];
    (loop_.rust)(FACTOR, &x, &y, &mut expected);
    let found = out.to_vec()?;
    // A kernel may fuse a product and a sum.
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4;
    ensure!(expected.iter().zip(&found).all(is_near), "{} computed something else", loop_.kernel);
    Ok(time)
}

/// Nanoseconds from one thread of a block to the next.
fn switch(artifact: &Artifact, block: u32, options: &Options) -> anyhow::Result<f64> {
    let device = Device::open_cpu(CpuConfig { threads: Some(1), ..CpuConfig::default() })?;
    let rounds = 4_000_000 / block;
    let time =
        median(options.repeat, || run(&device, artifact, "barriers", block, Arg::from(rounds)))?;
    Ok(time * 1e6 / f64::from(rounds * block))
}

/// Microseconds for each of many launches on one stream: what a launch adds to the loops above.
fn host_launch(artifact: &Artifact, options: &Options) -> anyhow::Result<f64> {
    let device = Device::open_cpu(CpuConfig::default())?;
    let program = Program::load(&device, artifact)?;
    let (kernel, stream) = (program.kernel("empty")?, device.stream()?);
    let time = median(options.repeat, || {
        let (time, ()) = timed(|| {
            for _ in 0..HOST_LAUNCHES {
                stream.launch(&kernel, &LaunchConfig::new(1, 32), &[])?;
            }
            Ok(stream.synchronize(TIME_OUT)?)
        })?;
        Ok(time)
    })?;
    Ok(time * 1e3 / f64::from(HOST_LAUNCHES))
}

/// Milliseconds for one block of a kernel.
fn run(
    device: &Device,
    artifact: &Artifact,
    kernel: &str,
    block: u32,
    argument: Arg<'_>,
) -> anyhow::Result<f64> {
    let program = Program::load(device, artifact)?;
    let (loaded, stream) = (program.kernel(kernel)?, device.stream()?);
    let (time, ()) = timed(|| {
        stream.launch(&loaded, &LaunchConfig::new(1, block), &[argument])?;
        stream.synchronize(TIME_OUT).context(kernel.to_owned())
    })?;
    Ok(time)
}

/// One thread that launches a million grids: time, and memory at its highest and after.
fn million_launches(artifact: &Artifact, report: &mut Report) -> anyhow::Result<()> {
    for kernel in ["fire_and_forget", "tail"] {
        let device = Device::open_cpu(CpuConfig { pending_limit: 0, ..CpuConfig::default() })?;
        run(&device, artifact, kernel, 1, Arg::from(1u32))?;
        // Sets the highest resident size back to the present one (proc_pid_clear_refs(5)).
        let is_reset = fs::write("/proc/self/clear_refs", "5").is_ok();
        let before = resident_mib("VmRSS:")?;
        let time = run(&device, artifact, kernel, 1, Arg::from(MILLION))?;
        report.add(format!("{MILLION} nested launches, {kernel}"), time, "ms");
        if is_reset {
            report.add("  memory more at the highest", resident_mib("VmHWM:")? - before, "MiB");
        }
        report.add("  memory more after", resident_mib("VmRSS:")? - before, "MiB");
    }
    Ok(())
}

/// Memory of this process, in MiB.
fn resident_mib(field: &str) -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no memory figures")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}
