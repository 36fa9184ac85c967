//! Runs the package's tests, which are in Python, with this build of the module. They cover `docs/python.md` too.
//!
//! pip installs what they need into the build folder, once.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]
#![allow(clippy::print_stdout, reason = "pytest's report, and skipped tests are printed")]

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// What the tests import. ml_dtypes has bfloat16, which NumPy lacks; Ray is for the examples on many devices; JAX shares its memory.
const PACKAGES: [&str; 6] = ["numpy", "pytest>=9", "ipython>=8", "ml_dtypes", "ray", "jax"];

/// How long pip may take. What it installs takes about 900 MB.
const INSTALLING: Duration = Duration::from_mins(15);

/// How long one pytest may take. Either takes about half a minute on two processors that do nothing else.
const TESTING: Duration = Duration::from_mins(20);

#[test]
fn the_python_tests_pass() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(python) = python() else { return missing("Python 3.10 or later with pip") };
    let Some(packages) = packages(&python) else { return missing("packages from PyPI") };
    let staged = stage(package);
    let paths = std::env::join_paths([staged.path(), packages.as_path()]).unwrap();
    let pytest = |arguments: &[&Path]| {
        let mut pytest = Command::new(&python);
        pytest.args(["-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--doctest-glob=*.md"]);
        pytest.args(arguments).current_dir(package);
        pytest.env("PYTHONPATH", &paths).env("PYTHONDONTWRITEBYTECODE", "1");
        // What is printed stays when a test that takes too long ends the process.
        pytest.env("PYTHONUNBUFFERED", "1");
        // Tests compile, and leave the user's cache alone.
        pytest.env("GRIDLET_CACHE_SIZE", "0");
        let (status, text) = limited(&mut pytest, TESTING);
        println!("{text}");
        // What Python prints where pytest lets it end a test that takes too long: see pyproject.toml.
        let ends_test = text.contains("Timeout (0:") && text.contains(")!\nThread 0x");
        (status, status.is_none() || ends_test)
    };
    let passes = |status: Option<ExitStatus>| match status {
        Some(status) => assert!(status.success(), "pytest ended with {status}"),
        None => panic!("pytest took more than {TESTING:?} and was ended"),
    };
    // Ray runs Python code in forks of its process, and Python warns that these may hang where JAX has started threads.
    let cluster = package.join("tests/test_cluster.py");
    let [tests, page] = ["tests", "../../docs/python.md"].map(|path| package.join(path));
    passes(pytest(&[&tests, &page, Path::new("--ignore"), &cluster]).0);
    // Ray waits without a limit for the processes that it starts, so its tests get a second try if they do not end.
    let (mut status, hangs) = pytest(&[&cluster]);
    if hangs {
        println!("the tests with Ray did not end; they run once more");
        status = pytest(&[&cluster]).0;
    }
    passes(status);
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left");
    // The second process keeps the output open and would outlive a shell that is killed alone.
    let script = "echo before; (sleep 2; touch \"$1\") & sleep 60; echo after";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(&left);
    let (status, text) = limited(&mut shell, Duration::from_millis(500));
    assert_eq!((status, text.as_str()), (None, "before\n"));
    std::thread::sleep(Duration::from_secs(3));
    assert!(!left.exists(), "the process in the background went on");

    let (status, text) =
        limited(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), TESTING);
    assert_eq!((status.unwrap().code(), text.as_str()), (Some(3), "out\nerr\n"));
}

/// Runs `command` for at most `limit`. Returns its status, or `None` if it was ended then, and what it printed.
///
/// A command that is ended takes along all processes that it started. The output goes to a file: the end of a pipe would come
/// only when the last process that has it is gone.
fn limited(command: &mut Command, limit: Duration) -> (Option<ExitStatus>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let output = File::options().create(true).append(true).open(&path).unwrap();
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let start = Instant::now();
    let mut child = command.process_group(0).spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() >= limit {
            kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    (status, text)
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
    let (status, text) = limited(&mut pip, INSTALLING);
    if !status.is_some_and(|status| status.success()) {
        let ended = status.map_or_else(
            || format!("took more than {INSTALLING:?} and was ended"),
            |status| format!("ended with {status}"),
        );
        println!("{text}pip {ended}");
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
