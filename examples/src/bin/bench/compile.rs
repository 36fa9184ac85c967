//! How long compiling takes: in this process, as a command, and with nvcc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::cache::Cache;
use gridlet::compile::{self, BuildOptions, CpuOptions, Session};
use gridlet::source::SourceMap;
use gridlet::toolchain::Component;
use gridlet_examples::{EXAMPLES, quicksort};

use crate::measure::{Options, Report, checked, median, timed};

/// Source to cubin in this process: once cold, then warm.
pub(crate) fn compile_times(
    session: &Session,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let build = BuildOptions::default();
    let (cold, _) = timed(|| Ok(session.cubin(&checked(&quicksort::EXAMPLE)?, &build)?))?;
    report.add("quicksort.grid to cubin, first time in a process (loads libraries)", cold, "ms");
    for example in &EXAMPLES {
        let whole = median(options.repeat, || {
            Ok(timed(|| Ok(session.cubin(&checked(example)?, &build)?))?.0)
        })?;
        report.add(format!("{}.grid to cubin, warm", example.name), whole, "ms");
    }
    let program = checked(&quicksort::EXAMPLE)?;
    let front = median(options.repeat, || Ok(timed(|| checked(&quicksort::EXAMPLE))?.0))?;
    report.add("  of quicksort: source to checked IR and layouts", front, "ms");
    let nvvm = median(options.repeat, || Ok(timed(|| Ok(compile::nvvm(&program, &build)?))?.0))?;
    report.add("  of quicksort: IR to NVVM IR (legacy)", nvvm, "ms");
    let ptx = median(options.repeat, || Ok(timed(|| Ok(session.ptx(&program, &build)?))?.0))?;
    report.add("  of quicksort: IR to PTX", ptx, "ms");
    let (ptx, _) = session.ptx(&program, &build)?;
    let link =
        median(options.repeat, || Ok(timed(|| Ok(session.device_link(&ptx, true, &build)?))?.0))?;
    report.add("  of quicksort: PTX and libcudadevrt to cubin", link, "ms");
    Ok(())
}

/// Two kernels, one of which launches the other: what a program compiles that makes its kernels as it runs.
const TWO_KERNELS: &str = "\
kernel child(data: *mut f32, n: u32) {
    let i = block_idx.x * block_dim.x + thread_idx.x;
    if i < n { data[i] = sin(data[i]) * 2.0; }
}
kernel parent(data: *mut f32, n: u32) {
    if thread_idx.x == 0 { launch child<<<(n + 127) / 128, 128>>>(data, n); }
}
";

/// Source to images in this process for a small program, at each level, from the cache, and for several architectures.
pub(crate) fn small_program_times(
    session: &Session,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let checked = || compile::check(SourceMap::single("two.grid", TWO_KERNELS));
    let full = CpuOptions::default();
    let levels =
        [("-O 3", full), ("-O 1", full.with_quick(true)), ("-O 0", full.with_optimize(false))];
    for (level, cpu) in levels {
        let image = || Ok(session.cpu_image(&checked()?, &cpu)?);
        let time = median(options.repeat, || Ok(timed(image)?.0))?;
        report.add(format!("two kernels to an image for the CPU, {level}"), time, "ms");
    }
    let folder = tempfile::tempdir()?;
    let cached = Session::new().cached(Some(Cache::new(folder.path())));
    let (program, cuda) = (checked()?, BuildOptions::default());
    // The first ones fill the cache.
    cached.cpu_image(&program, &full)?;
    cached.cubin(&program, &cuda)?;
    let image = median(options.repeat, || Ok(timed(|| Ok(cached.cpu_image(&program, &full)?))?.0))?;
    report.add("  the image from the cache", image, "ms");
    let cubin = median(options.repeat, || Ok(timed(|| Ok(cached.cubin(&program, &cuda)?))?.0))?;
    report.add("  a cubin from the cache", cubin, "ms");
    for archs in [&[CudaArch::DEFAULT][..], &CudaArch::SUPPORTED[..]] {
        let build = || Ok(artifact::build(session, &program, archs, &cuda)?);
        let time = median(options.repeat, || Ok(timed(build)?.0))?;
        report.add(format!("two kernels to cubins, architectures: {}", archs.len()), time, "ms");
    }
    Ok(())
}

/// Whole commands: `gridlet build` against nvcc and nvlink, to the same kind of file.
pub(crate) fn command_times(
    session: &Session,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let grid = folder.path().join("quicksort.grid");
    let cu = folder.path().join("quicksort.cu");
    fs::write(&grid, quicksort::EXAMPLE.source)?;
    fs::write(&cu, include_str!("../../../baselines/quicksort.cu"))?;

    let gridlet = beside_this_program("gridlet")?;
    let start = median(options.repeat, || {
        Ok(timed(|| succeed(Command::new(&gridlet).arg("--version")))?.0)
    })?;
    report.add("`gridlet --version`, whole command", start, "ms");
    let ours = median(options.repeat, || {
        let mut command = Command::new(&gridlet);
        command
            .arg("build")
            .arg(&grid)
            .args(["--emit", "cubin", "-o"])
            .arg(folder.path().join("ours.cubin"));
        Ok(timed(|| succeed(&mut command))?.0)
    })?;
    report.add("`gridlet build quicksort.grid --emit cubin`, whole command", ours, "ms");

    let theirs = match nvcc_cubin(session, &cu) {
        Ok(_) => median(options.repeat.min(7), || Ok(timed(|| nvcc_cubin(session, &cu))?.0))?,
        Err(error) => {
            println!("nvcc was not measured: {error:#}");
            return Ok(());
        }
    };
    report.add("nvcc -rdc=true -cubin and nvlink, the same program, whole commands", theirs, "ms");
    report.add("  nvcc's time over gridlet's", theirs / ours, "×");
    Ok(())
}

/// Compiles CUDA C++ to a device-linked cubin, the shortest way NVIDIA's tools have.
pub(crate) fn nvcc_cubin(session: &Session, source: &Path) -> anyhow::Result<PathBuf> {
    let tools = session.toolchain();
    let (object, linked) = (source.with_extension("rdc.cubin"), source.with_extension("cubin"));
    let mut nvcc = Command::new(tools.path(Component::Nvcc)?);
    nvcc.args(["-arch=sm_90", "-rdc=true", "-cubin", "-o"]).arg(&object).arg(source);
    succeed(&mut nvcc)?;
    let mut nvlink = Command::new(tools.path(Component::Nvlink)?);
    nvlink.arg("-arch=sm_90").arg(&object).arg(tools.cudadevrt()?).arg("-o").arg(&linked);
    succeed(&mut nvlink)?;
    Ok(linked)
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {}", output.status, log.trim());
    Ok(())
}

fn beside_this_program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name(name);
    ensure!(
        path.exists(),
        "{} is not there: build it with `cargo build --release`",
        path.display()
    );
    Ok(path)
}
