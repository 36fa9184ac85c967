//! Compiles every kernel in every way, on all cores.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::link::cubin::kernel_resources;
use gridlet::link::{Cubin, check_parameters};
use gridlet::source::SourceMap;
use gridlet_examples::kernels::Plain;
use gridlet_runtime::Artifact;

use super::Way;
use super::code::Instructions;
use crate::nvcc;

/// A compiled kernel.
pub(super) struct Built {
    pub(super) artifact: Artifact,
    pub(super) registers: u32,
    pub(super) local_bytes: u32,
    /// Without nvdisasm, `None`.
    pub(super) instructions: Option<Instructions>,
}

/// For each kernel what each way makes of it.
pub(super) fn build(
    session: &Session,
    plains: &[Plain],
    arch: CudaArch,
) -> anyhow::Result<Vec<BTreeMap<Way, anyhow::Result<Built>>>> {
    let folder = tempfile::tempdir()?;
    let jobs = plains.iter().flat_map(|plain| Way::ALL.map(|way| (plain, way))).collect();
    let built = nvcc::on_all_cores(jobs, |(plain, way)| {
        one(session, plain, way, arch, folder.path())
            .with_context(|| format!("{} through {}", plain.name, way.name()))
    })?;
    let mut built = built.into_iter();
    let ways = plains.iter().map(|_| Way::ALL.into_iter().zip(built.by_ref()).collect());
    Ok(ways.collect())
}

fn one(
    session: &Session,
    plain: &Plain,
    way: Way,
    arch: CudaArch,
    folder: &Path,
) -> anyhow::Result<Built> {
    let sources = SourceMap::single(format!("{}.grid", plain.name), plain.source);
    let program = compile::check(sources)?;
    let file = folder.join(format!("{}.{}.cubin", plain.name, way.name()));
    let backend = match way {
        Way::LibNvvm | Way::Nvcc => Backend::LibNvvm,
        Way::Nvptx => Backend::Nvptx,
    };
    let options = BuildOptions::for_arch(arch).with_backend(backend);
    let cubin = if way == Way::Nvcc {
        let source = folder.join(format!("{}.cu", plain.name));
        fs::write(&source, plain.cuda)?;
        nvcc::compile(session.toolchain(), arch, &["-cubin"], &source, &file)?;
        let cubin = Cubin(fs::read(&file)?);
        check_parameters(&cubin, program.parameter_buffers())?;
        cubin
    } else {
        let cubin = session.cubin(&program, &options)?.cubin;
        fs::write(&file, &cubin.0)?;
        cubin
    };
    let resources = kernel_resources(&cubin)?;
    let own = resources.iter().find(|kernel| kernel.kernel == plain.name);
    let own = own.with_context(|| format!("the cubin has no kernel `{}`", plain.name))?;
    let instructions = Instructions::count(session.toolchain(), &file)?;
    let artifact = artifact::pack(session, &program, vec![(arch, cubin.0)], &options)?;
    Ok(Built { artifact, registers: own.registers, local_bytes: own.local_bytes, instructions })
}
