//! Kernels without barriers, compared with the same loops in Rust.
//!
//! Both sides use the same data and the same number of threads. Their runs alternate, so that other load on the machine
//! affects both; the first round warms up and does not count. In Rust a thread keeps its share of the arrays for all
//! passes; each pass of a kernel is a launch. The Rust loops are compiled twice: for any x86-64, as this program is,
//! and for the level x86-64-v3, which a portable image also has entries for.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use anyhow::ensure;
use gridlet_runtime::cpu::{CpuConfig, CpuDevice};
use gridlet_runtime::{Arg, Artifact, Buffer, Device, LaunchConfig, Program};

use super::TIME_OUT;
use crate::measure::{Options, Report, Times};

/// Elements of each array: three arrays of 512 KiB, which the L2 cache of a server's core holds.
const ELEMENTS: usize = 1 << 17;
const BLOCK: u32 = 256;
const FACTOR: f32 = 0.75;

type RustLoop = fn(f32, &[f32], &[f32], &mut [f32]);

/// A kernel and the same loop in Rust.
struct Loop {
    kernel: &'static str,
    /// Runs over the arrays for each measurement.
    passes: usize,
    /// For any processor, then for the level x86-64-v3.
    rust: [RustLoop; 2],
}

const LOOPS: [Loop; 2] = [
    Loop { kernel: "saxpy", passes: 400, rust: [saxpy, saxpy_v3] },
    Loop { kernel: "steps", passes: 20, rust: [steps, steps_v3] },
];

#[inline(always)]
fn saxpy(a: f32, x: &[f32], y: &[f32], out: &mut [f32]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = a * x + y;
    }
}

#[inline(always)]
fn steps(a: f32, x: &[f32], y: &[f32], out: &mut [f32]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        let mut value = *x;
        for _ in 0..50 {
            value = a * value * value - y;
        }
        *out = value;
    }
}

/// Compiles a loop for the level.
macro_rules! for_v3 {
    ($name:ident, $plain:ident) => {
        fn $name(a: f32, x: &[f32], y: &[f32], out: &mut [f32]) {
            #[cfg_attr(
                target_arch = "x86_64",
                target_feature(enable = "avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,popcnt")
            )]
            #[allow(clippy::allow_attributes, unused_unsafe, reason = "not needed elsewhere")]
            fn wide(a: f32, x: &[f32], y: &[f32], out: &mut [f32]) {
                $plain(a, x, y, out);
            }
            // SAFETY: measured only where the device has found the level.
            #[allow(unused_unsafe, reason = "safe on other architectures")]
            unsafe {
                wide(a, x, y, out);
            }
        }
    };
}
for_v3!(saxpy_v3, saxpy);
for_v3!(steps_v3, steps);

/// Measures all loops with this many threads.
pub(super) fn measure(
    images: &[(&str, &Artifact)],
    threads: usize,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let config = CpuConfig { threads: Some(threads), ..CpuConfig::default() };
    let levels = if CpuDevice::new(config)?.level() == "x86-64-v3" { 2 } else { 1 };
    for measured in &LOOPS {
        let mut kernels = images
            .iter()
            .map(|(_, image)| Prepared::new(measured, image, config))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mut rust: Vec<Vec<f64>> = vec![Vec::new(); levels];
        let mut kernel: Vec<Vec<f64>> = vec![Vec::new(); kernels.len()];
        for turn in 0..=options.repeat {
            let of_rust: Vec<f64> =
                (0..levels).map(|level| in_rust(measured, level, threads)).collect();
            let mut of_kernels = Vec::with_capacity(kernels.len());
            for prepared in &mut kernels {
                of_kernels.push(prepared.run()?);
            }
            if turn > 0 {
                rust.iter_mut().zip(of_rust).for_each(|(all, one)| all.push(one));
                kernel.iter_mut().zip(of_kernels).for_each(|(all, one)| all.push(one));
            }
        }
        let what = format!("{}, {ELEMENTS} elements, threads: {threads}", measured.kernel);
        let names = ["for any x86-64", "for x86-64-v3"];
        let rust: Vec<Times> = rust.into_iter().map(Times::of).collect();
        for (name, times) in names.iter().zip(&rust) {
            report.add_times(format!("{what}: Rust {name}"), times, "ms");
        }
        for ((name, _), times) in images.iter().zip(kernel) {
            let times = Times::of(times);
            report.add_times(format!("{what}: kernel, {name} image"), &times, "ms");
            for (level, rust) in names.iter().zip(&rust) {
                let speed = rust.best / times.best;
                report.add(
                    format!("  its speed over that of Rust {level}, both at best"),
                    speed,
                    "×",
                );
            }
        }
        for prepared in kernels {
            prepared.verify()?;
        }
    }
    Ok(())
}

fn inputs() -> (Vec<f32>, Vec<f32>) {
    let ramp = |from: f32| (0..ELEMENTS).map(move |i| from + i as f32 / ELEMENTS as f32);
    (ramp(-0.5).collect(), ramp(0.0).collect())
}

/// Milliseconds for one pass in Rust.
fn in_rust(measured: &Loop, level: usize, threads: usize) -> f64 {
    let (x, y) = inputs();
    let mut out = vec![0.0; ELEMENTS];
    let part = ELEMENTS.div_ceil(threads);
    let run = measured.rust[level];
    // The first pass brings the arrays into the cache.
    run(FACTOR, &x, &y, &mut out);
    let started = Instant::now();
    thread::scope(|scope| {
        for ((x, y), out) in x.chunks(part).zip(y.chunks(part)).zip(out.chunks_mut(part)) {
            scope.spawn(move || {
                for _ in 0..measured.passes {
                    black_box(run)(black_box(FACTOR), black_box(x), black_box(y), black_box(out));
                }
            });
        }
    });
    started.elapsed().as_secs_f64() * 1e3 / measured.passes as f64
}

/// A loaded kernel with its data.
struct Prepared<'a> {
    measured: &'a Loop,
    device: Device,
    program: Program,
    arrays: [Buffer<f32>; 3],
}

impl<'a> Prepared<'a> {
    fn new(measured: &'a Loop, image: &Artifact, config: CpuConfig) -> anyhow::Result<Self> {
        let device = Device::open_cpu(config)?;
        let program = Program::load(&device, image)?;
        let (x, y) = inputs();
        let arrays = [
            Buffer::from_slice(&device, &x)?,
            Buffer::from_slice(&device, &y)?,
            Buffer::alloc_zeroed(&device, ELEMENTS)?,
        ];
        Ok(Prepared { measured, device, program, arrays })
    }

    /// Milliseconds for one pass, which is one launch.
    fn run(&mut self) -> anyhow::Result<f64> {
        let (kernel, stream) = (self.program.kernel(self.measured.kernel)?, self.device.stream()?);
        let config = LaunchConfig::new((ELEMENTS as u32).div_ceil(BLOCK), BLOCK);
        let [x, y, out] = &mut self.arrays;
        let mut launch = || -> anyhow::Result<()> {
            let arguments = [
                Arg::from(ELEMENTS as u32),
                Arg::from(FACTOR),
                Arg::from(&*x),
                Arg::from(&*y),
                Arg::from(&mut *out),
            ];
            Ok(stream.launch(&kernel, &config, &arguments)?)
        };
        launch()?;
        stream.synchronize(TIME_OUT)?;
        let started = Instant::now();
        for _ in 0..self.measured.passes {
            launch()?;
        }
        stream.synchronize(TIME_OUT)?;
        Ok(started.elapsed().as_secs_f64() * 1e3 / self.measured.passes as f64)
    }

    /// Compares the result with Rust's bit by bit, since all operations here round alike.
    fn verify(self) -> anyhow::Result<()> {
        let (x, y) = inputs();
        let mut expected = vec![0.0; ELEMENTS];
        (self.measured.rust[0])(FACTOR, &x, &y, &mut expected);
        let found = self.arrays[2].to_vec()?;
        let same = expected.iter().zip(&found).all(|(a, b)| a.to_bits() == b.to_bits());
        ensure!(same, "{} computed something else than Rust", self.measured.kernel);
        Ok(())
    }
}
