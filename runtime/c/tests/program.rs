//! Checks that the header matches the source, and runs a bundle from C programs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridlet::arch::CudaArch;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_that_of_the_source() {
    let config = cbindgen::Config::from_file(package().join("cbindgen.toml")).unwrap();
    let mut header = vec![];
    let source = package().join("src/lib.rs");
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(source)
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = package().join("../include/gridlet.h");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        fs::write(&path, &header).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), header, "INSTA_UPDATE=always accepts it");
}

/// The folder of the library, which cargo puts beside this test.
fn library_folder() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// Compiles a C host from `tests`.
fn compile(host: &str, program: &Path) {
    let libraries = library_folder();
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"]).arg(program);
    cc.arg(package().join("tests").join(host)).arg("-I").arg(package().join("../include"));
    cc.arg("-L")
        .arg(&libraries)
        .args(["-lgridlet_c", "-lpthread"])
        .arg(format!("-Wl,-rpath,{}", libraries.display()));
    assert!(cc.status().unwrap().success());
}

/// The command to run a host. Cargo puts `target/debug` on `LD_LIBRARY_PATH`, which may hold an older library.
fn host(program: &Path) -> Command {
    let mut folders = vec![library_folder()];
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&others));
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap());
    command
}

#[test]
fn a_c_program_sizes_the_pool_of_pending_launches() {
    let folder = tempfile::tempdir().unwrap();
    let build = gridlet::host::Build::new(package().join("tests/fan.grid")).out_dir(folder.path());
    build.cpu().compile().unwrap();
    let program = folder.path().join("program");
    compile("pending.c", &program);
    let output = host(&program).arg(folder.path().join("fan.gridlet")).output().unwrap();
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
        let output =
            host(&program).arg(folder.path().join("saxpy.gridlet")).arg(device).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        insta::assert_snapshot!("c_program", said);
    }
}

fn gridlet_runtime_has_gpu() -> gridlet_runtime::Result<()> {
    gridlet_runtime::Device::open(0).map(|_| ())
}
