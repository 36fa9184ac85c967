//! Speed of the CPU device: kernels compared with the same loops in Rust, switches at barriers, nested launches.

mod loops;

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use gridlet::artifact;
use gridlet::compile::{self, CpuOptions, Session};
use gridlet::source::SourceMap;
use gridlet_examples::{Example, PENDING_LAUNCHES, Run};
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Arg, Artifact, Device, LaunchConfig, Program};

use crate::measure::{Options, Report, Times, timed};

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

const HOST_LAUNCHES: u32 = 1000;
const MILLION: u32 = 1_000_000;
const TIME_OUT: Duration = Duration::from_secs(120);

pub(crate) fn cpu_times(
    session: &Session,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let workers = thread::available_parallelism()?.get();
    println!("\non the CPU device, {workers} threads at a time:");
    let program = compile::check(SourceMap::single("cpu.grid", SOURCE))?;
    let native = artifact::build_cpu(session, &program, &CpuOptions::default())?;
    let portable = artifact::build_cpu(session, &program, &CpuOptions::portable())?;
    let mut counts = vec![1, workers];
    counts.dedup();
    for threads in counts {
        loops::measure(&[("native", &native), ("portable", &portable)], threads, options, report)?;
    }
    for block in [32, 1024] {
        let switch = switch(&native, block, options)?;
        let what = format!("switch between threads at a barrier, block of {block}, 1 worker");
        report.add_times(what, &switch, "ns");
    }
    report.add_times(
        format!("launch of an empty 1×32 grid from the host, of {HOST_LAUNCHES} queued"),
        &host_launch(&native, options)?,
        "µs",
    );
    for kernel in ["fire_and_forget", "tail"] {
        let launch = Times::measure(options.repeat.min(5), || {
            let device = Device::open_cpu(CpuConfig { pending_limit: 0, ..CpuConfig::default() })?;
            run(&device, &native, kernel, 1, Arg::from(MILLION / 10))
        })?;
        let what = format!("nested launch of an empty 1×32 grid, {kernel}");
        report.add_times(what, &launch.scaled(1e4 / f64::from(MILLION)), "µs");
    }
    million_launches(&native, report)?;
    for example in [gridlet_examples::quicksort::EXAMPLE, gridlet_examples::segment_sum::EXAMPLE] {
        checks(session, &example, options, report)?;
    }
    Ok(())
}

/// The cost of checking: the time of an example with `--check` divided by its time without.
fn checks(
    session: &Session,
    example: &Example,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    /// Checked runs are slow, so the problem is smaller than the example's.
    const SHRINK: u32 = 16;
    let program = crate::measure::checked(example)?;
    let pictures = tempfile::tempdir()?;
    let mut bests = Vec::with_capacity(2);
    for check in [false, true] {
        let built = CpuOptions::default().with_check(check);
        let image = artifact::build_cpu(session, &program, &built)?;
        let device = Device::open_cpu(CpuConfig { check, ..CpuConfig::default() })?;
        device.set_pending_launch_limit(PENDING_LAUNCHES)?;
        let (loaded, stream) = (Program::load(&device, &image)?, device.stream()?);
        let run = Run {
            device: &device,
            stream: &stream,
            program: &loaded,
            pictures: pictures.path(),
            shrink: SHRINK,
        };
        let once = || Ok(f64::from((example.run)(&run)?.milliseconds));
        let times = Times::measure(options.repeat.min(5), once)?;
        let how = if check { "checked" } else { "not checked" };
        report.add_times(format!("{} (a {SHRINK}th), {how}", example.name), &times, "ms");
        bests.push(times.best);
    }
    if let [plain, checked] = bests.as_slice() {
        report.add("  time checked over not checked", checked / plain, "×");
    }
    Ok(())
}

/// Nanoseconds from one thread of a block to the next.
fn switch(artifact: &Artifact, block: u32, options: &Options) -> anyhow::Result<Times> {
    let device = Device::open_cpu(CpuConfig { threads: Some(1), ..CpuConfig::default() })?;
    let rounds = 4_000_000 / block;
    let once = || run(&device, artifact, "barriers", block, Arg::from(rounds));
    Ok(Times::measure(options.repeat, once)?.scaled(1e6 / f64::from(rounds * block)))
}

/// Microseconds for each of many launches on one stream, which the loops above pay once per pass.
fn host_launch(artifact: &Artifact, options: &Options) -> anyhow::Result<Times> {
    let device = Device::open_cpu(CpuConfig::default())?;
    let program = Program::load(&device, artifact)?;
    let (kernel, stream) = (program.kernel("empty")?, device.stream()?);
    let times = Times::measure(options.repeat, || {
        let (time, ()) = timed(|| {
            for _ in 0..HOST_LAUNCHES {
                stream.launch(&kernel, &LaunchConfig::new(1, 32), &[])?;
            }
            Ok(stream.synchronize(TIME_OUT)?)
        })?;
        Ok(time)
    })?;
    Ok(times.scaled(1e3 / f64::from(HOST_LAUNCHES)))
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
        // Resets the peak resident size to the current one (proc_pid_clear_refs(5)).
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
