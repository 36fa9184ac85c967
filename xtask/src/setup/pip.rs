//! Downloads wheels with pip, so that its settings (mirror, proxy, certificates) apply.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::apt::Apt;
use super::pins::Pins;
use super::wheels::Download;
use crate::{process, report};

/// pip, once it is found.
#[derive(Default)]
pub(crate) struct Pip {
    python: Option<PathBuf>,
}

impl Download for Pip {
    fn prepare(&mut self) -> Result<()> {
        if self.python.is_none() {
            self.python = Some(find_python()?);
        }
        Ok(())
    }

    fn download(&mut self, pins: &Pins, folder: &Path) -> Result<()> {
        let python = self.python.as_ref().context("pip was not looked for")?;
        // pip writes each wheel to its temporary folder as it arrives, which shows the progress, and to
        // `wheels` when it has all of them.
        let [temporary, requirements, log] =
            ["temporary", "requirements.txt", "pip.log"].map(|name| folder.join(name));
        std::fs::create_dir_all(&temporary)?;
        File::create(&requirements)?.write_all(pins.text.as_bytes())?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary=:all:"]);
        for tag in ["manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux2010"] {
            pip.args(["--platform", &format!("{tag}_{}", pins.machine)]);
        }
        pip.args(["--no-cache-dir", "--disable-pip-version-check", "--no-input"]);
        pip.args(["--progress-bar", "off", "--dest"]).arg(folder.join("wheels"));
        pip.arg("--requirement").arg(&requirements).env("TMPDIR", &temporary);
        let output = File::create(&log)?;
        pip.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        end_with_us(&mut pip);

        let mut child = pip.spawn().context("could not start pip")?;
        let bar = report::byte_bar("fetching NVIDIA's parts", pins.bytes());
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            // pip empties its folder when it is done, so the sum can fall.
            bar.set_position(folder_bytes(&temporary).min(pins.bytes()).max(bar.position()));
            std::thread::sleep(Duration::from_millis(100));
        };
        bar.finish_and_clear();
        if !status.success() {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(12)..].join("\n");
            bail!(
                "`pip download` ended with {status}:\n{tail}\n\
                 pip's own settings are honoured (PIP_INDEX_URL, PIP_PROXY, `pip config`). \
                 Without a network, install a CUDA toolkit of version 12.8 or newer and set CUDA_HOME."
            );
        }
        Ok(())
    }
}

/// A Python that has pip; installs Debian's if there is none and this user may.
pub(crate) fn find_python() -> Result<PathBuf> {
    // The name may stand for a script that starts Python as a process of its own, which would outlive this one: see
    // `end_with_us`. So Python itself is asked where it is.
    let find = || {
        ["python3", "python"].into_iter().find_map(|name| {
            let code = "import pip, sys; print(sys.executable)";
            let path = process::output(Command::new(name).args(["-c", code])).ok()?;
            Some(PathBuf::from(path.trim())).filter(|path| path.is_file())
        })
    };
    if let Some(python) = find() {
        return Ok(python);
    }
    let tried = Apt::find().map(|apt| apt.install(&["python3", "python3-pip"]));
    if let Some(python) = find() {
        return Ok(python);
    }
    let tried = tried
        .and_then(Result::err)
        .map(|error| format!("\nInstalling it failed: {error:#}"))
        .unwrap_or_default();
    bail!(
        "NVIDIA's parts are fetched with pip, and neither python3 nor python has it.{tried}
  Debian, Ubuntu:  sudo apt-get install python3-pip
  elsewhere:       install Python 3 with pip, or a CUDA toolkit of version 12.8 or newer and set CUDA_HOME to it
Then run the command again."
    )
}

/// Makes `command` end with this process, however that ends: a download that went on would write into a folder that
/// the next set-up removes.
fn end_with_us(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;
        // SAFETY: between fork and exec the closure makes one system call, with integers only.
        unsafe {
            command.pre_exec(|| {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 {
                    Ok(())
                } else {
                    Err(std::io::Error::last_os_error())
                }
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// The total size of the files below `folder`; files that disappear meanwhile do not count.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => folder_bytes(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_weighs_what_its_files_weigh() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("c"), [0; 700]).unwrap();
        std::fs::write(folder.path().join("d"), [0; 11]).unwrap();
        assert_eq!(folder_bytes(folder.path()), 711);
        assert_eq!(folder_bytes(&deep.join("none")), 0);
    }
}
