//! `cargo xtask test` and `cargo xtask bless`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::semver::{self, Verdict};
use crate::setup::Environment;
use crate::{cli, package, process, report, setup, snapshots};

/// Runs every check and closes with a summary.
pub(crate) fn run(options: &cli::Test) -> Result<()> {
    let environment = setup::ready()?;
    let mut checks = Checks { environment, done: Vec::new(), counts: None };
    if !options.quick && options.arguments.is_empty() {
        checks.tool("format", "rustfmt", &["fmt", "--all", "--check"]);
        checks.tool(
            "lints",
            "clippy",
            &["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"],
        );
        checks.tool(
            "without LLVM",
            "clippy",
            &[
                "clippy",
                "--package",
                "gridlet",
                "--lib",
                "--no-default-features",
                "--",
                "--deny",
                "warnings",
            ],
        );
        checks.documentation();
        checks.packages();
        checks.semver();
    }
    let tests = checks.tests(&options.arguments, "no");
    if let Some(tests) = tests.filter(|tests| tests.passed && options.arguments.is_empty()) {
        checks.unused_snapshots(&tests.references);
    }
    checks.summary()
}

/// Runs the tests, accepts the snapshots they produce, and lists those that changed.
pub(crate) fn bless(options: &cli::Bless) -> Result<()> {
    let environment = setup::ready()?;
    let mut checks = Checks { environment, done: Vec::new(), counts: None };
    let tests = checks.tests(&options.arguments, "always");
    if let Some(tests) = tests.filter(|tests| tests.passed && options.arguments.is_empty()) {
        for file in snapshots::unused(&process::workspace(), &tests.references)? {
            std::fs::remove_file(&file)?;
            report::note(&format!("deleted {}, which no test uses", file.display()));
        }
    }
    let mut git = Command::new("git");
    git.args(["status", "--short", "--", "*.snap"]).current_dir(process::workspace());
    match process::output(&mut git) {
        Ok(changed) if changed.is_empty() => report::done("snapshots", "none changed"),
        Ok(changed) => {
            report::done("snapshots", "these changed: read `git diff` before you commit them");
            report::note(changed.trim_end());
        }
        Err(error) => report::skipped("snapshots", &format!("git cannot list them: {error:#}")),
    }
    checks.summary()
}

/// One line of the summary.
struct Done {
    what: &'static str,
    outcome: Outcome,
    time: Duration,
}

enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

struct Checks {
    environment: Environment,
    done: Vec<Done>,
    /// The tests' own, once they ran.
    counts: Option<Counts>,
}

impl Checks {
    fn cargo(&self) -> Command {
        let mut cargo = process::cargo();
        self.environment.apply(&mut cargo);
        if process::is_ci() {
            // CI builds everything once, so the files of incremental builds would only fill the disk.
            cargo.env("CARGO_INCREMENTAL", "0");
        }
        cargo
    }

    /// Runs a check that passes if its command succeeds.
    fn command(&mut self, what: &'static str, command: &mut Command) {
        report::step(&process::shown(command));
        let start = Instant::now();
        let outcome = match process::run(command) {
            Ok(()) => Outcome::Passed(String::new()),
            Err(error) => Outcome::Failed(error.to_string()),
        };
        self.done.push(Done { what, outcome, time: start.elapsed() });
    }

    /// Runs a check by an optional component of Rust, which CI must have.
    fn tool(&mut self, what: &'static str, component: &str, arguments: &[&str]) {
        let program = arguments.first().copied().unwrap_or_default();
        if process::succeeds(process::cargo().args([program, "--version"])) {
            let mut cargo = self.cargo();
            self.command(what, cargo.args(arguments));
            return;
        }
        let missing = format!("{component} is not installed: rustup component add {component}");
        let outcome =
            if process::is_ci() { Outcome::Failed(missing) } else { Outcome::Skipped(missing) };
        self.done.push(Done { what, outcome, time: Duration::ZERO });
    }

    fn documentation(&mut self) {
        let mut cargo = self.cargo();
        cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings");
        self.command("documentation", &mut cargo);
    }

    fn packages(&mut self) {
        report::step("pack the crates and check the packages");
        let start = Instant::now();
        let outcome = match package::check(|| self.cargo()) {
            Ok(text) => Outcome::Passed(text),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.done.push(Done { what: "packages", outcome, time: start.elapsed() });
    }

    fn semver(&mut self) {
        let start = Instant::now();
        let outcome = if process::is_ci() {
            match semver::check(|| self.cargo()) {
                Ok(Verdict::NoRelease(why)) => Outcome::Skipped(why),
                Ok(Verdict::NoTool(why)) => Outcome::Failed(why),
                Ok(Verdict::Kept(text)) => Outcome::Passed(text),
                Err(error) => Outcome::Failed(format!("{error:#}")),
            }
        } else {
            Outcome::Skipped("takes minutes, and CI does it: `cargo xtask semver`".into())
        };
        self.done.push(Done { what: "semver", outcome, time: start.elapsed() });
    }

    /// Runs the tests; `None` if they could not be started.
    fn tests(&mut self, arguments: &[String], update: &str) -> Option<Tests> {
        let start = Instant::now();
        let result = self.run_tests(arguments, update);
        let (outcome, tests) = match result {
            Ok(tests) if tests.passed => (Outcome::Passed(tests.counts.to_string()), Some(tests)),
            Ok(tests) => {
                let mut text = tests.counts.to_string();
                if tests.counts.programs == 0 || tests.counts.failed == 0 {
                    text.push_str("; a program did not build or crashed, see above");
                }
                (Outcome::Failed(text), Some(tests))
            }
            Err(error) => (Outcome::Failed(format!("{error:#}")), None),
        };
        self.done.push(Done { what: "tests", outcome, time: start.elapsed() });
        if let Some(tests) = &tests {
            self.counts = Some(tests.counts);
            for name in &tests.failures {
                report::failed(name, "");
            }
            if tests.snapshot_failed {
                report::note(
                    "A snapshot differs. If it is meant to, accept it with\n    cargo xtask bless\nand read `git diff` before you commit.",
                );
            }
        }
        tests
    }

    fn run_tests(&mut self, arguments: &[String], update: &str) -> Result<Tests> {
        let references = snapshots::references_file()?;
        let mut cargo = self.cargo();
        cargo.args(["test", "--no-fail-fast"]);
        if !arguments.iter().any(|word| is_package_choice(word)) {
            cargo.arg("--workspace");
        }
        cargo.args(arguments);
        cargo.env("INSTA_UPDATE", update).env("INSTA_SNAPSHOT_REFERENCES_FILE", &references);
        // Set-up has made sure of the toolkit, so a test that does not find it has found a bug.
        cargo.env("GRIDLET_REQUIRE_TOOLKIT", "1");
        report::step(&process::shown(&cargo));
        let mut child = cargo.stdout(Stdio::piped()).spawn().context("could not start cargo")?;
        let output = child.stdout.take().context("cargo has no output")?;
        let mut tests = Tests { references, ..Tests::default() };
        let mut stdout = std::io::stdout();
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        // The output of a test need not be UTF-8.
        while reader.read_until(b'\n', &mut line)? > 0 {
            stdout.write_all(&line)?;
            tests.read(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
        tests.passed = child.wait()?.success();
        Ok(tests)
    }

    fn unused_snapshots(&mut self, references: &std::path::Path) {
        let start = Instant::now();
        let outcome = match snapshots::unused(&process::workspace(), references) {
            Ok(unused) if unused.is_empty() => Outcome::Passed("every file is used".into()),
            Ok(unused) => {
                for file in &unused {
                    report::failed(&file.display().to_string(), "no test uses it");
                }
                report::note("Delete them, or have `cargo xtask bless` delete them.");
                Outcome::Failed(format!("{} files that no test uses, see above", unused.len()))
            }
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.done.push(Done { what: "snapshots", outcome, time: start.elapsed() });
    }

    fn summary(self) -> Result<()> {
        eprintln!();
        let mut failed = Vec::new();
        for Done { what, outcome, time } in &self.done {
            let time = report::seconds(*time);
            match outcome {
                Outcome::Passed(text) => report::done(what, &format!("{time:<14} {text}")),
                Outcome::Skipped(text) => report::skipped(what, &format!("{time:<14} {text}")),
                Outcome::Failed(text) => {
                    report::failed(what, &format!("{time:<14} {text}"));
                    failed.push(*what);
                }
            }
        }
        // The last line is a plain count, for services that read only the end of the output.
        let counts = self.counts.map(|counts| counts.short());
        if !failed.is_empty() {
            let counts = counts.map(|counts| format!("\n{counts}")).unwrap_or_default();
            bail!("failed: {}{counts}", failed.join(", "));
        }
        if let Some(counts) = counts {
            report::plain(&counts);
        }
        Ok(())
    }
}

/// Whether the argument of `cargo test` says which packages to test.
fn is_package_choice(word: &str) -> bool {
    ["-p", "--package", "--workspace", "--all", "--manifest-path"].iter().any(|option| {
        word == *option || word.strip_prefix(option).is_some_and(|w| w.starts_with('='))
    }) || (word.starts_with("-p") && !word.starts_with("--"))
}

/// The results of `cargo test`.
#[derive(Default)]
struct Tests {
    passed: bool,
    counts: Counts,
    /// Names of tests that failed.
    failures: BTreeSet<String>,
    snapshot_failed: bool,
    /// Names of the snapshot files that the tests used.
    references: PathBuf,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Counts {
    programs: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { programs, passed, failed, ignored } = self;
        write!(f, "{passed} passed, {failed} failed, {ignored} ignored in {programs} programs")
    }
}

impl Counts {
    fn short(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

impl Tests {
    /// Reads a line as Rust's test harness writes it.
    fn read(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.counts.programs += 1;
            for part in result.split(['.', ';']).map(str::trim) {
                let mut words = part.split_whitespace();
                let (count, what) = (words.next().and_then(|w| w.parse().ok()), words.next());
                match (count, what) {
                    (Some(count), Some("passed")) => self.counts.passed += count,
                    (Some::<usize>(count), Some("failed")) => self.counts.failed += count,
                    (Some(count), Some("ignored")) => self.counts.ignored += count,
                    _ => {}
                }
            }
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.insert(name.to_string());
        } else if line.contains("snapshot assertion for ") || line.contains(" Snapshot Summary ") {
            self.snapshot_failed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_programs_are_added_up() {
        let mut tests = Tests::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "snapshot assertion for 'c' failed in line 3",
            "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 2.50s",
        ] {
            tests.read(line);
        }
        assert_eq!(tests.counts, Counts { programs: 2, passed: 13, failed: 1, ignored: 1 });
        assert_eq!(tests.failures.into_iter().collect::<Vec<_>>(), ["a::c"]);
        assert!(tests.snapshot_failed);
        assert_eq!(tests.counts.short(), "13 passed, 1 failed");
        assert_eq!(tests.counts.to_string(), "13 passed, 1 failed, 1 ignored in 2 programs");
    }

    #[test]
    fn arguments_that_choose_packages_are_known() {
        for word in ["-p", "-pgridlet", "--package", "--package=gridlet", "--workspace"] {
            assert!(is_package_choice(word), "{word}");
        }
        for word in ["layout", "--test", "--profile", "--packages"] {
            assert!(!is_package_choice(word), "{word}");
        }
    }
}
