//! The suite's programs in CUDA C++ compile.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::process::Command;

use gridlet::toolchain::Component;
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
