//! Checks that the header matches the source, and runs a bundle from C programs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

mod host;

use std::path::Path;

use gridlet::arch::CudaArch;
use gridlet::compile::{self, BuildOptions, CpuOptions, Session};
use gridlet::emit::{self, Input, Kind};
use gridlet::target::Target;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_that_of_the_source() {
    host::assert_header(package(), "../include/gridlet.h");
}

/// Compiles a C host from `tests`.
fn compile_host(source: &str, program: &Path) {
    let source = package().join("tests").join(source);
    host::compile(&source, &package().join("../include"), "gridlet_c", program);
}

#[test]
fn a_c_program_sizes_the_pool_of_pending_launches() {
    let folder = tempfile::tempdir().unwrap();
    let build = gridlet::host::Build::new(package().join("tests/fan.grid")).out_dir(folder.path());
    build.cpu().compile().unwrap();
    let program = folder.path().join("program");
    compile_host("pending.c", &program);
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
    compile_host("program.c", &program);

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

#[test]
fn a_program_is_linked_into_hosts_in_c_and_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let source = package().join("tests/linked.grid");
    let program = compile::load(&source).and_then(compile::check).unwrap();
    let make = |kind, name: &str| {
        let (cuda, cpu) = (BuildOptions::default(), CpuOptions::portable());
        let input = Input::Program(&program);
        let made = emit::emit(&Session::new(), input, kind, &[Target::Cpu], &cuda, &cpu).unwrap();
        std::fs::write(folder.path().join(name), made).unwrap();
    };
    make(Kind::HostObject, "linked.o");
    make(Kind::Header, "linked.h");
    let header = std::fs::read_to_string(folder.path().join("linked.h")).unwrap();
    insta::assert_snapshot!("linked_header", header);
    let (include, object) = (package().join("../include"), folder.path().join("linked.o"));
    let own = format!("-I{}", folder.path().display());
    let sources = [&package().join("tests/linked.c"), Path::new("-xnone"), &object];
    for language in [["-xc", "-std=c99"], ["-xc++", "-std=c++11"]] {
        let program = folder.path().join("program");
        let arguments = [&language[..], &[&own]].concat();
        host::compile_as(&arguments, &sources, &include, "gridlet_c", &program);
        let output = host::command(&program).arg("cpu").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "6.75 13 107 9\n", "{language:?}: {output:?}");
    }
}

fn gridlet_runtime_has_gpu() -> gridlet_runtime::Result<()> {
    gridlet_runtime::Device::open(0).map(|_| ())
}
