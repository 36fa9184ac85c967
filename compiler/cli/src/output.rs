//! Standard output.

use std::io::{self, BufWriter, ErrorKind, Write};

use crate::report::{Failure, Outcome};
use crate::status;

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
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(status::RUN, "output", format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
