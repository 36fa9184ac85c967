//! Conformance: NVIDIA's own tools judge the code that Gridlet generates. The tests are in `tests/`; this library holds
//! the code that they share.

pub mod differential;
pub mod generate;
pub mod layouts;
pub mod trees;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gridlet::arch::CudaArch;
use gridlet::link::{LinkOptions, LinkOutput, NvJitLink, device_link};
use gridlet::nvvm::NvvmModule;
use gridlet::ptx::libnvvm::{LibNvvm, PtxOutput, compile};
use gridlet::ptx::{Ptx, PtxOptions};
use gridlet::toolchain::{Component, Toolchain};

/// What PTX of either back end needs.
pub const FOR_PTX: [Component; 2] = [Component::LibNvvm, Component::LibDevice];

/// What cubins need where nvJitLink links them.
pub const FOR_LINKING: [Component; 4] =
    [Component::LibNvvm, Component::LibDevice, Component::NvJitLink, Component::CudaDevRt];

/// What all cubins need.
pub const FOR_CUBINS: [Component; 5] = {
    let [libnvvm, libdevice, nvjitlink, cudadevrt] = FOR_LINKING;
    [libnvvm, libdevice, nvjitlink, cudadevrt, Component::Ptxas]
};

/// What cubins and [`nvdisasm`] need.
pub const FOR_DISASSEMBLY: [Component; 6] = {
    let [libnvvm, libdevice, nvjitlink, cudadevrt, ptxas] = FOR_CUBINS;
    [libnvvm, libdevice, nvjitlink, cudadevrt, ptxas, Component::Cuobjdump]
};

/// The toolchain, if it has everything that a test needs. Otherwise prints what is missing and how to get it, and
/// returns `None`; the test then ends and passes. With `GRIDLET_REQUIRE_TOOLKIT=1`, which continuous integration sets,
/// it panics instead, so that no run is green for want of a toolkit.
pub fn toolchain_or_skip(test: &str, needed: &[Component]) -> Option<Toolchain> {
    let toolchain = Toolchain::discover();
    for component in needed {
        if let Err(error) = toolchain.path(*component) {
            let text = format!("SKIPPED: {test} needs {}: {error}", component.name());
            let required =
                std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_some_and(|value| value == "1");
            assert!(!required, "{text}");
            eprintln!("{text}");
            return None;
        }
    }
    Some(toolchain)
}

/// The files of a folder of the workspace with this extension, in the order of their names.
///
/// # Panics
/// If the folder cannot be read, or has none.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files
}

/// The output of nvdisasm for a cubin.
///
/// # Panics
/// If it fails.
pub fn nvdisasm(toolchain: &Toolchain, arguments: &[&str], cubin: &[u8]) -> String {
    let run = || -> anyhow::Result<Output> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.cubin");
        std::fs::write(&path, cubin)?;
        let tools = toolchain.path(Component::Cuobjdump)?.with_file_name("nvdisasm");
        Ok(Command::new(tools).args(arguments).arg(&path).output()?)
    };
    match run() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => panic!("nvdisasm: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => panic!("nvdisasm: {error:#}"),
    }
}

/// The loaded tools that turn NVVM IR into a cubin.
#[derive(Debug)]
pub struct Tools {
    /// The toolchain that they come from.
    pub toolchain: Toolchain,
    /// libNVVM.
    pub libnvvm: LibNvvm,
    /// nvJitLink.
    pub nvjitlink: NvJitLink,
}

impl Tools {
    /// Loads the tools, or prints why the test is skipped: see [`toolchain_or_skip`].
    ///
    /// # Panics
    /// If a library exists but does not load, which is no reason to skip.
    pub fn or_skip(test: &str) -> Option<Tools> {
        let toolchain = toolchain_or_skip(test, &FOR_LINKING)?;
        let load = || -> gridlet::Result<(LibNvvm, NvJitLink)> {
            Ok((LibNvvm::load(toolchain.libnvvm()?)?, NvJitLink::load(toolchain.nvjitlink()?)?))
        };
        match load() {
            Ok((libnvvm, nvjitlink)) => Some(Tools { toolchain, libnvvm, nvjitlink }),
            Err(error) => panic!("{test}: {error}"),
        }
    }

    /// Compiles NVVM IR with default options and without libdevice. Errors are libNVVM's.
    pub fn ptx(&self, module: &NvvmModule, arch: CudaArch) -> gridlet::Result<PtxOutput> {
        compile(&self.libnvvm, module, None, arch, &PtxOptions::default())
    }

    /// Links PTX with the device runtime. Errors are nvJitLink's.
    pub fn link(&self, ptx: &Ptx, arch: CudaArch) -> gridlet::Result<LinkOutput> {
        let cudadevrt = self.toolchain.cudadevrt()?;
        device_link(&self.nvjitlink, ptx, Some(cudadevrt), &[], arch, &LinkOptions::default())
    }
}
