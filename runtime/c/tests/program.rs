//! Checks that the header matches the source, and runs a bundle from C programs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

mod host;

use std::path::Path;

use gridlet::arch::CudaArch;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_that_of_the_source() {
    host::assert_header(package(), &["src/lib.rs"], "../include/gridlet.h");
}

/// Compiles a C host from `tests`.
fn compile(source: &str, program: &Path) {
    let source = package().join("tests").join(source);
    host::compile(&source, &package().join("../include"), "gridlet_c", program);
}

#[test]
fn a_c_program_sizes_the_pool_of_pending_launches() {
    let folder = tempfile::tempdir().unwrap();
    let build = gridlet::host::Build::new(package().join("tests/fan.grid")).out_dir(folder.path());
    build.cpu().compile().unwrap();
    let program = folder.path().join("program");
    compile("pending.c", &program);
    let output = host::command(&program).arg(folder.path().join("fan.gridlet")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!("c_pending", String::from_utf8(output.stdout).unwrap());
}

#[test]
fn a_c_program_runs_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let build =
        gridlet::host::Build::new(package().join("tests/saxpy.grid")).out_dir(folder.path());
    build.cpu().ptx(CudaArch::SUPPORTED[0]).compile().unwrap();
    let program = folder.path().join("program");
    compile("program.c", &program);

    let mut devices = vec!["cpu"];
    match gridlet_runtime_has_gpu() {
        Ok(()) => devices.push("cuda:0"),
        Err(error) => {
            let text = format!("SKIPPED: a_c_program_runs_a_bundle needs an NVIDIA GPU: {error}");
            let required = std::env::var_os("GRIDLET_REQUIRE_GPU").is_some_and(|v| v == "1");
            assert!(!required, "{text}");
            eprintln!("{text}");
        }
    }
    for device in devices {
        let output = host::command(&program)
            .arg(folder.path().join("saxpy.gridlet"))
            .arg(device)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        insta::assert_snapshot!("c_program", said);
    }
}

fn gridlet_runtime_has_gpu() -> gridlet_runtime::Result<()> {
    gridlet_runtime::Device::open(0).map(|_| ())
}
