//! Compiles the programs in CUDA C++, all at once.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gridlet::arch::CudaArch;
use gridlet::compile::Session;
use gridlet_examples::nested::{Nested, write_cuda};

use crate::nvcc;

/// For each program the executables with nested launches and without.
pub(super) fn build(
    session: &Session,
    programs: &[&Nested],
    arch: CudaArch,
    folder: &Path,
) -> anyhow::Result<Vec<[anyhow::Result<PathBuf>; 2]>> {
    let tools = session.toolchain();
    let written = programs.iter().map(|program| write_cuda(program, folder));
    let sources = written.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect();
    let built = nvcc::on_all_cores(sources, |source: PathBuf| {
        let executable = source.with_extension("");
        nvcc::compile(tools, arch, &["-rdc=true", "-lcudadevrt"], &source, &executable)?;
        Ok(executable)
    })?;
    let mut executables = built.into_iter();
    let pairs = programs.iter().map(|_| Some([executables.next()?, executables.next()?]));
    pairs.collect::<Option<_>>().context("a compilation is missing")
}
