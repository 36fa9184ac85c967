//! Standard output.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;

use gridlet::diagnostics::ids;

use crate::report::{Failure, Outcome};
use crate::status;

/// Standard output as it was, once it is reserved for results.
static RESULTS: OnceLock<File> = OnceLock::new();

/// Sends the output of kernels to standard error from now on. The driver of a GPU writes it without asking, so the file
/// descriptor itself must change.
pub(crate) fn reserve() -> Outcome {
    let reserve = || {
        let results = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        let _ = RESULTS.set(results.into());
        Ok(())
    };
    reserve().map_err(|error| failed(&error))
}

/// Writes to standard output. A closed pipe (`gridlet … | head`) is not an error.
pub(crate) fn print(text: &str) -> Outcome {
    write_out(|out| out.write_all(text.as_bytes()))
}

/// Writes one JSON value to standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Outcome {
    write_out(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Writes to standard output in parts, for output of any length.
pub(crate) fn write_out(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Outcome {
    let buffered = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        write(&mut out).and_then(|()| out.flush())
    };
    let written = match RESULTS.get() {
        Some(mut file) => buffered(&mut file),
        None => buffered(&mut io::stdout().lock()).and_then(|()| io::stdout().flush()),
    };
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed(&error)),
        _ => Ok(()),
    }
}

fn failed(error: &io::Error) -> Failure {
    Failure::new(status::RUN, ids::OUTPUT, format!("standard output: {error}"))
}
