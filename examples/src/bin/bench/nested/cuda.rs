//! Compiles the programs in CUDA C++, all at once.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use gridlet::arch::CudaArch;
use gridlet::compile::Session;
use gridlet_examples::nested::{Nested, Version, write_cuda};

use crate::nvcc;

/// For each program the executables with nested launches and without, of those versions that are wanted.
pub(super) fn build(
    session: &Session,
    programs: &[&Nested],
    versions: &[Version],
    arch: CudaArch,
    folder: &Path,
) -> anyhow::Result<Vec<[anyhow::Result<PathBuf>; 2]>> {
    let tools = session.toolchain();
    let written = programs.iter().map(|program| write_cuda(program, folder));
    let pairs = written.collect::<anyhow::Result<Vec<_>>>()?;
    let both = [Version::CudaNested, Version::CudaFlat];
    let sources = pairs.into_iter().flat_map(|pair| both.into_iter().zip(pair)).collect();
    let built = nvcc::on_all_cores(sources, |(version, source): (Version, PathBuf)| {
        ensure!(versions.contains(&version), "it is not wanted");
        let executable = source.with_extension("");
        nvcc::compile(tools, arch, &["-rdc=true", "-lcudadevrt"], &source, &executable)?;
        Ok(executable)
    })?;
    let mut executables = built.into_iter();
    let pairs = programs.iter().map(|_| Some([executables.next()?, executables.next()?]));
    pairs.collect::<Option<_>>().context("a compilation is missing")
}
