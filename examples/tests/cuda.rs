//! The CUDA C++ of the suites compiles.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::process::Command;

use gridlet::link::{Cubin, check_parameters};
use gridlet::source::SourceMap;
use gridlet::toolchain::Component;
use gridlet_examples::kernels::kernels;
use gridlet_examples::nested::{SUITE, write_cuda};

#[test]
fn nvcc_compiles_the_suite() {
    let test = "nvcc_compiles_the_suite";
    let Some(tools) = nvvm_tests::toolchain_or_skip(test, &[Component::Nvcc]) else { return };
    let nvcc = tools.path(Component::Nvcc).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for sources in SUITE.iter().map(|program| write_cuda(program, folder.path()).unwrap()) {
            let nvcc = &nvcc;
            scope.spawn(move || {
                for source in sources {
                    let mut command = Command::new(nvcc);
                    command.args(["-arch=sm_90", "-rdc=true", "-O3", "-std=c++17"]);
                    command.args(["-Werror", "all-warnings", "-ptx", "-o"]);
                    command.arg(source.with_extension("ptx")).arg(&source);
                    let output = command.output().unwrap();
                    let log = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{}: {log}", source.display());
                }
            });
        }
    });
}

/// They also have the names and the parameters that the host launches.
#[test]
fn nvcc_compiles_the_plain_kernels() {
    let test = "nvcc_compiles_the_plain_kernels";
    let Some(tools) = nvvm_tests::toolchain_or_skip(test, &[Component::Nvcc]) else { return };
    let nvcc = tools.path(Component::Nvcc).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // A few at once, because there are many.
    for plains in kernels().chunks(8) {
        std::thread::scope(|scope| {
            for plain in plains {
                let source = folder.path().join(format!("{}.cu", plain.name));
                scope.spawn(move || {
                    std::fs::write(&source, plain.cuda).unwrap();
                    let cubin = source.with_extension("cubin");
                    let mut command = Command::new(nvcc);
                    command.args(["-arch=sm_90", "-O3", "-std=c++17", "-Werror", "all-warnings"]);
                    let output = command.args(["-cubin", "-o"]).arg(&cubin).arg(&source).output();
                    let output = output.unwrap();
                    let log = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{}: {log}", plain.name);
                    let sources = SourceMap::single(format!("{}.grid", plain.name), plain.source);
                    let program = gridlet::compile::check(sources).unwrap();
                    let cubin = Cubin(std::fs::read(cubin).unwrap());
                    let checked = check_parameters(&cubin, program.parameter_buffers());
                    checked.unwrap_or_else(|error| panic!("{}: {error}", plain.name));
                });
            }
        });
    }
}
