//! Benchmarks the CPU device: a thread switch at a barrier, a nested launch, a loop compared with the same loop in
//! Rust, and the time and memory for a million nested launches. Compiles the tests' image, so it needs a C compiler:
//! `cargo run --release -p gridlet-cpu --example cpu_speed`

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridlet_cpu::{CpuConfig, CpuDevice, CpuImage};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> Outcome<()> {
    let image = compile()?;
    let mut out = std::io::stdout().lock();
    for block in [32, 256, 1024] {
        let switch = barriers(&image, block)?;
        writeln!(out, "switch at a barrier, {block:4} threads: {switch:6.1} ns")?;
    }
    for (name, order) in [("default", 0), ("tail", 3), ("fire and forget", 4)] {
        let launch = launches(&image, 100_000, order, 0)?;
        writeln!(out, "nested empty 1x32 launch, {name}: {:.3} µs", launch.micros)?;
    }
    let million = launches(&image, 1_000_000, 4, 0)?;
    writeln!(
        out,
        "1,000,000 nested launches: {:.3} s, {} grids at most, {} MiB more memory",
        million.micros,
        million.grids,
        million.grown_kib / 1024
    )?;
    let (kernel, rust) = plain(&image)?;
    writeln!(
        out,
        "plain loop: kernel {kernel:.2} ms, Rust {rust:.2} ms, ratio {:.2}",
        rust / kernel
    )?;
    Ok(())
}

fn compile() -> Outcome<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("kernels.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/kernels.c");
    let mut cc = Command::new("cc");
    let status = cc
        .args(["-shared", "-fPIC", "-O3", "-march=native", "-w", "-o"])
        .arg(&library)
        .arg(source)
        .status()?;
    if !status.success() {
        return Err("cc failed".into());
    }
    Ok(std::fs::read(library)?)
}

fn device(image: &[u8], config: CpuConfig) -> Outcome<(CpuDevice, Arc<CpuImage>)> {
    let device = CpuDevice::new(config)?;
    let image = device.load(image)?;
    Ok((device, image))
}

fn time(
    device: &CpuDevice,
    image: &Arc<CpuImage>,
    kernel: &str,
    grid: u32,
    block: u32,
    parameters: &[u8],
) -> Outcome<Duration> {
    let kernel = image.kernel(kernel).ok_or("no such kernel")?;
    let stream = device.stream();
    let start = Instant::now();
    stream.launch(&kernel, [grid, 1, 1], [block, 1, 1], 0, parameters)?;
    stream.wait(PATIENCE)?;
    Ok(start.elapsed())
}

/// Nanoseconds per switch from one thread to the next.
fn barriers(image: &[u8], block: u32) -> Outcome<f64> {
    let (device, image) = device(image, CpuConfig { threads: Some(1), ..CpuConfig::default() })?;
    let rounds = 2_000_000 / u64::from(block);
    let mut best = f64::MAX;
    for _ in 0..3 {
        let took = time(&device, &image, "barriers", 1, block, &rounds.to_le_bytes())?;
        best = best.min(took.as_secs_f64() * 1e9 / (rounds * u64::from(block)) as f64);
    }
    Ok(best)
}

struct Launches {
    micros: f64,
    grids: usize,
    grown_kib: u64,
}

/// Makes `count` launches from one thread.
fn launches(image: &[u8], count: u64, order: u64, limit: u64) -> Outcome<Launches> {
    let config = CpuConfig { pending_limit: limit, ..CpuConfig::default() };
    let (device, image) = device(image, config)?;
    let counter = device.alloc(64)?;
    let mut parameters = Vec::new();
    for word in [counter as u64, count, order] {
        parameters.extend_from_slice(&word.to_le_bytes());
    }
    let before = resident_kib();
    let took = time(&device, &image, "many", 1, 1, &parameters)?;
    let grown_kib = resident_kib().saturating_sub(before);
    device.free(counter);
    Ok(Launches {
        micros: took.as_secs_f64() * 1e6 / count as f64,
        grids: device.high_water().0,
        grown_kib,
    })
}

/// Milliseconds for the same loop as a kernel and in Rust, on one thread each.
fn plain(image: &[u8]) -> Outcome<(f64, f64)> {
    let (device, image) = device(image, CpuConfig { threads: Some(1), ..CpuConfig::default() })?;
    let count = 1usize << 24;
    let out = device.alloc(count * 4)?;
    // SAFETY: the allocation has this many bytes.
    let words = unsafe {
        out.write_bytes(0, count * 4);
        std::slice::from_raw_parts_mut(out.cast::<u32>(), count)
    };
    let mut parameters = (out as u64).to_le_bytes().to_vec();
    parameters.extend_from_slice(&(count as u32).to_le_bytes());
    let (mut kernel, mut rust) = (f64::MAX, f64::MAX);
    for _ in 0..5 {
        let took = time(&device, &image, "iota", (count / 256) as u32, 256, &parameters)?;
        kernel = kernel.min(took.as_secs_f64() * 1e3);
        let start = Instant::now();
        for (index, word) in words.iter_mut().enumerate() {
            *word = word.wrapping_add(index as u32 + 1);
        }
        std::hint::black_box(&mut *words);
        rust = rust.min(start.elapsed().as_secs_f64() * 1e3);
    }
    device.free(out);
    Ok((kernel, rust))
}

/// Resident memory of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
