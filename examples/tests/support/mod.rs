//! What a test prints past the test's capture.

use std::process::{Command, Stdio};

/// Set in the process that prints.
const PRINTS: &str = "GRIDLET_TEST_PRINTS";

/// Runs the test `name`, which calls this, once more in a process of its own, where `run` is called, and gives what
/// that process wrote to standard output. `None` in that process.
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
