//! Runs scenarios against the fake driver, each in its own process, because a process loads only one driver.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use gridlet_runtime::Result;

/// Set in the processes that run a scenario.
const SCENARIO: &str = "GRIDLET_FAKE_SCENARIO";

/// Marks the scenario's own lines in the test harness's output.
const MARK: &str = "> ";

/// In a scenario process, runs `scenario`; otherwise starts that process with the fake driver and returns the
/// calls and the scenario's output. `None` in the scenario process, and without a C compiler.
pub(crate) fn driven(
    name: &str,
    flavour: &str,
    settings: &[(&str, &str)],
    scenario: fn() -> Result<()>,
) -> Option<String> {
    // The harness omits the crate's name.
    let (_, name) = name.split_once("::").unwrap();
    if std::env::var_os(SCENARIO).is_some() {
        println!(); // The harness has already begun a line.
        if let Err(error) = scenario() {
            say(format!("error: {error}"));
        }
        return None;
    }
    let Some(drivers) = fake_drivers() else {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: {name} needs a C compiler: no `cc` on the path");
        return None;
    };
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(SCENARIO, name)
        .env("LD_LIBRARY_PATH", drivers.join(flavour))
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("cu") || line.starts_with(MARK)).collect();
    assert!(!lines.is_empty(), "the scenario said nothing:\n{text}");
    Some(lines.join("\n"))
}

pub(crate) fn say(text: impl std::fmt::Display) {
    for line in text.to_string().lines() {
        println!("{MARK}{line}");
    }
}

/// The folder with one subfolder for each variant of the fake driver, which holds `libcuda.so` and `libcuda.so.1`;
/// `None` without a C compiler.
fn fake_drivers() -> Option<&'static Path> {
    static DRIVERS: OnceLock<Option<PathBuf>> = OnceLock::new();
    DRIVERS
        .get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
                "{}-{}",
                env!("CARGO_CRATE_NAME"),
                std::process::id()
            ));
            let flavours: [(&str, &[&str]); 7] = [
                ("not-a-library", &[]),
                ("empty", &["-DWITHOUT_DEVICES", "-DWITHOUT_GREEN"]),
                ("old", &["-DWITHOUT_GREEN"]),
                ("before-13", &["-DWITHOUT_13_0"]),
                ("full", &[]),
                ("newest", &["-DWITH_13_1"]),
                ("without-locations", &["-DWITHOUT_LOCATIONS"]),
            ];
            for (flavour, flags) in flavours {
                let libraries =
                    ["libcuda.so", "libcuda.so.1"].map(|name| folder.join(flavour).join(name));
                std::fs::create_dir_all(folder.join(flavour)).unwrap();
                if flavour == "not-a-library" {
                    std::fs::write(&libraries[0], "no library").unwrap();
                } else if !build(&folder.join("fake.c"), &libraries[0], flags) {
                    return None;
                }
                std::fs::copy(&libraries[0], &libraries[1]).unwrap();
            }
            Some(folder)
        })
        .as_deref()
}

/// Compiles the fake driver; false without a C compiler.
fn build(source: &Path, library: &Path, flags: &[&str]) -> bool {
    std::fs::write(source, include_str!("fake.c")).unwrap();
    let mut cc = Command::new("cc");
    match cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(library).args(flags).arg(source).status() {
        Ok(status) => assert!(status.success(), "cc: {status}"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
        Err(error) => panic!("cc: {error}"),
    }
    true
}
