//! Times of the examples and of launches on a GPU.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow, ensure};
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet_examples::{EXAMPLES, PENDING_LAUNCHES, Run, quicksort};
use gridlet_runtime::{Arg, Artifact, Buffer, Device, GreenContext, LaunchConfig, Program};

use crate::compile::nvcc_cubin;
use crate::measure::{Options, Report, checked, median};

/// The launch patterns of one family: kernels that only launch.
const PATTERNS: &str = include_str!("../../../programs/launch_cost.grid");

pub(crate) fn gpu_times(
    session: &Session,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let device = Device::open(0)?;
    let info = device.info();
    println!("\non {}, driver {}:", info.name, info.driver_version);
    let capability = info.compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor).ok_or_else(|| {
        anyhow!("Gridlet cannot build for GPUs of compute capability {capability}")
    })?;
    device.set_pending_launch_limit(PENDING_LAUNCHES * 4)?;
    let build = BuildOptions::for_arch(arch);
    let green = GreenContext::with_sms(&device, 16)?;
    let pictures = tempfile::tempdir()?;

    for (place, stream) in
        [("whole GPU", device.stream()?), ("16-SM green context", green.stream()?)]
    {
        for example in &EXAMPLES {
            let checked = checked(example)?;
            for launch in LaunchStrategy::ALL {
                let build = build.with_launch(launch.into());
                let artifact = artifact::build(session, &checked, &[arch], &build)?;
                let program = Program::load(&device, &artifact)?;
                let run = Run {
                    device: &device,
                    stream: &stream,
                    program: &program,
                    pictures: pictures.path(),
                    shrink: 1,
                };
                let once = || Ok(f64::from((example.run)(&run)?.milliseconds));
                let time = median(options.repeat.min(5), once)?;
                report.add(format!("{} ({launch}) on the {place}", example.name), time, "ms");
            }
        }
    }

    for launch in LaunchStrategy::ALL {
        launch_costs(session, &device, arch, launch, options, report)?;
    }
    nvcc_quicksort(session, &device, arch, options, report)
}

/// The cost of a launch, by pattern.
fn launch_costs(
    session: &Session,
    device: &Device,
    arch: CudaArch,
    launch: LaunchStrategy,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let stream = device.stream()?;
    let program = compile::check(SourceMap::single("launch_cost.grid", PATTERNS))?;
    let build = BuildOptions::for_arch(arch).with_launch(launch.into());
    let patterns = Program::load(device, &artifact::build(session, &program, &[arch], &build)?)?;
    let mut done = Buffer::from_slice(device, &[0u32])?;
    let run =
        Run { device, stream: &stream, program: &patterns, pictures: Path::new(""), shrink: 1 };
    let sms = device.info().sm_count;
    // (kernel, grid, block, argument, launches)
    let shapes = [
        ("one_thread_default", 1, 1, 1_000u32, 1_000),
        ("one_thread_fire_and_forget", 1, 1, 1_000, 1_000),
        ("one_thread_tail", 1, 1, 1_000, 1_000),
        ("every_thread", sms, 32, 8, sms * 32 * 8),
        ("tree", 1, 1, 10, (1 << 11) - 2),
        ("chain_tail", 1, 1, 1_000, 1_000),
    ];
    for (name, grid, block, argument, launches) in shapes {
        let kernel = patterns.kernel(name)?;
        let time = median(options.repeat, || {
            done.copy_from_host(&[0])?;
            let arguments = [Arg::from(argument), Arg::from(&mut done)];
            let time =
                run.timed(&kernel, &LaunchConfig::new(grid, block), &arguments).context(name)?;
            let ran = done.to_vec()?[0];
            ensure!(ran == launches, "{name}: {ran} children ran instead of {launches}");
            Ok(f64::from(time))
        })?;
        report.add(
            format!("launch cost ({launch}), {name}, {launches} launches"),
            time * 1e3 / f64::from(launches),
            "µs each",
        );
    }
    Ok(())
}

/// The same quicksort, compiled by nvcc, launched by the same host code.
fn nvcc_quicksort(
    session: &Session,
    device: &Device,
    arch: CudaArch,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("quicksort.cu");
    fs::write(&source, include_str!("../../../baselines/quicksort.cu"))?;
    let cubin = match nvcc_cubin(session, &source) {
        Ok(path) if arch == CudaArch::DEFAULT => fs::read(path)?,
        Ok(_) => return Ok(()),
        Err(error) => {
            println!("nvcc's quicksort was not run: {error:#}");
            return Ok(());
        }
    };
    let program = checked(&quicksort::EXAMPLE)?;
    let launch = LaunchStrategy::Cdp.into();
    let build = BuildOptions::for_arch(arch).with_launch(launch);
    let packed = artifact::pack(session, &program, vec![(arch, cubin)], &build)?;
    // nvcc's code does not record lost launches.
    let mut manifest = packed.manifest().clone();
    manifest.device_runtime = None;
    let images = packed.images().map(|(_, bytes)| bytes.to_vec()).collect();
    let program = Program::load(device, &Artifact::new(manifest, images)?)?;
    let stream = device.stream()?;
    let run =
        Run { device, stream: &stream, program: &program, pictures: folder.path(), shrink: 1 };
    let time = median(options.repeat.min(5), || {
        Ok(f64::from((quicksort::EXAMPLE.run)(&run)?.milliseconds))
    })?;
    report.add("quicksort compiled by nvcc, on the whole GPU", time, "ms");
    Ok(())
}
