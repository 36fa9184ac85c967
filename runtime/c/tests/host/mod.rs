//! C programs that use a library of this workspace; the tests of both C APIs contain this file.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The header that cbindgen writes for the library of a package, which the file at `header` must be. `INSTA_UPDATE=always`
/// accepts it.
pub(crate) fn assert_header(package: &Path, header: &str) {
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).unwrap();
    // cbindgen follows its modules, and writes functions of a file twice that it is given twice.
    let source = package.join("src/lib.rs");
    let builder = cbindgen::Builder::new().with_config(config).with_src(source);
    let mut written = vec![];
    builder.generate().unwrap().write(&mut written);
    let written = String::from_utf8(written).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let called = written.lines().filter(|line| !line.starts_with("//") && line.contains('('));
    let names = called.filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back());
    for name in names.filter(|name| name.starts_with("gridlet_")) {
        assert!(seen.insert(name), "{name} is declared twice");
    }
    let path = package.join(header);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        std::fs::write(&path, &written).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, written, "INSTA_UPDATE=always accepts it");
}

/// The folder of the library, which cargo puts beside this test.
fn library_folder() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// Compiles a C program with the header in `include` and the library.
pub(crate) fn compile(source: &Path, include: &Path, library: &str, program: &Path) {
    compile_as(&["-std=c99"], &[source], include, library, program);
}

/// Compiles sources and objects with further arguments of the C compiler.
pub(crate) fn compile_as(
    arguments: &[&str],
    sources: &[&Path],
    include: &Path,
    library: &str,
    program: &Path,
) {
    let libraries = library_folder();
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror"]).args(arguments).arg("-o").arg(program).args(sources);
    cc.arg("-I").arg(include);
    cc.arg("-L")
        .arg(&libraries)
        .args([&format!("-l{library}"), "-lpthread"])
        .arg(format!("-Wl,-rpath,{}", libraries.display()));
    assert!(cc.status().unwrap().success());
}

/// The command to run a program. Cargo puts `target/debug` on `LD_LIBRARY_PATH`, which may hold an older library.
pub(crate) fn command(program: &Path) -> Command {
    let mut folders = vec![library_folder()];
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&others));
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap());
    command
}
