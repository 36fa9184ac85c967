//! Debian's and Ubuntu's packages.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{process, report};

/// apt-get, on a machine that has it and where this user may install packages.
pub(crate) struct Apt {
    sudo: bool,
}

impl Apt {
    /// `None` without apt-get, or if the user is not root and sudo would ask for a password.
    pub(crate) fn find() -> Option<Apt> {
        process::find_program("apt-get")?;
        let user = process::output(Command::new("id").arg("-u")).ok()?;
        if user.trim() == "0" {
            return Some(Apt { sudo: false });
        }
        process::succeeds(Command::new("sudo").args(["-n", "true"])).then_some(Apt { sudo: true })
    }

    /// Installs `packages`, after an update if apt does not know all of them yet. The error names those that it
    /// does not know even then.
    pub(crate) fn install(&self, packages: &[&str]) -> Result<()> {
        if !self.unknown(packages)?.is_empty() {
            self.apt_get("reading apt's package lists", &["update"])?;
            let unknown = self.unknown(packages)?;
            if !unknown.is_empty() {
                bail!("this machine's apt sources have no {}", unknown.join(", "));
            }
        }
        let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
        arguments.extend(packages);
        self.apt_get(&format!("installing {}", packages.join(", ")), &arguments)
    }

    fn unknown<'a>(&self, packages: &[&'a str]) -> Result<Vec<&'a str>> {
        let mut unknown = Vec::new();
        for &package in packages {
            let policy =
                Command::new("apt-cache").args(["policy", package]).env("LC_ALL", "C").output();
            let policy = policy.context("could not start apt-cache")?;
            if !has_candidate(&String::from_utf8_lossy(&policy.stdout)) {
                unknown.push(package);
            }
        }
        Ok(unknown)
    }

    fn apt_get(&self, what: &str, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(if self.sudo { "sudo" } else { "env" });
        if self.sudo {
            command.args(["-n", "env"]);
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get"]);
        // A machine that has just started may be running apt itself.
        command.args(["--quiet", "--option", "DPkg::Lock::Timeout=300"]).args(arguments);
        let spinner = report::spinner(what);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {}", process::shown(&command)))?;
        // apt writes little to standard error; a thread reads it so that the pipe cannot fill up.
        let errors = child.stderr.take().map(|stream| {
            std::thread::spawn(move || std::io::read_to_string(stream).unwrap_or_default())
        });
        let mut last = Vec::new();
        if let Some(stream) = child.stdout.take() {
            for line in BufReader::new(stream).lines() {
                let line = line?;
                spinner.set_message(line.clone());
                last.push(line);
            }
        }
        let status = child.wait()?;
        let errors = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
        spinner.finish_and_clear();
        if !status.success() {
            let tail = &last[last.len().saturating_sub(10)..];
            bail!("{what} ended with {status}:\n{}\n{}", tail.join("\n"), errors.trim());
        }
        Ok(())
    }
}

/// Whether `apt-cache policy` names a version that can be installed.
fn has_candidate(policy: &str) -> bool {
    policy
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Candidate:"))
        .any(|version| version.trim() != "(none)")
}

#[cfg(test)]
mod tests {
    use super::has_candidate;

    #[test]
    fn a_package_is_known_if_it_has_a_candidate() {
        assert!(has_candidate("llvm-22-dev:\n  Installed: (none)\n  Candidate: 1:22.1.8-1\n"));
        assert!(!has_candidate("llvm-22-dev:\n  Installed: (none)\n  Candidate: (none)\n"));
        assert!(!has_candidate(""));
    }
}
