//! Runs the package's tests, which are in Python, with this build of the module. They cover `docs/python.md` too.
//!
//! pip installs what they need into the build folder, once.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]
#![allow(clippy::print_stdout, reason = "pytest's report, and skipped tests are printed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What the tests import. ml_dtypes has bfloat16, which NumPy lacks; Ray is for the examples on many devices; JAX shares its memory.
const PACKAGES: [&str; 6] = ["numpy", "pytest>=8", "ipython>=8", "ml_dtypes", "ray", "jax"];

#[test]
fn the_python_tests_pass() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(python) = python() else { return missing("Python 3.10 or later with pip") };
    let Some(packages) = packages(&python) else { return missing("packages from PyPI") };
    let staged = stage(package);
    let paths = std::env::join_paths([staged.path(), packages.as_path()]).unwrap();
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--doctest-glob=*.md"]);
    pytest.arg(package.join("tests")).arg(package.join("../../docs/python.md"));
    pytest.current_dir(package).env("PYTHONPATH", paths).env("PYTHONDONTWRITEBYTECODE", "1");
    // Tests compile, and leave the user's cache alone.
    pytest.env("GRIDLET_CACHE_SIZE", "0");
    let output = pytest.output().unwrap();
    println!("{}", text(&output));
    assert!(output.status.success(), "pytest ended with {}", output.status);
}

/// Skips the test by name, or fails where nothing may be missing.
fn missing(what: &str) {
    println!("SKIPPED: the_python_tests_pass needs {what}");
    let required = std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_some();
    assert!(!required, "the tests in Python need {what}");
}

/// The first Python that is new enough and has pip.
fn python() -> Option<PathBuf> {
    let code = "import pip, sys; assert sys.version_info >= (3, 10); print(sys.executable)";
    ["python3", "python"].into_iter().find_map(|name| {
        let output = Command::new(name).args(["-c", code]).output().ok()?;
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        (output.status.success() && path.is_file()).then_some(path)
    })
}

/// The folder with what the tests import, for this Python.
fn packages(python: &Path) -> Option<PathBuf> {
    let version = Command::new(python).arg("--version").output().ok()?;
    let version = text(&version);
    let wanted = format!("{}\n{version}", PACKAGES.join("\n"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-packages");
    let complete = folder.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|installed| installed == wanted) {
        return Some(folder);
    }
    let _ = fs::remove_dir_all(&folder);
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    pip.arg("--target").arg(&folder).args(PACKAGES);
    let output = pip.output().ok()?;
    if !output.status.success() {
        println!("{}", text(&output));
        return None;
    }
    fs::write(complete, wanted).ok()?;
    Some(folder)
}

/// The package with this build of the native module, as a wheel would install it.
fn stage(package: &Path) -> tempfile::TempDir {
    let staged = tempfile::tempdir().unwrap();
    let to = staged.path().join("gridlet");
    fs::create_dir(&to).unwrap();
    for file in fs::read_dir(package.join("python/gridlet")).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    let built = std::env::current_exe().unwrap().with_file_name("libgridlet_python.so");
    std::os::unix::fs::symlink(built, to.join("_native.abi3.so")).unwrap();
    staged
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}")
}
