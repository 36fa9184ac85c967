//! Relocatable objects for GPUs (`--emit object`): nvcc links them with CUDA C++ that launches their kernels.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::launch::{LaunchChoice, LaunchStrategy};
use gridlet::toolchain::{Component, Toolchain};
use nvvm_tests::toolchain_or_skip;

fn input(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/in/objects").join(name)
}

fn tools(test: &str) -> Option<Toolchain> {
    let needed = [Component::Nvcc, Component::Ptxas, Component::LibNvvm, Component::CudaDevRt];
    toolchain_or_skip(test, &needed)
}

struct Nvcc<'t> {
    toolchain: &'t Toolchain,
    arch: CudaArch,
    folder: &'t Path,
}

impl Nvcc<'_> {
    fn run(&self, arguments: &str) -> Output {
        let library = self.toolchain.path(Component::CudaDevRt).unwrap().parent().unwrap();
        Command::new(self.toolchain.path(Component::Nvcc).unwrap())
            .current_dir(self.folder)
            .arg(format!("-arch={}", self.arch))
            .arg(format!("-L{}", library.display()))
            .args(arguments.split_whitespace())
            .output()
            .unwrap()
    }

    fn succeed(&self, arguments: &str) {
        let output = self.run(arguments);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: nvcc {arguments}: {log}", self.arch);
        assert!(!log.contains("warning"), "{}: nvcc {arguments}: {log}", self.arch);
    }
}

#[test]
fn cuda_launches_kernels_of_objects() {
    let Some(toolchain) = tools("cuda_launches_kernels_of_objects") else { return };
    let session = Session::with_toolchain(Toolchain::discover());
    for arch in ["sm_75", "sm_90", "sm_100"] {
        let arch: CudaArch = arch.parse().unwrap();
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            let folder = tempfile::tempdir().unwrap();
            let nvcc = Nvcc { toolchain: &toolchain, arch, folder: folder.path() };
            for name in ["fill", "count"] {
                let program = compile::load(&input(&format!("{name}.grid")));
                let program = program.and_then(compile::check).unwrap();
                let options = BuildOptions::for_arch(arch)
                    .with_backend(backend)
                    .with_launch(LaunchChoice::Auto);
                let object = session.object(&program, &options).unwrap();
                std::fs::write(folder.path().join(format!("{name}.cubin")), &object.0).unwrap();
                nvcc.succeed(&format!("-dc -o {name}.o {name}.cubin"));
            }
            nvcc.succeed(&format!("-dc -o main.o {}", input("main.cu").display()));
            nvcc.succeed("-o program main.o fill.o count.o -lcudadevrt");

            // Without an object, its kernel is missing: nvcc did look for it.
            let output = nvcc.run("-o program main.o fill.o -lcudadevrt");
            let log = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && log.contains("'count'"), "{log}");
        }
    }
}

/// The file's number goes into the record as a constant.
#[test]
fn lost_launches_of_objects_are_told_from_those_of_the_program_that_links() {
    let test = "lost_launches_of_objects_are_told_from_those_of_the_program_that_links";
    let Some(toolchain) = tools(test) else { return };
    let session = Session::with_toolchain(Toolchain::discover());
    let program = compile::load(&input("count.grid")).and_then(compile::check).unwrap();
    let object = session.object(&program, &BuildOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("count.cubin");
    std::fs::write(&file, &object.0).unwrap();
    let disassembler = toolchain.path(Component::Nvdisasm).unwrap();
    let output = Command::new(disassembler).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("0x80000000"), "{text}");
}

#[test]
fn an_object_cannot_have_everything() {
    let program = compile::load(&input("fill.grid")).and_then(compile::check).unwrap();
    let session = Session::with_toolchain(Toolchain::discover());
    let resident = BuildOptions::default().with_launch(LaunchStrategy::Resident.into());
    let statistics = BuildOptions::default().with_statistics(true);
    for (options, why) in [(resident, "resident launches"), (statistics, "statistics")] {
        let error = session.object(&program, &options).unwrap_err().to_string();
        assert!(error.starts_with(&format!("an object for a GPU has no {why}")), "{error}");
    }
}
