//! `cargo xtask wheel`: the Python package as a wheel, checked as its users will meet it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::setup::Environment;
use crate::{process, report, setup};

/// The largest size of the wheel in bytes.
const LIMIT: u64 = 60_000_000;
/// The longest that a new user waits: installing, with NVIDIA's parts, running the program and compiling for a GPU.
const FIRST_USE: Duration = Duration::from_secs(120);
/// Libraries linked into the module: machines may lack them, or have others.
const STATIC: [&str; 4] = ["z", "zstd", "ffi", "stdc++"];
/// What the module may need: parts of glibc and of GCC's runtime, as on every machine that runs Python.
const NEEDED: [&str; 7] = [
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];
/// The programs that build and check it.
const TOOLS: [&str; 3] = ["maturin>=1.9,<2", "twine>=6", "virtualenv>=20"];

/// A new user's first program.
const FIRST_PROGRAM: &str = r#"
import pathlib, re, sys
text = pathlib.Path(sys.argv[1]).read_text()
code, = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
space = {}
exec(code, space)
assert space["program"].cubin("sm_90")[:4] == b"\x7fELF"
"#;

/// Builds the wheel and checks it.
pub(crate) fn run() -> Result<()> {
    let environment = setup::ready()?;
    let folder = process::target_folder().join("wheel");
    let python = setup::find_python()?;
    let tools = tools(&python, &folder)?;
    let wheel = build(&environment, &folder, &tools)?;
    let module = check_libraries(&wheel, &folder)?;
    let bytes = size(&wheel)?;
    ensure!(
        bytes <= LIMIT,
        "{} has {}, more than {}",
        wheel.display(),
        report::bytes(bytes),
        report::bytes(LIMIT)
    );
    let mut twine = tools.module("twine");
    process::run(twine.args(["check", "--strict"]).arg(&wheel))?;
    let first = first_use(&tools, &folder, &wheel)?;
    test(&folder)?;
    report::done(
        "wheel",
        &format!(
            "{} ({}, its module {})",
            wheel.display(),
            report::bytes(bytes),
            report::bytes(size(&module)?)
        ),
    );
    report::note(&format!(
        "The first use took {}: installing it with NVIDIA's parts, the README's program, a cubin for sm_90.",
        report::seconds(first)
    ));
    Ok(())
}

/// Python packages that are programs, in a folder of their own.
struct Tools {
    python: PathBuf,
    folder: PathBuf,
}

impl Tools {
    /// Runs a package's program.
    fn module(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-m", name]).env("PYTHONPATH", &self.folder);
        command
    }
}

/// Installs the tools once.
fn tools(python: &Path, folder: &Path) -> Result<Tools> {
    let tools = Tools { python: python.to_path_buf(), folder: folder.join("tools") };
    let complete = tools.folder.join("complete");
    let wanted = TOOLS.join("\n");
    if fs::read_to_string(&complete).is_ok_and(|installed| installed == wanted) {
        return Ok(tools);
    }
    report::step("install maturin, twine and virtualenv");
    if tools.folder.exists() {
        fs::remove_dir_all(&tools.folder)?;
    }
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    process::run(pip.arg("--target").arg(&tools.folder).args(TOOLS))?;
    fs::write(complete, wanted)?;
    Ok(tools)
}

fn build(environment: &Environment, folder: &Path, tools: &Tools) -> Result<PathBuf> {
    let out = folder.join("dist");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let libraries = static_libraries(folder)?;
    let package = process::workspace().join("runtime/python");
    // `python -m maturin` looks for its program beside Python.
    let mut maturin = Command::new(tools.folder.join("bin/maturin"));
    environment.apply(&mut maturin);
    maturin.args(["build", "--release", "--locked", "--auditwheel", "check", "--manifest-path"]);
    maturin.arg(package.join("Cargo.toml")).arg("--out").arg(&out);
    // Other flags than those of the workspace's builds, so a folder of its own.
    maturin.arg("--target-dir").arg(folder.join("build"));
    maturin.arg("--interpreter").arg(&tools.python);
    maturin.env("CARGO_ENCODED_RUSTFLAGS", format!("-L\u{1f}native={}", libraries.display()));
    maturin.env("CARGO_INCREMENTAL", "0");
    report::step(&process::shown(&maturin));
    process::run(&mut maturin)?;
    let mut files = fs::read_dir(&out)?;
    let file = files.next().context("maturin wrote no wheel")??;
    Ok(file.path())
}

/// A folder with nothing but static libraries: the linker takes them where it would find shared ones elsewhere.
fn static_libraries(folder: &Path) -> Result<PathBuf> {
    let to = folder.join("static");
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    fs::create_dir_all(&to)?;
    for library in STATIC {
        let name = format!("lib{library}.a");
        let mut cc = Command::new("cc");
        let found = process::output(cc.arg(format!("-print-file-name={name}")))?;
        let found = Path::new(found.trim());
        if !found.is_absolute() {
            bail!(
                "there is no {name}; on Debian and Ubuntu: apt-get install zlib1g-dev libzstd-dev libffi-dev g++"
            );
        }
        std::os::unix::fs::symlink(found, to.join(name))?;
    }
    Ok(to)
}

/// Checks that the module needs only libraries that every machine has, and exports only what Python looks for, because other
/// modules of a process may contain other versions of LLVM. Returns the module's file.
fn check_libraries(wheel: &Path, folder: &Path) -> Result<PathBuf> {
    let to = folder.join("unpacked");
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    zip::ZipArchive::new(fs::File::open(wheel)?)?.extract(&to)?;
    let module = to.join("gridlet/_native.abi3.so");
    let dynamic =
        process::output(Command::new("readelf").args(["--wide", "--dynamic"]).arg(&module))?;
    let foreign: Vec<_> =
        needed(&dynamic).into_iter().filter(|name| !NEEDED.contains(name)).collect();
    ensure!(foreign.is_empty(), "{} needs {}", module.display(), foreign.join(", "));
    let symbols =
        process::output(Command::new("readelf").args(["--wide", "--dyn-syms"]).arg(&module))?;
    let exported = exported(&symbols);
    ensure!(exported == ["PyInit__native"], "{} exports {exported:?}", module.display());
    Ok(module)
}

/// The libraries in `readelf --dynamic`.
fn needed(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| line.split_once('[')?.1.split_once(']').map(|it| it.0)).collect()
}

/// The functions and variables in `readelf --dyn-syms` that the file defines.
fn exported(text: &str) -> Vec<&str> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // A number and a colon begin each row but the header.
    let is_symbol =
        |row: &[&str]| row.len() == 8 && row[0].trim_end_matches(':').parse::<u32>().is_ok();
    let defined = rows.filter(|row| is_symbol(row) && row[6] != "UND");
    defined.map(|row| row[7]).collect()
}

/// Does what a new user does, without anything of this machine but Python. Returns the time.
fn first_use(tools: &Tools, folder: &Path, wheel: &Path) -> Result<Duration> {
    let home = tempfile::tempdir()?;
    let environment = folder.join("venv");
    if environment.exists() {
        fs::remove_dir_all(&environment)?;
    }
    process::run(tools.module("virtualenv").args(["--quiet", "--no-download"]).arg(&environment))?;
    let bin = environment.join("bin");
    let alone = |program: &str| {
        let mut command = Command::new(bin.join(program));
        // Neither cargo, LLVM nor a C compiler is there, and without this home no toolkit is found.
        command.env_clear().env("PATH", &bin).env("HOME", home.path());
        command.current_dir(home.path());
        command
    };
    let start = Instant::now();
    // pip alone keeps its settings: mirrors, proxies and certificates.
    let mut pip = Command::new(bin.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    report::step(&process::shown(pip.arg(wheel)));
    process::run(&mut pip)?;
    let doctor = process::output(alone("gridlet").arg("doctor"))?;
    ensure!(
        doctor.contains("site-packages/nvidia/cu13"),
        "gridlet doctor does not find the packages:\n{doctor}"
    );
    let readme = process::workspace().join("runtime/python/README.md");
    let mut python = alone("python");
    let printed = process::output(python.args(["-c", FIRST_PROGRAM]).arg(readme))?;
    ensure!(printed.trim() == "[1023]", "the README's program printed {printed}");
    let took = start.elapsed();
    ensure!(took <= FIRST_USE, "the first use took {}", report::seconds(took));
    Ok(took)
}

/// Runs the package's tests with the installed wheel.
fn test(folder: &Path) -> Result<()> {
    let python = folder.join("venv/bin/python");
    let package = process::workspace().join("runtime/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    process::run(pip.arg("gridlet[test]"))?;
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-glob=*.md"]);
    pytest.arg(package.join("tests")).arg(process::workspace().join("docs/python.md"));
    report::step(&process::shown(&pytest));
    // Tests compile, and leave the user's cache alone.
    pytest.env("GRIDLET_CACHE_SIZE", "0");
    process::run(pytest.current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1"))
}

fn size(file: &Path) -> Result<u64> {
    Ok(fs::metadata(file).with_context(|| file.display().to_string())?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_symbols_are_read() {
        let dynamic = " 0x0000000000000001 (NEEDED)   Shared library: [libzstd.so.1]\n \
            0x0000000000000001 (NEEDED)   Shared library: [libc.so.6]\n \
            0x000000000000000e (SONAME)   Library soname: [a.so]\n";
        assert_eq!(needed(dynamic), ["libzstd.so.1", "libc.so.6"]);
        let symbols = "   Num:    Value          Size Type    Bind   Vis      Ndx Name\n\
            \x20    0: 0000000000000000     0 NOTYPE  LOCAL  DEFAULT  UND \n\
            \x20    1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND memcpy@GLIBC_2.14 (2)\n\
            \x20    2: 0000000000001000    64 FUNC    GLOBAL DEFAULT   12 PyInit__native\n";
        assert_eq!(exported(symbols), ["PyInit__native"]);
    }
}
