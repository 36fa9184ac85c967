//! Messages that a library prints to standard error instead of returning them.
//!
//! nvJitLink prints some errors, such as a function whose prototypes differ between modules, and succeeds. They are read
//! from the file descriptor, which belongs to the whole process: for the time of one call, other threads' output to
//! standard error is held back, and written afterwards.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// The messages of a call.
#[derive(Default)]
pub(super) struct Heard {
    /// One a line.
    pub(super) errors: Vec<String>,
    /// Warnings and remarks, one a line.
    pub(super) others: Vec<String>,
}

/// Runs `call`, and returns its result with the library's messages.
pub(super) fn heard<T>(call: impl FnOnce() -> T) -> (T, Heard) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a temporary file, the messages reach standard error.
    let Ok(redirected) = Redirected::start() else { return (call(), Heard::default()) };
    let result = call();
    let said = redirected.end().unwrap_or_default();
    let mut heard = Heard::default();
    for line in said.split_inclusive('\n') {
        match message(line) {
            Some((true, text)) => heard.errors.push(text.to_owned()),
            Some((false, text)) => heard.others.push(text.to_owned()),
            None => _ = io::stderr().write_all(line.as_bytes()),
        }
    }
    (result, heard)
}

/// The text of a line that the linker printed, `@E@error   : text`, and whether it is an error.
fn message(line: &str) -> Option<(bool, &str)> {
    let (mark, text) = line.strip_prefix('@')?.split_once('@')?;
    let is_mark = mark.len() == 1 && mark.bytes().all(|byte| byte.is_ascii_uppercase());
    is_mark.then_some((matches!(mark, "E" | "F"), text.trim()))
}

/// Standard error while it goes to a file. It comes back when this is dropped.
struct Redirected {
    file: File,
    before: OwnedFd,
}

impl Redirected {
    fn start() -> io::Result<Self> {
        let file = tempfile::tempfile()?;
        let before = io::stderr().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stderr(&file)?;
        Ok(Redirected { file, before })
    }

    /// The text that was written.
    fn end(self) -> io::Result<String> {
        let mut file = self.file.try_clone()?;
        drop(self);
        file.rewind()?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Redirected {
    fn drop(&mut self) {
        let _ = rustix::stdio::dup2_stderr(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn marked_lines_are_the_linkers() {
        let line = "@E@error   : Prototype doesn't match for 'f'\n";
        assert_eq!(message(line), Some((true, "error   : Prototype doesn't match for 'f'")));
        assert_eq!(message("@W@warning : x"), Some((false, "warning : x")));
        for other in ["error: x\n", "@someone@ said\n", "@E", "", "@@x"] {
            assert_eq!(message(other), None, "{other}");
        }
    }
}
