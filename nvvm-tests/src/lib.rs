//! Conformance: NVIDIA's own tools judge the code that Gridlet generates. The tests are in `tests/`; this library holds
//! the code that they share.

pub mod differential;
pub mod generate;
pub mod layouts;
pub mod trees;

use std::process::{Command, Output};

use gridlet::arch::CudaArch;
use gridlet::link::{LinkOptions, LinkOutput, NvJitLink, device_link};
use gridlet::nvvm::NvvmModule;
use gridlet::ptx::libnvvm::{LibNvvm, PtxOutput, compile};
use gridlet::ptx::{Ptx, PtxOptions};
use gridlet::toolchain::{Component, Toolchain};

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
        let needed =
            [Component::LibNvvm, Component::LibDevice, Component::NvJitLink, Component::CudaDevRt];
        let toolchain = toolchain_or_skip(test, &needed)?;
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
