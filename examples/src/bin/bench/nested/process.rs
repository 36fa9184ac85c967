//! A process that answers each command with a line of JSON.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::table::HUNG;

/// How long an ended process may take to go; one whose kernel hangs waits for the driver.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A command was not answered in time.
#[derive(Debug)]
pub(super) struct Hung(Duration);

impl std::fmt::Display for Hung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{HUNG}: no answer within {} s", self.0.as_secs())
    }
}

impl std::error::Error for Hung {}

/// A running process, ended when dropped.
pub(super) struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    pub(super) fn start(program: &Path, arguments: &[&str]) -> anyhow::Result<Process> {
        let mut child = Command::new(program)
            .args(arguments)
            // Otherwise the first run would load the code, in CUDA C++ alone.
            .env("CUDA_MODULE_LOADING", "EAGER")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("the process has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Process { child, lines })
    }

    pub(super) fn send(&mut self, command: &str) -> anyhow::Result<()> {
        let input = self.child.stdin.as_mut().context("the process has no input")?;
        writeln!(input, "{command}")?;
        Ok(input.flush()?)
    }

    /// The next answer; an error that the process names, its end, or [`Hung`].
    pub(super) fn answer(&mut self, limit: Duration) -> anyhow::Result<Value> {
        let line = match self.lines.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Err(Hung(limit).into()),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the process ended without an answer: {:?}", self.child.try_wait())
            }
        };
        let answer: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        match answer["error"].as_str() {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that cannot be ended is left behind; its error was reported.
        let _ = self.child.kill();
        let ended = Instant::now();
        while ended.elapsed() < END_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        println!("!! process {} does not end", self.child.id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_answer_is_hung() {
        let mut process = Process::start(Path::new("cat"), &[]).expect("cat starts");
        let error = process.answer(Duration::from_millis(50)).expect_err("nothing was asked");
        assert!(error.is::<Hung>(), "{error:#}");
        process.send("{\"ok\": 1}").expect("cat reads");
        assert_eq!(process.answer(Duration::from_secs(10)).expect("an echo")["ok"], 1);
        process.send("{\"error\": \"lost\"}").expect("cat reads");
        let error = process.answer(Duration::from_secs(10)).expect_err("an error");
        assert_eq!(error.to_string(), "lost");
        assert!(!error.is::<Hung>());
    }
}
