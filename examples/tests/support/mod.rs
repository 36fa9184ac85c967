//! Captures output that the test harness does not capture, such as a kernel's `printf`.

use std::process::{Command, Stdio};

/// Set in the process that prints.
const PRINTS: &str = "GRIDLET_TEST_PRINTS";

/// Called by the test `name`: runs that test again in a child process, which calls `run`, and returns the child's
/// standard output. Returns `None` in the child.
pub(crate) fn printed(name: &str, run: impl FnOnce()) -> Option<String> {
    if std::env::var_os(PRINTS).is_some() {
        run();
        return None;
    }
    let program = std::env::current_exe().expect("the test's own program");
    let output = Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env(PRINTS, "1")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("the test's own program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    Some(text)
}
