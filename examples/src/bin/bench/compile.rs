//! How long compiling takes: in this process, as a command, and with nvcc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use gridlet::compile::{self, BuildOptions, Session};
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
