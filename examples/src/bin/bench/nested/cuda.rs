//! Compiles the programs in CUDA C++, all at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context as _, anyhow, ensure};
use gridlet::arch::CudaArch;
use gridlet::compile::Session;
use gridlet::toolchain::{Component, Toolchain};
use gridlet_examples::nested::{Nested, write_cuda};

/// For each program the executables with nested launches and without.
pub(super) fn build(
    session: &Session,
    programs: &[&Nested],
    arch: CudaArch,
    folder: &Path,
) -> anyhow::Result<Vec<[anyhow::Result<PathBuf>; 2]>> {
    let tools = session.toolchain();
    let jobs: Vec<(usize, PathBuf)> = programs
        .iter()
        .map(|program| write_cuda(program, folder))
        .collect::<anyhow::Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .enumerate()
        .collect();
    let (queue, built) = (Mutex::new(jobs.into_iter()), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((job, source)) = queue.lock().ok().and_then(|mut jobs| jobs.next()) {
                    let executable = compile(tools, arch, &source);
                    if let Ok(mut built) = built.lock() {
                        built.push((job, executable));
                    }
                }
            });
        }
    });
    let mut built = built.into_inner().map_err(|_| anyhow!("a compilation panicked"))?;
    built.sort_by_key(|(job, _)| *job);
    let mut executables = built.into_iter().map(|(_, executable)| executable);
    let pairs = programs.iter().map(|_| Some([executables.next()?, executables.next()?]));
    pairs.collect::<Option<_>>().context("a compilation is missing")
}

fn compile(tools: &Toolchain, arch: CudaArch, source: &Path) -> anyhow::Result<PathBuf> {
    let executable = source.with_extension("");
    let libraries = tools.cudadevrt()?;
    let mut nvcc = Command::new(tools.path(Component::Nvcc)?);
    nvcc.arg(format!("-arch={}", arch.sm())).args(["-rdc=true", "-O3", "-std=c++17", "-o"]);
    nvcc.arg(&executable).arg(source).arg("-lcudadevrt");
    nvcc.arg("-L").arg(libraries.parent().unwrap_or(libraries));
    let output = nvcc.stdin(Stdio::null()).output().with_context(|| format!("{nvcc:?}"))?;
    let log = [output.stdout, output.stderr].concat();
    let log = String::from_utf8_lossy(&log);
    ensure!(output.status.success(), "nvcc rejects {}: {}", source.display(), log.trim());
    fs::metadata(&executable).with_context(|| format!("nvcc made no {}", executable.display()))?;
    Ok(executable)
}
